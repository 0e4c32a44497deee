"""Activation checkpointing: results whose intermediate values are computed again in backward.

The call keeps the function's own nodes; what they saved is a number, and the first one that is read runs the function
anew. PyTorch's other form, one node with a backward inside the backward (`use_reentrant=True`), is not here: it gives
the same gradients.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

from gradcli.eager import random as streams
from gradcli.eager._core import tracer
from gradcli.eager._core.modes import enable_grad, warn
from gradcli.eager._core.tensor import Tensor
from gradcli.eager.autograd.graph import saved_tensors_hooks


class CheckpointError(RuntimeError):
    """Raised where the second run of a function saved something else than the first."""


def checkpoint(
    function: Callable[..., Any],
    *args: Any,
    use_reentrant: bool | None = None,
    preserve_rng_state: bool = True,
    **kwargs: Any,
) -> Any:
    """`function(*args, **kwargs)` whose intermediate results are not kept, but computed again in backward.

    `use_reentrant` should be given, as PyTorch wants it (UserWarning); it and `preserve_rng_state` change nothing here:
    the second run has the random numbers of the first.

    >>> x = torch.tensor(0.5, requires_grad=True)
    >>> checkpoint(lambda x: x.exp().sin(), x, use_reentrant=False).backward()
    >>> x.grad
    tensor(-0.1283)
    """
    if use_reentrant is None:
        warn("checkpoint() needs use_reentrant= to be given: use_reentrant=False is recommended", UserWarning)
    if tracer.own.current is not None:  # a recording keeps no values: there is nothing to save
        return function(*args, **kwargs)
    frame = _CheckpointFrame(function, args, kwargs)
    with saved_tensors_hooks(frame.pack, frame.unpack):
        return function(*args, **kwargs)


class _Stop(BaseException):
    """Everything that is still needed has been computed again."""


class _Number:
    """What a node keeps in place of a tensor."""

    __slots__ = ("__weakref__", "index", "kind", "shape")

    def __init__(self, index: int, x: Tensor) -> None:
        self.index, self.shape, self.kind = index, x._raw.shape, x._raw.dtype


class _CheckpointFrame:
    """One checkpointed call: how to run it again, and what the second run saved."""

    def __init__(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.function, self.args, self.kwargs = function, args, kwargs
        self.random = streams.own.default_generator.get_state()
        self.numbers: list[weakref.ref[_Number]] = []
        self.recomputed: dict[int, Tensor] = {}

    def pack(self, x: Tensor) -> _Number:
        number = _Number(len(self.numbers), x)
        self.numbers.append(weakref.ref(number))
        return number

    def unpack(self, number: _Number) -> Tensor:
        if number.index not in self.recomputed:
            self._run()
        if number.index not in self.recomputed:
            raise CheckpointError("checkpoint: the second run of the function saved fewer tensors than the first")
        x = self.recomputed.pop(number.index)
        if x._raw.shape != number.shape or x._raw.dtype != number.kind:
            raise CheckpointError(
                f"checkpoint: the second run saved a tensor of shape {list(x.shape)} and {x.dtype} where the first "
                f"saved one of shape {list(number.shape)} and {number.kind}; it must be deterministic"
            )
        return x

    def _run(self) -> None:
        count = 0
        last = max((i for i, number in enumerate(self.numbers) if number() is not None), default=-1)

        def pack(x: Tensor) -> None:
            nonlocal count
            if count < len(self.numbers) and self.numbers[count]() is not None:
                self.recomputed[count] = x.detach()
            count += 1
            if count > last:
                raise _Stop

        now = streams.own.default_generator.get_state()
        streams.own.default_generator.set_state(self.random)
        try:
            with enable_grad(), saved_tensors_hooks(pack, _unread):
                self.function(*self.args, **self.kwargs)
        except _Stop:
            pass
        finally:
            streams.own.default_generator.set_state(now)


def _unread(kept: Any) -> Any:
    raise CheckpointError("checkpoint: a backward ran inside the second run of the function")
