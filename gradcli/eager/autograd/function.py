"""A class with `forward` and `backward` goes in, an operation whose node runs that backward comes out."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.eager import modes
from gradcli.eager.dispatch import _fitted_tensor, source_of
from gradcli.eager.nodes import Node, Saved, class_named
from gradcli.eager.state import place, recording
from gradcli.eager.tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Callable


class FunctionNode(Node):
    """The node of a Function's result; it is also the `ctx` that forward and backward receive."""

    __slots__ = ("__dict__",)
    owner: type[Function]
    needs_input_grad: tuple[bool, ...]
    slots: list[Any]  # for each argument the shape and format of a tensor, else None
    results: list[Any]  # for each result its shape and format
    materialize = True

    def save_for_backward(self, *tensors: Any) -> None:
        """Keep tensors for `saved_tensors` in backward; None is allowed."""
        for one in tensors:
            if one is not None and not isinstance(one, Tensor):
                raise TypeError("save_for_backward can only save tensors; keep others as attributes of ctx")
        self.to_save = tensors

    def mark_non_differentiable(self, *tensors: Tensor) -> None:
        """Results that need no gradient."""
        self.fixed = tensors

    def mark_dirty(self, *tensors: Tensor) -> None:
        """Inputs that forward changed in place; this is not supported."""
        raise RuntimeError("mark_dirty is not supported: return a new tensor from forward instead")

    def set_materialize_grads(self, value: bool) -> None:
        """Whether gradients that did not arrive come as zeros (the default) or as None."""
        self.materialize = value

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """What was saved; RuntimeError once it was freed, or where it was changed in place since."""
        self.check_not_freed()
        found: list[Any] = []
        for one in self.saved:
            if one.tensor is None and one.counter is None:
                found.append(None)
                continue
            one.checked(self.name(), self.place)
            if one.tensor is not None:
                found.append(one.tensor)
            else:
                result = Tensor(one.array, True, one.counter)
                result._edge = (self, one.output)  # type: ignore[attr-defined]
                found.append(result)
        return tuple(found)

    def run(self, cts: list[Any], create_graph: bool) -> list[Any]:
        """What the class's backward returns, fitted to the inputs."""
        self.check_not_freed()
        given = []
        for ct, (shape, kind) in zip(cts, self.results, strict=True):
            if ct is None and self.materialize:
                ct = np.zeros(shape, kind)
            given.append(ct if ct is None or isinstance(ct, Tensor) else Tensor(ct))
        with modes.set_grad_enabled(create_graph):
            answer = self.owner.backward(self, *given)
            values = answer if isinstance(answer, tuple) else (answer,)
            return self._fitted(values, create_graph)

    def _fitted(self, values: tuple[Any, ...], create_graph: bool) -> list[Any]:
        count = len(self.slots)
        if len(values) > count and all(value is None for value in values[count:]):
            values = values[:count]
        if len(values) != count:
            raise RuntimeError(
                f"{self.name()} returned an incorrect number of gradients (expected {count}, got {len(values)})"
            )
        found = []
        for value, slot in zip(values, self.slots, strict=True):
            if slot is None:
                if value is not None:
                    raise RuntimeError(f"{self.name()} returned a gradient for an input that is not a tensor")
                continue
            if value is not None:
                if not isinstance(value, Tensor):
                    raise TypeError(f"{self.name()} returned {type(value).__name__} where a tensor or None is expected")
                value = self._one(value, slot, create_graph)
            found.append(value)
        return found

    def _one(self, value: Tensor, slot: Any, create_graph: bool) -> Any:
        shape, kind = slot
        try:
            fits = np.broadcast_shapes(value._array.shape, shape) in (shape, value._array.shape)
        except ValueError:
            fits = False
        if not fits:
            raise RuntimeError(
                f"{self.name()} returned a gradient of shape {list(value.shape)}, but expected one expandable to "
                f"{list(shape)}"
            )
        if value._array.size < int(np.prod(shape)):
            from gradcli.eager.movement import expand

            value = expand(value, shape)
        fitted = _fitted_tensor(value, shape, kind)
        return fitted if create_graph else fitted._array


class _SavedOutput(Saved):
    __slots__ = ("output",)
    output: int


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

    def __init__(self) -> None:
        raise RuntimeError(f"{type(self).__name__} is not made: call {type(self).__name__}.apply(...)")

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        """The value; written by the class."""
        raise RuntimeError("a Function needs a static method forward")

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        """The gradients of the inputs; written by the class."""
        raise RuntimeError("a Function needs a static method backward")

    @classmethod
    def apply(cls, *args: Any) -> Any:
        """Run forward, and leave a node where an input requires grad."""
        tensors = [x for x in args if isinstance(x, Tensor)]
        tracked = recording() and any(x.requires_grad for x in tensors)
        inputs = tuple([source_of(x) for x in tensors]) if tracked else ()
        node = class_named(FunctionNode, f"{cls.__name__}Backward")(inputs, (), place())
        assert isinstance(node, FunctionNode)
        node.owner = cls
        node.needs_input_grad = tuple([isinstance(x, Tensor) and x.requires_grad for x in args])
        node.slots = [(x._array.shape, x._array.dtype) if isinstance(x, Tensor) else None for x in args]
        with modes.no_grad():
            if cls.setup_context is None:
                answer = cls.forward(node, *args)
            else:
                answer = cls.forward(*args)
                cls.setup_context(node, args, answer)
        several = isinstance(answer, tuple)
        outputs = list(answer) if several else [answer]
        for i, out in enumerate(outputs):
            if isinstance(out, Tensor) and any(out is x for x in args):
                outputs[i] = out.detach()
        if tracked:
            _record(node, outputs, list(answer) if several else [answer])
        else:
            node.to_save = ()
        return tuple(outputs) if several else outputs[0]


def _record(node: FunctionNode, outputs: list[Any], answers: list[Any]) -> None:
    results = [out for out in outputs if isinstance(out, Tensor)]
    fixed = node.__dict__.pop("fixed", ())
    node.outputs = len(results)
    node.results = [(out._array.shape, out._array.dtype) for out in results]
    saved: list[Any] = []
    for one in node.__dict__.pop("to_save", ()):
        at = next((i for i, out in enumerate(results) if one is out), None)
        if one is None:
            saved.append(_nothing())
        elif at is None:
            saved.append(Saved(one, one._array, one._counter))
        else:  # a node never holds its own output
            kept = _SavedOutput(None, one._array, one._counter)
            kept.output = at
            saved.append(kept)
    node.saved = tuple(saved)
    for i, out in enumerate(results):
        if out.dtype.is_floating_point and not any(out is one for one in fixed):
            out._requires, out._edge = True, (node, i)


class _Still:
    value = 0


def _nothing() -> Saved:
    made = Saved(None, None, _Still)
    made.counter = None
    return made


class once_differentiable:
    """A decorator for a backward that cannot be differentiated again: its results do not require grad."""

    def __new__(cls, function: Callable[..., Any]) -> Any:
        @functools.wraps(function)
        def inside(ctx: Any, *grads: Any) -> Any:
            with modes.no_grad():
                return function(ctx, *grads)

        return inside


Function.__module__ = "torch.autograd.function"
