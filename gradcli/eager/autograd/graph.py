"""PyTorch's `torch.autograd.graph`: hooks on saved tensors, and the classes of nodes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradcli.eager._core.modes import state, sweeps
from gradcli.eager._core.node import AccumulateGrad, Node
from gradcli.eager._core.tensor import Tensor
from gradcli.eager._core.unsupported import room


class saved_tensors_hooks:
    """A context: nodes keep `pack_hook(tensor)` of what they save, and read `unpack_hook` of it.

    >>> x = torch.tensor([1.0, 2.0], requires_grad=True)
    >>> with saved_tensors_hooks(lambda t: t.tolist(), torch.tensor):
    ...     y = (x * x).sum()
    >>> y.backward()
    >>> x.grad
    tensor([2., 4.])
    """

    def __init__(self, pack_hook: Callable[[Tensor], Any], unpack_hook: Callable[[Any], Tensor]) -> None:
        self.pair = (pack_hook, unpack_hook)

    def __enter__(self) -> None:
        sweeps.watched = True
        state.saved_hooks = (*state.saved_hooks, self.pair)

    def __exit__(self, *exc: object) -> None:
        state.saved_hooks = state.saved_hooks[:-1]


class save_on_cpu(saved_tensors_hooks):
    """A context: what nodes save is kept as a copy in the memory of the processor."""

    def __init__(self, pin_memory: bool = False, device_type: str = "cuda") -> None:
        super().__init__(lambda x: Tensor(x._array.copy()), lambda kept: kept)


__all__ = ["AccumulateGrad", "Node", "save_on_cpu", "saved_tensors_hooks"]
__getattr__, __dir__ = room("autograd.graph", __all__)
