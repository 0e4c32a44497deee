"""`torch.autograd.Function`: operations with a `forward` and a `backward` of their own, and their nodes."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from gradcli.eager._core import events, modes, tracer
from gradcli.eager._core.grad_fn import Node, versions
from gradcli.eager._core.modes import place, recording, state, warn
from gradcli.eager._core.tensor import Tensor
from gradcli.eager._engine.rule_node import fitted_tensor, kept, kept_result, source_of
from gradcli.eager._ops.inplace import refuse, rewrite
from gradcli.eager.autograd.forward_ad import without_level


class Context:
    """The `ctx` that forward and backward of a Function receive; it takes any attribute."""

    needs_input_grad: tuple[bool, ...] = ()
    saved_for_forward: tuple[Any, ...] = ()
    _node: Any = None  # a weak reference
    _to_save: tuple[Any, ...] = ()
    _fixed: tuple[Any, ...] = ()
    _dirty: tuple[Any, ...] = ()
    _materialize = True

    def save_for_backward(self, *tensors: Any) -> None:
        """Keep tensors for `saved_tensors` in backward; None is allowed."""
        for x in tensors:
            if x is not None and not isinstance(x, Tensor):
                raise TypeError("save_for_backward can only save tensors; keep others as attributes of ctx")
        self._to_save = tensors

    def save_for_forward(self, *tensors: Any) -> None:
        """Keep tensors for `jvp`, which finds them in `saved_for_forward`."""
        self.saved_for_forward = tensors

    def mark_non_differentiable(self, *tensors: Tensor) -> None:
        """Results that need no gradient."""
        self._fixed = tensors

    def mark_dirty(self, *tensors: Tensor) -> None:
        """Inputs that forward changed in place and returns."""
        self._dirty = tensors

    def set_materialize_grads(self, value: bool) -> None:
        """Whether backward gets zeros (the default) or None for results that got no gradient."""
        self._materialize = value

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """What was saved; RuntimeError once it was freed, or where it was changed in place since."""
        node = self._node()
        return self._to_save if node is None or self._to_save else node.saved_tensors


class FunctionNode(Node):
    """The node of a Function's result."""

    __slots__ = ("context", "outputs", "owner", "results", "slots")
    context: Context
    owner: type[Function]
    slots: list[Any]  # for each argument the shape and format of a tensor, else None
    results: list[Any]  # for each result the shape and format of a tensor, else None

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """What forward saved; RuntimeError once it was freed, or where it was changed in place since."""
        self.check_not_freed()
        self.check_versions()
        return tuple(map(self.tensor_saved, range(len(self.saved or ()))))

    def __getattr__(self, name: str) -> Any:
        if name in Node.__slots__ or name in FunctionNode.__slots__:
            raise AttributeError(name)
        return getattr(self.context, name)

    def run(self, cts: list[Any], create_graph: bool) -> list[Any]:
        """What the class's backward returns, fitted to the inputs."""
        self.check_not_freed()
        gradients = []
        for ct, result in zip(cts, self.results, strict=True):
            if ct is None and result is not None and self.context._materialize:
                ct = np.zeros(*result)
            gradients.append(ct if ct is None or isinstance(ct, Tensor) else Tensor(ct))
        with modes.set_grad_enabled(create_graph):
            return self.call_backward(gradients, create_graph)

    def push(self, args: tuple[Any, ...], outputs: list[Any], dual: Any) -> None:
        """Give the results the tangents that the class's jvp returns."""
        with without_level():
            answer = self.owner.jvp(self.context, *[_tangent(x, self.context) for x in args])
        for out, tangent in zip(outputs, answer if isinstance(answer, tuple) else (answer,), strict=True):
            if isinstance(out, Tensor) and tangent is not None:
                dual.give(out, tangent)

    def call_backward(self, gradients: list[Any], create_graph: bool) -> list[Any]:
        """What backward returns for these gradients of the results, fitted to the inputs that are tensors."""
        answer = self.owner._rule()(self.context, *gradients)
        values, count = answer if isinstance(answer, tuple) else (answer,), len(self.slots)
        if len(values) > count and all(value is None for value in values[count:]):
            values = values[:count]
        if len(values) != count:
            raise RuntimeError(f"{self.name()} returned an incorrect number of gradients: {len(values)}, not {count}")
        results = []
        for value, slot in zip(values, self.slots, strict=True):
            if slot is None:
                if value is not None:
                    raise RuntimeError(f"{self.name()} returned a gradient for an input that is not a tensor")
                continue
            if value is not None:
                if not isinstance(value, Tensor):
                    raise TypeError(f"{self.name()} returned {type(value).__name__} where a tensor or None is expected")
                value = self._fitted(value, *slot)
            results.append(value if value is None or create_graph else value._raw)
        return results

    def _fitted(self, value: Tensor, shape: tuple[int, ...], kind: Any) -> Tensor:
        try:
            fits = np.broadcast_shapes(value._raw.shape, shape) in (shape, value._raw.shape)
        except ValueError:
            fits = False
        if not fits:
            raise RuntimeError(f"{self.name()} returned a gradient of {list(value.shape)}, expected {list(shape)}")
        return fitted_tensor(value, shape, kind)


def attach(node: FunctionNode, outputs: list[Any], answers: list[Any]) -> None:
    """Give the results of a Function its node, which keeps what was saved."""
    node.outputs = len(outputs)
    node.results = [(out._raw.shape, out._raw.dtype) if isinstance(out, Tensor) else None for out in outputs]
    context = node.context
    for x in context._dirty:
        refuse(x)
    saved: list[Any] = []
    for x in context._to_save:
        at = next((i for i, out in enumerate(answers) if x is out), None)
        # a node never holds its own output
        saved.append(None if x is None else kept(x) if at is None else kept_result(x, node, at))
    context._to_save = ()
    node.saved = tuple(saved)
    node.vers = versions(node.saved)
    for i, out in enumerate(outputs):
        if not isinstance(out, Tensor) or out.dtype.kind < 2 or any(out is fixed for fixed in context._fixed):
            continue
        if any(out is x for x in context._dirty):
            result = Tensor(out._array)
            result._requires, result._edge = True, (node, i)
            rewrite(out, result)
        else:
            out._requires, out._edge = True, (node, i)


class Function:
    """A user-defined operation: static `forward(ctx, ...)` and `backward(ctx, *grads)`, called by `apply`.

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
    _backward_cls: type[FunctionNode] = FunctionNode  # of its nodes

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        members = {"__module__": "torch.autograd.function", "__slots__": ()}
        cls._backward_cls = type(f"{cls.__name__}Backward", (FunctionNode,), members)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        warn(f"{type(self)} should not be instantiated: call {type(self).__name__}.apply(...)", DeprecationWarning)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(f"an instance of a Function cannot be called: call {type(self).__name__}.apply(...)")

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
    def _rule(cls) -> Callable[..., Any]:
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
        if tracer.traced(args):
            return tracer.own.current.called(cls, args)
        tracked = recording() and any(x.requires_grad for x in tensors)
        node = cls._backward_cls(tuple(map(source_of, tensors)) if tracked else (), (), place())
        node.owner, node.outputs, node.context = cls, 1, Context()
        context = node.context
        context._node = weakref.ref(node)
        context.needs_input_grad = tuple([isinstance(x, Tensor) and x.requires_grad for x in args])
        node.slots = [(x._raw.shape, x._raw.dtype) if isinstance(x, Tensor) else None for x in args]
        dual, state.dual = state.dual, None
        try:
            answer = cls._run_forward(context, args)
        finally:
            state.dual = dual
        for x in context._dirty:
            x._counter.bump(place())
        several = isinstance(answer, tuple)
        answers = list(answer) if several else [answer]
        outputs = list(answers)
        for i, out in enumerate(outputs):
            if isinstance(out, Tensor) and any(out is x for x in args) and not any(out is x for x in context._dirty):
                outputs[i] = out.detach()
        if tracked:
            attach(node, outputs, answers)
        if dual is not None and any(x._tangent is not None for x in tensors):
            node.push(args, outputs, dual)
        if events.own.current is not None:
            for out in outputs:
                if isinstance(out, Tensor):
                    events.own.current.operation(node.name(), tensors, out)
                    if tracked:
                        events.own.current.ruled(out, cls, cls._rule(), node.saved, args, outputs)
        return tuple(outputs) if several else outputs[0]

    @classmethod
    def _run_forward(cls, context: Context, args: tuple[Any, ...]) -> Any:
        """What forward returns, and what it keeps in its context; nothing is recorded."""
        with modes.no_grad():
            if cls.setup_context is None:
                return cls.forward(context, *args)
            answer = cls.forward(*args)
            cls.setup_context(context, args, answer)
            return answer


def _bound(
    forward: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], complete: bool = True
) -> tuple[Any, ...]:
    """The arguments of a forward in order; with `complete`, the defaults of omitted ones are included."""
    code = getattr(forward, "__code__", None)
    if code is not None and len(args) == code.co_argcount and not kwargs:
        return args
    from inspect import signature

    bound = signature(forward).bind(*args, **kwargs)
    if complete or bound.kwargs:
        bound.apply_defaults()
    return bound.args


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
        return answer if tracer.own.current is None else tracer.own.current.constants(answer)

    return inside


FunctionCtx = Context
Function.__module__ = "torch.autograd.function"
