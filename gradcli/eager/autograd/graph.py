"""PyTorch's `torch.autograd.graph`: hooks on saved tensors and on several gradients, and the classes of nodes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

from gradcli.eager._core.grad_fn import AccumulateGrad, Node
from gradcli.eager._core.modes import state, sweeps
from gradcli.eager._core.tensor import Tensor
from gradcli.eager._core.unsupported import room
from gradcli.eager._engine.backward import running


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


def register_multi_grad_hook(tensors: Sequence[Tensor], fn: Callable[[Any], None], *, mode: str = "all") -> Any:
    """Call `fn` once in each backward, with the gradients of all tensors, None for those that get none.

    With mode="any" it gets the gradient that arrives first. ValueError for another mode.
    """
    if mode not in ("all", "any"):
        raise ValueError(f"Expects mode to be one of ('all', 'any') but got {mode}")
    arrived: WeakKeyDictionary[Any, list[Any]] = WeakKeyDictionary()  # by the sweep: the gradients so far

    def hook(i: int, grad: Tensor) -> None:
        watch = running.watch
        grads = arrived.setdefault(watch, [None] * len(tensors))
        grads[i] = grad
        count = len(tensors) - sum(x is None for x in grads)
        if mode == "any" and count == 1:
            fn(grad)
        elif mode == "all" and count == sum(map(watch.reaches, tensors)):
            fn(grads)

    handles: Any = ExitStack()
    handles.remove = handles.close
    for i, x in enumerate(tensors):
        handles.callback(x.register_hook(partial(hook, i)).remove)
    return handles


__all__ = ["AccumulateGrad", "Node", "register_multi_grad_hook", "save_on_cpu", "saved_tensors_hooks"]
__getattr__, __dir__ = room("autograd.graph", __all__)
