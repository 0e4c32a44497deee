"""Activation checkpointing: results whose intermediate values are computed again in backward.

The reentrant form is one node that runs the function anew and a backward inside the backward. The other form keeps the
function's own nodes; what they saved is a number, and the first one that is read runs the function anew.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

from gradcli.eager import random as streams
from gradcli.eager._core import tracer
from gradcli.eager._core.modes import enable_grad, no_grad, warn
from gradcli.eager._core.tensor import Tensor
from gradcli.eager._engine.backward import backward
from gradcli.eager.autograd.function import Function
from gradcli.eager.autograd.graph import saved_tensors_hooks

if TYPE_CHECKING:
    from collections.abc import Callable


class CheckpointError(RuntimeError):
    """Raised where the second run of a function saved something else than the first."""


def checkpoint(
    function: Callable[..., Any],
    *args: Any,
    use_reentrant: bool | None = None,
    preserve_rng_state: bool = True,
    determinism_check: str = "default",
    **kwargs: Any,
) -> Any:
    """`function(*args, **kwargs)` whose intermediate results are not kept, but computed again in backward.

    `use_reentrant` should be given: without it there is a UserWarning, and the reentrant form is taken. That form
    takes no keyword arguments (ValueError), and needs an argument that requires grad. `preserve_rng_state` gives the
    second run the random numbers of the first.

    >>> import gradcli.eager as torch
    >>> x = torch.tensor(0.5, requires_grad=True)
    >>> checkpoint(lambda x: x.exp().sin(), x, use_reentrant=False).backward()
    >>> x.grad
    tensor(-0.1283)
    """
    if use_reentrant is None:
        warn(
            "checkpoint() needs use_reentrant= to be given: use_reentrant=False is recommended; the reentrant form is "
            "taken now",
            UserWarning,
        )
        use_reentrant = True
    if use_reentrant and (tracer.current is None or not tracer.traced(args)):
        if kwargs:
            raise ValueError(f"Unexpected keyword arguments: {', '.join(kwargs)}")
        if not any(isinstance(x, Tensor) and x.requires_grad for x in args):
            warn("None of the inputs have requires_grad=True. Gradients will be None", UserWarning)
        return CheckpointFunction.apply(function, preserve_rng_state, *args)
    if tracer.current is not None:  # a recording keeps no values: there is nothing to save
        return function(*args, **kwargs)
    frame = _Frame(function, args, kwargs, preserve_rng_state, determinism_check != "none")
    with saved_tensors_hooks(frame.pack, frame.unpack):
        return function(*args, **kwargs)


class _again:
    """A context in which random numbers are those that followed a state; afterwards they go on as before."""

    def __init__(self, state: Any) -> None:
        self.state = state

    def __enter__(self) -> None:
        if self.state is not None:
            self.now = streams.default_generator.get_state()
            streams.default_generator.set_state(self.state)

    def __exit__(self, *exc: object) -> None:
        if self.state is not None:
            streams.default_generator.set_state(self.now)


class CheckpointFunction(Function):
    """The reentrant form: forward leaves one node, backward runs the function anew and a backward inside it."""

    @staticmethod
    def forward(ctx: Any, function: Callable[..., Any], preserve: bool, *args: Any) -> Any:
        """The function's result, without a graph."""
        ctx.function = function
        ctx.random = streams.default_generator.get_state() if preserve else None
        ctx.given = [None if isinstance(x, Tensor) else x for x in args]
        ctx.places = [i for i, x in enumerate(args) if isinstance(x, Tensor)]
        ctx.save_for_backward(*[args[i] for i in ctx.places])
        with no_grad():
            return function(*args)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        """The gradients of the arguments; those of everything else go where they belong at once."""
        given = list(ctx.given)
        for i, x in zip(ctx.places, ctx.saved_tensors, strict=True):
            given[i] = x.detach()
            given[i].requires_grad = x.requires_grad
        with enable_grad(), _again(ctx.random):
            answer = ctx.function(*given)
        outputs = answer if isinstance(answer, tuple) else (answer,)
        pairs = [
            (out, grad)
            for out, grad in zip(outputs, grads, strict=False)
            if isinstance(out, Tensor) and out.requires_grad
        ]
        if not pairs:
            raise RuntimeError("none of output has requires_grad=True, this checkpoint() is not necessary")
        backward([out for out, _ in pairs], [grad for _, grad in pairs])
        return None, None, *[x._grad if isinstance(x, Tensor) else None for x in given]


class _Stop(BaseException):
    """Everything that is still needed has been computed again."""


class _Number:
    """What a node keeps in place of a tensor."""

    __slots__ = ("__weakref__", "index", "kind", "shape")

    def __init__(self, index: int, x: Tensor) -> None:
        self.index = index
        self.shape = x._raw.shape
        self.kind = x._raw.dtype


class _Frame:
    """One checkpointed call: how to run it anew, and what that gave."""

    def __init__(
        self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], preserve: bool, check: bool
    ) -> None:
        self.function, self.args, self.kwargs, self.check = function, args, kwargs, check
        self.random = streams.default_generator.get_state() if preserve else None
        self.numbers: list[weakref.ref[_Number]] = []
        self.found: dict[int, Tensor] = {}

    def pack(self, x: Tensor) -> _Number:
        number = _Number(len(self.numbers), x)
        self.numbers.append(weakref.ref(number))
        return number

    def unpack(self, number: _Number) -> Tensor:
        if number.index not in self.found:
            self._run()
        if number.index not in self.found:
            raise CheckpointError(
                "checkpoint: the second run of the function saved fewer tensors than the first; it must compute the "
                "same both times"
            )
        x = self.found.pop(number.index)
        if self.check and (x._raw.shape != number.shape or x._raw.dtype != number.kind):
            raise CheckpointError(
                f"checkpoint: the second run saved a tensor of shape {list(x.shape)} and {x.dtype} where the first "
                f"saved one of shape {list(number.shape)} and {number.kind}; it must compute the same both times"
            )
        return x

    def _run(self) -> None:
        count = 0
        last = max((i for i, one in enumerate(self.numbers) if one() is not None), default=-1)

        def pack(x: Tensor) -> None:
            nonlocal count
            if count < len(self.numbers) and self.numbers[count]() is not None:
                self.found[count] = x.detach()
            count += 1
            if count > last:
                raise _Stop

        with enable_grad(), _again(self.random), saved_tensors_hooks(pack, _unread):
            try:
                self.function(*self.args, **self.kwargs)
            except _Stop:
                return


def _unread(kept: Any) -> Any:
    raise CheckpointError("checkpoint: a backward ran inside the second run of the function")
