"""`torch.autograd.Function`: operations with a `forward` and a `backward` of their own."""

from __future__ import annotations

import functools
import weakref
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.eager._core import events, modes, tracer
from gradcli.eager._core.modes import place, recording, sequence, state, warn
from gradcli.eager._core.tensor import Tensor
from gradcli.eager._engine.rule_node import source_of
from gradcli.eager.autograd._context import Context, FunctionNode, attach, class_of

if TYPE_CHECKING:
    from collections.abc import Callable


class Function:
    """An operation of one's own: static `forward(ctx, ...)` and `backward(ctx, *grads)`, called by `apply`.

    With a static `setup_context(ctx, inputs, output)`, `forward` takes no ctx.

    >>> class Cube(Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         ctx.save_for_backward(x)
    ...         return x ** 3
    ...     @staticmethod
    ...     def backward(ctx, grad):
    ...         (x,) = ctx.saved_tensors
    ...         return grad * 3 * x ** 2
    """

    setup_context: Callable[..., None] | None = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        warn(f"{type(self)} should not be instantiated: call {type(self).__name__}.apply(...)", DeprecationWarning)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(
            f"{type(self).__name__} is a Function: call {type(self).__name__}.apply(...), not an instance"
        )

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        """The value; written by the class."""
        raise NotImplementedError("a Function needs a static method forward")

    @staticmethod
    def vjp(ctx: Any, *grads: Any) -> Any:
        """Another name of `backward`."""
        raise NotImplementedError("a Function needs a static method backward to be differentiated")

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Any:
        """The tangents of the results, for forward mode; written by the class."""
        raise NotImplementedError("a Function needs a static method jvp to be used in forward mode")

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        """The gradients of the inputs; written by the class."""
        raise NotImplementedError("a Function needs a static method backward")

    @classmethod
    def way(cls) -> Callable[..., Any]:
        """The static method that gives the gradients: `backward`, or `vjp` where only that is written."""
        return cls.vjp if cls.backward is Function.backward and cls.vjp is not Function.vjp else cls.backward

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Run forward, and leave a node where an input requires grad.

        Arguments may be given by their names in `forward`; with `setup_context`, defaults count as arguments too.
        """
        if cls.setup_context is not None:
            args = _bound(cls.forward, args, kwargs)
        elif kwargs:
            args = _bound(cls.forward, (None, *args), kwargs, False)[1:]
        tensors = [x for x in args if isinstance(x, Tensor)]
        if tracer.current is not None and tracer.traced(args):
            if tracer.current.values_only:
                return cls._value(args)
            from gradcli.eager._custom_function_trace import called

            return called(tracer.current, cls, args)
        tracked = recording() and any(x.requires_grad for x in tensors)
        node: FunctionNode = object.__new__(class_of(cls))
        node.ins = tuple([source_of(x) for x in tensors]) if tracked else ()
        node.saved, node.vers, node.extra = (), None, None
        node.place, node._seq, node.outputs = place(), next(sequence), 1
        node.owner = cls
        node.context = context = Context()
        context._node = weakref.ref(node)
        context.needs_input_grad = tuple([isinstance(x, Tensor) and x.requires_grad for x in args])
        node.slots = [(x._raw.shape, x._raw.dtype) if isinstance(x, Tensor) else None for x in args]
        dual, state.dual = state.dual, None
        try:
            with modes.no_grad():
                if cls.setup_context is None:
                    answer = cls.forward(context, *args)
                else:
                    answer = cls.forward(*args)
                    cls.setup_context(context, args, answer)
        finally:
            state.dual = dual
        for x in context._dirty:
            x._counter.bump(place())
        several = isinstance(answer, tuple)
        outputs = list(answer) if several else [answer]
        for i, out in enumerate(outputs):
            if isinstance(out, Tensor) and any(out is x for x in args) and not any(out is x for x in context._dirty):
                outputs[i] = out.detach()
        if tracked:
            attach(node, outputs, list(answer) if several else [answer])
        if dual is not None and any(x._tangent is not None for x in tensors):
            _push(node, args, outputs, dual)
        if events.current is not None:
            for out in outputs:
                if isinstance(out, Tensor):
                    events.current.operation(node.name(), tensors, out)
                    if tracked:
                        events.current.ruled(out, cls.__name__, cls.way(), node.saved)
        return tuple(outputs) if several else outputs[0]

    @classmethod
    def _value(cls, args: tuple[Any, ...]) -> Any:
        """What forward gives, and no node: for values only."""
        context = Context()
        context.needs_input_grad = (False,) * len(args)
        with modes.no_grad():
            if cls.setup_context is None:
                return cls.forward(context, *args)
            answer = cls.forward(*args)
            cls.setup_context(context, args, answer)
            return answer


def _bound(
    forward: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], complete: bool = True
) -> tuple[Any, ...]:
    """The arguments of a forward in their order; `complete` with the defaults of those that were left out."""
    code = getattr(forward, "__code__", None)
    if code is not None and len(args) == code.co_argcount and not kwargs:
        return args
    from inspect import signature

    found = signature(forward).bind(*args, **kwargs)
    if complete or found.kwargs:
        found.apply_defaults()
    return found.args


def _push(node: FunctionNode, args: tuple[Any, ...], outputs: list[Any], dual: Any) -> None:
    state.dual = None
    try:
        tangents = [_tangent(x, node.context) for x in args]
        answer = node.owner.jvp(node.context, *tangents)
    finally:
        state.dual = dual
    for out, tangent in zip(outputs, answer if isinstance(answer, tuple) else (answer,), strict=True):
        if isinstance(out, Tensor) and tangent is not None:
            dual.give(out, tangent)


def _tangent(x: Any, context: Context) -> Any:
    """The tangent of an argument: zeros where a tensor has none, unless the Function asks for None."""
    if not isinstance(x, Tensor) or x._tangent is not None or not context._materialize or x.dtype.kind < 2:
        return x._tangent if isinstance(x, Tensor) else None
    return Tensor(np.zeros(x._raw.shape, x._raw.dtype))


def once_differentiable(function: Callable[..., Any]) -> Callable[..., Any]:
    """A decorator for a backward that cannot be differentiated again: its results do not require grad."""

    @functools.wraps(function)
    def inside(ctx: Any, *grads: Any) -> Any:
        with modes.no_grad():
            answer = function(ctx, *grads)
        return answer if tracer.current is None else tracer.current.constants(answer)

    return inside


FunctionCtx = Context
Function.__module__ = "torch.autograd.function"
