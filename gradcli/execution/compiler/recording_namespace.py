"""The namespace that records: an `impl` called with it gives the steps that it would take on NumPy arrays."""

from __future__ import annotations

from functools import partialmethod
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.execution.compiler.ir import CALL, ENTRY, SCAN, VIEW, PlanValue
from gradcli.execution.compiler.simplify import StepTable
from gradcli.execution.inputs import impl_params
from gradcli.execution.namespaces import Unavailable, namespace
from gradcli.graph.arrays import nearest_float
from gradcli.graph.node import CONSTANT, is_reader
from gradcli.graph.types import Type

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from gradcli.execution.loops.scan import Scan
    from gradcli.graph.node import Node
    from gradcli.graph.types import Shape

MOVES = {"reshape", "broadcast", "permute", "slice"}  # they compute nothing
ARITHMETIC = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "truediv": np.true_divide}
OPERATORS = {
    **ARITHMETIC, "neg": np.negative, "invert": np.invert, "and": np.bitwise_and, "or": np.bitwise_or,
    "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal, "eq": np.equal, "ne": np.not_equal,
}  # fmt: skip
NOT_RECORDED = {"bool": "a branch on a value", "len": "its entries", "iter": "its entries", "array": "an array of it"}


class Unrecordable(Exception):
    """What an `impl` does with an array, and a record cannot."""


class TracedArray:
    """An array that an `impl` handles while it is recorded."""

    __slots__ = ("dtype", "ndim", "recorder", "shape", "size", "value")
    __array_ufunc__ = None
    __hash__ = None  # type: ignore[assignment]  # comparing gives an array

    def __init__(self, recorder: RecordingNamespace, value: PlanValue) -> None:
        self.recorder, self.value = recorder, value
        self.shape, self.dtype, self.size, self.ndim = value.shape, value.dtype, value.size, len(value.shape)

    def conjugate(self) -> TracedArray:
        return self

    def reshape(self, shape: tuple[int, ...]) -> TracedArray:
        return self.recorder.reshape(self, shape)

    def __getitem__(self, index: Any) -> TracedArray:
        """Slices, with an ellipsis in front; anything else is not recorded."""
        parts = index if isinstance(index, tuple) else (index,)
        if parts and parts[0] is Ellipsis:
            parts = (*[slice(None)] * (self.ndim - len(parts) + 1), *parts[1:])
        if len(parts) != self.ndim or not all(isinstance(part, slice) for part in parts):
            raise Unrecordable("an index")
        parts = tuple(
            [
                slice(*part.indices(n)) if (part.step or 1) > 0 else part
                for part, n in zip(parts, self.shape, strict=True)
            ]
        )
        shape = tuple([len(range(*part.indices(n))) for part, n in zip(parts, self.shape, strict=True)])
        if shape == self.shape and all((part.step or 1) > 0 for part in parts):
            return self
        key = tuple([("slice", part.start, part.stop, part.step) for part in parts])
        return TracedArray(self.recorder, self.recorder.steps.view("slice", self.value, key, shape))


def _operator(ufunc: Any, step: int = 1) -> Any:
    return lambda *xs: xs[0].recorder.entry(ufunc, *xs[::step])


def _refusal(what: str) -> Any:
    def refuse(*_: Any, **__: Any) -> Any:
        raise Unrecordable(what)

    return refuse


for _name, _ufunc in OPERATORS.items():
    setattr(TracedArray, f"__{_name}__", _operator(_ufunc))
for _name, _ufunc in ARITHMETIC.items():
    setattr(TracedArray, f"__r{_name}__", _operator(_ufunc, -1))
for _name, _what in NOT_RECORDED.items():
    setattr(TracedArray, f"__{_name}__", _refusal(_what))


class RecordingNamespace:
    """The namespace `numpy`, on traces instead of arrays."""

    name = "numpy"

    def __init__(self, dtype: str) -> None:
        self.dtype = dtype
        self.numpy = namespace("numpy", dtype)
        self.steps = StepTable(self.numpy.float_type)

    def __getattr__(self, name: str) -> Any:
        function = getattr(self.numpy, name)  # raises Unavailable as numpy does
        if getattr(function, "nout", 0) == 1 and function.signature is None:  # a ufunc, or what takes the place of one
            record = self.__dict__[name] = lambda *xs: self.entry(function, *xs)
            return record
        if not callable(function):
            return function
        raise Unrecordable(name)

    def entry(self, ufunc: Any, *xs: Any) -> TracedArray:
        return TracedArray(self, self.steps.entry(ufunc, *[self.lifted(x, xs) for x in xs]))

    def lifted(self, x: Any, beside: Sequence[Any]) -> PlanValue:
        """A trace, or a number in the type that it has in arithmetic with arrays."""
        if type(x) is TracedArray:
            return x.value
        if isinstance(x, np.generic) or (isinstance(x, np.ndarray) and not x.shape):
            return self.steps.number(x)
        if isinstance(x, np.ndarray):
            return self.steps.array(x)
        if type(x) is bool:
            return self.steps.number(np.bool_(x))
        if type(x) not in (int, float):
            raise Unrecordable(type(x).__name__)
        whole = type(x) is int and all(y.dtype.kind in "iu" for y in beside if type(y) is TracedArray)
        return self.steps.number(np.int64(x) if whole else self.steps.float_type.type(x))

    # --- what is not a ufunc, under NumPy's names -----------------------------------------------------------

    def where(self, condition: Any, x: Any, y: Any) -> TracedArray:
        pair = (x, y)
        chosen = self.lifted(condition, ())
        if chosen.dtype.kind != "b":
            raise Unrecordable("a condition that is not a truth value")
        return TracedArray(self, self.steps.choice(chosen, self.lifted(x, pair), self.lifted(y, pair)))

    def cast(self, x: TracedArray, kind: str) -> TracedArray:
        if kind == "int" and x.dtype.kind == "f":
            raise Unrecordable("a check of whole numbers")
        return TracedArray(self, self.steps.cast(x.value, self.numpy.kind_type(kind)))

    def _reduced(self, ufunc: Any, x: TracedArray, axis: Any = None, keepdims: bool = False) -> TracedArray:
        if not x.size:
            raise Unrecordable("no entry")
        axes = range(x.ndim) if axis is None else (axis,) if isinstance(axis, int) else axis
        return TracedArray(self, self.steps.reduce(ufunc, x.value, tuple(sorted(i % x.ndim for i in axes)), keepdims))

    sum = partialmethod(_reduced, np.add)
    max = partialmethod(_reduced, np.maximum)
    min = partialmethod(_reduced, np.minimum)

    def reshape(self, x: TracedArray, shape: tuple[int, ...]) -> TracedArray:
        return TracedArray(self, self.steps.view("reshape", x.value, shape, shape))

    def frexp(self, x: TracedArray) -> tuple[Any, Any]:
        """The exponent alone, for what may be scaled by a power of two."""
        return None, Exponent(x)

    def ldexp(self, x: TracedArray, exponent: Any) -> TracedArray:
        """A number times the power of two at or below a positive normal number; below them all the smallest power.

        The distance to the next number is that power, so many digits down.
        """
        if type(exponent) is not Exponent or exponent.less != 1:
            raise Unrecordable("a power of two")
        kind = exponent.of.dtype.type
        power = self.entry(np.multiply, self.entry(np.spacing, exponent.of), kind(2.0 ** np.finfo(kind).nmant))
        return self.entry(np.multiply, x, power)

    def expand_dims(self, x: TracedArray, axis: Any) -> TracedArray:
        axes = (axis,) if isinstance(axis, int) else axis
        rank = x.ndim + len(axes)
        places = {i % rank for i in axes}
        rest = iter(x.shape)
        return self.reshape(x, tuple([1 if i in places else next(rest) for i in range(rank)]))

    def broadcast_to(self, x: TracedArray, shape: tuple[int, ...]) -> TracedArray:
        if len(shape) != x.ndim:
            x = self.reshape(x, (1,) * (len(shape) - x.ndim) + x.shape)
        return TracedArray(self, self.steps.view("broadcast", x.value, shape, shape))

    def transpose(self, x: TracedArray, axes: tuple[int, ...]) -> TracedArray:
        shape = tuple([x.shape[axis] for axis in axes])
        return TracedArray(self, self.steps.view("permute", x.value, tuple(axes), shape))

    def matmul(self, x: TracedArray, y: TracedArray) -> TracedArray:
        if x.ndim < 2 or x.ndim != y.ndim or x.shape[:-2] != y.shape[:-2] or x.dtype != y.dtype:
            raise Unrecordable("a product of other shapes")
        return TracedArray(self, self.steps.product(x.value, y.value))

    def place(self, x: TracedArray, shape: tuple[int, ...], slices: tuple[Any, ...]) -> TracedArray:
        parts = slices
        if slices[:1] == (Ellipsis,):
            before = shape[: len(shape) - len(slices) + 1]
            parts = (*[slice(0, n, 1) for n in before], *slices[1:])
        if len(parts) != len(shape):
            raise Unrecordable("a place that is not a slice")
        return TracedArray(self, self.steps.place(x.value, shape, parts))

    def concatenate(self, xs: Sequence[TracedArray], axis: int) -> TracedArray:
        return TracedArray(self, self.steps.join([x.value for x in xs], axis % xs[0].ndim))

    def zeros_like(self, x: TracedArray) -> TracedArray:
        return TracedArray(self, self.steps.number(x.dtype.type(0), x.shape))

    def ones_like(self, x: TracedArray) -> TracedArray:
        return TracedArray(self, self.steps.number(x.dtype.type(1), x.shape))


class Exponent:
    """The exponent that `frexp` gives of a number, less a whole number."""

    __slots__ = ("less", "of")

    def __init__(self, of: TracedArray, less: int = 0) -> None:
        self.of = of
        self.less = less

    def __sub__(self, less: int) -> Exponent:
        return Exponent(self.of, self.less + less)


class OperationRecorder:
    """Records operations one by one: by their `impl` on traces, or as a call of it as it stands.

    With `exact` the steps give the bits of the `impl`s: whatever may be added up in another order is a call.
    """

    def __init__(self, dtype: str, faithful: bool = False, exact: bool = False) -> None:
        self.recorder = RecordingNamespace(dtype)
        self.steps, self.xp = self.recorder.steps, self.recorder.numpy
        self.steps.faithful = faithful or exact
        self.exact = exact
        self._simple: dict[Any, Any] = {}  # primitives that are one ufunc
        self._opaque: set[Any] = set()

    def constant(self, node: Node) -> PlanValue:
        """A number that fills the shape of its node."""
        return self.steps.number(self.xp.array(nearest_float(node.params["value"]), node.type.kind), node.type.shape)

    def value(self, node: Node, args: list[PlanValue], lead: Shape = ()) -> PlanValue:
        """What an operation gives; `lead` is the batch axis that some of its operands have."""
        steps, primitive = self.steps, node.primitive
        steps.node = node
        ufunc = self._simple.get(primitive)
        if ufunc is not None and not node.params:
            return filled(steps, steps.entry(ufunc, *args), lead + node.type.shape)
        params = impl_params(node)
        if lead and not primitive.pointwise:
            args = [batched(steps, value, lead, arg.type.shape) for value, arg in zip(args, node.args, strict=True)]
        assert primitive.impl is not None
        called = self.exact and not primitive.pointwise and primitive.name not in MOVES
        if primitive not in self._opaque and not called:
            before = len(steps.ops)
            try:
                trace = primitive.impl(self.recorder, *[TracedArray(self.recorder, arg) for arg in args], **params)
            except (Unrecordable, Unavailable, TypeError, AttributeError):
                trace = None
            value = filled(steps, trace.value, lead + node.type.shape) if type(trace) is TracedArray else None
            dtype = self.xp.kind_type(node.type.kind)
            if value is not None and value.shape == lead + node.type.shape and value.dtype == dtype:
                if len(steps.ops) == before + 1 and not params and steps.ops[-1].kind == ENTRY:
                    op = steps.ops[-1]
                    if list(op.args) == args:
                        self._simple[primitive] = op.function
                return value
            self._opaque.add(primitive)
        return self.call(node, args, lead)

    def call(self, node: Node, args: list[PlanValue], lead: Shape = ()) -> PlanValue:
        """A call of the `impl` of an operation."""
        params = impl_params(node)
        assert node.primitive.impl is not None
        whole = ImplCall(node.primitive.impl, self.xp, params)
        dtype = self.xp.kind_type(node.type.kind)
        return self.steps.make(CALL, whole, tuple(args), tuple(params.items()), lead + node.type.shape, dtype)

    # --- loops ----------------------------------------------------------------------------------------------

    def body(
        self,
        scan: Scan,
        positions: Iterable[int],
        values: dict[int, PlanValue],
        iterations: Shape = (),
        lead: Shape = (),
    ) -> None:
        """Record steps of the body of a loop, and add their values to those in `values`, by position.

        Steps that differ from iteration to iteration have `iterations` in front: none for one iteration, or their
        number; then all have the batch axes `lead`.
        """
        body, varying = scan.body, scan.split().varying
        for at in positions:
            step = body.steps[at]
            if at in values:
                continue
            if step.primitive is CONSTANT:
                values[at] = self.constant(step)
                continue
            args = [values[body.positions[arg]] for arg in step.args]
            own = (*iterations, *lead) if at in varying else lead
            if is_reader(step):
                inner = scan.inner[at]
                for reader, value in zip(inner.readers, self.scanned(inner, args, own), strict=True):
                    values[body.positions[reader]] = value
            else:
                values[at] = self.value(step, args, own)

    def scanned(self, scan: Scan, args: Sequence[PlanValue], lead: Shape = ()) -> list[PlanValue]:
        """The values of the readers of a loop that runs by itself, as one step."""
        return self.line(
            LoopCall(scan, self.xp, lead), args, [Type(node.type.kind, lead + node.shape) for node in scan.readers]
        )

    def line(self, function: Any, args: Sequence[PlanValue], types: Sequence[Type]) -> list[PlanValue]:
        """What a function leaves in a line, one array after the other."""
        kinds = {type_.kind for type_ in types}
        dtype = np.dtype(self.xp.kind_type(kinds.pop()) if len(kinds) == 1 else np.float64)
        line = self.steps.make(SCAN, function, tuple(args), None, (sum([type_.size for type_ in types]),), dtype)
        values, start = [], 0
        for type_ in types:
            stop = start + type_.size
            part = self.steps.make(VIEW, "slice", (line,), (("slice", start, stop, 1),), (type_.size,), dtype)
            value = self.steps.make(VIEW, "reshape", (part,), type_.shape, type_.shape, dtype)
            values.append(self.steps.cast(value, np.dtype(self.xp.kind_type(type_.kind))))
            start = stop
        return values


def filled(steps: StepTable, value: PlanValue, shape: tuple[int, ...]) -> PlanValue:
    """A result in the shape of its node."""
    return steps.number(value.number, shape) if value.number is not None else value


def lead_of(node: Node, args: Sequence[PlanValue]) -> Shape:
    """The batch axis of a result, from those of its operands."""
    for value, arg in zip(args, node.args, strict=True):
        if len(value.shape) > len(arg.type.shape):
            return value.shape[: len(value.shape) - len(arg.type.shape)]
    return ()


def batched(steps: StepTable, value: PlanValue, lead: Shape, shape: Shape) -> PlanValue:
    """A value with the batch axis in front, its entries repeated along it where it has none."""
    raised = steps.raised(value, len(lead) + len(shape))
    return steps.view("broadcast", raised, lead + shape, lead + shape)


class LoopCall:
    """A loop as the function of a step, which puts the values of its readers into a line."""

    def __init__(self, scan: Scan, xp: Any, lead: Shape) -> None:
        self.scan, self.xp, self.lead = scan, xp, lead
        self.ranks = tuple([len(arg.shape) for arg in scan.readers[0].args])

    def __call__(self, *arrays: Any) -> None:
        start = 0
        for reader, value in zip(self.scan.readers, self.scan(self.xp, *arrays[:-1], ranks=self.ranks), strict=True):
            part = arrays[-1][start : start + reader.type.size * prod(self.lead)]
            part.reshape(self.lead + reader.shape)[...] = value
            start += part.size

    def __repr__(self) -> str:
        return f"{self.scan.count} iterations of {len(self.scan.order)} steps"


class ImplCall:
    """An `impl` with its namespace and parameters, which are a part of the step's key."""

    __slots__ = ("impl", "params", "xp")

    def __init__(self, impl: Callable[..., Any], xp: Any, params: dict[str, Any]) -> None:
        self.impl = impl
        self.xp = xp
        self.params = params

    def __call__(self, *xs: Any) -> Any:
        return self.impl(self.xp, *xs, **self.params)

    def __eq__(self, other: object) -> bool:
        return type(other) is ImplCall and self.impl is other.impl

    def __hash__(self) -> int:
        return hash(self.impl)
