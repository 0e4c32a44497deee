"""The intermediate representation of plans: steps on arrays, with the values that they read and give."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gradcli.graph.node import Node

    Shape = tuple[int, ...]

ENTRY, CHOICE, CAST, VIEW, REDUCE, PRODUCT, PLACE, ADDED, JOIN, COPY, CALL, SCAN = (
    "entry", "choice", "cast", "view", "reduce", "product", "place", "added", "join", "copy", "call", "scan",
)  # fmt: skip
RESHAPE, BROADCAST, PERMUTE, SLICE = "reshape", "broadcast", "permute", "slice"  # the functions of a VIEW

Links = tuple[list[tuple[int, int, int]], list[tuple[int, int, int, int]]]
DTYPES = {type(np.dtype(kind)) for kind in ("f8", "f4", "i8", "?")}


class PlanValue:
    """An array that the plan will hold: what step gives it, or which number, constant or input it is."""

    __slots__ = ("array", "constant", "dtype", "leaf", "nbytes", "number", "op", "serial", "shape", "size")

    def __init__(self, serial: int, shape: Shape, dtype: Any) -> None:
        self.serial = serial
        self.shape = shape
        self.dtype = dtype
        self.size = prod(shape)
        self.nbytes: int = self.size * dtype.itemsize
        self.op: Op | None = None
        self.number: Any = None  # a NumPy scalar that fills the shape
        self.array: Any = None  # of constants
        self.leaf: Node | None = None
        self.constant = False


class AxisMap(NamedTuple):
    """Where the entries of an axis of an operand go along an axis of the result.

    Entry k of the result's `axis` is made of entry (start + k*step)/spread, if that is a whole number and there is one.
    """

    axis: int
    start: int = 0
    step: int = 1
    spread: int = 1


Access = list[AxisMap | None]  # by axis of an operand; None where all its entries may be read for one of the result


class Op:
    """One step: what kind it is, the function or the parameters that it has, its operands, its result."""

    __slots__ = ("_accesses", "_links", "args", "function", "kind", "node", "out", "params")

    def __init__(
        self, kind: str, function: Any, args: tuple[PlanValue, ...], params: Any, out: PlanValue, node: Any
    ) -> None:
        self.kind = kind
        self.function = function
        self.args = args
        self.params = params
        self.out = out
        self.node = node
        self._accesses: tuple[list[Access], set[int]] | None = None
        self._links: Links | None = None

    def accesses(self) -> tuple[list[Access], set[int]]:
        """How the step reads each operand, and the axes of the result of which all entries have to be made."""
        if self._accesses is None:
            self._accesses = _accesses(self)
        return self._accesses

    def links(self) -> Links:
        """Axes along which entry i is made of entry i: (operand, its axis, axis of the result); and those added up.

        The latter are (operand, axis, operand, axis), for a sum over an axis the same one twice.
        """
        if self._links is None:
            along = []
            for position, (arg, axes) in enumerate(zip(self.args, self.accesses()[0], strict=True)):
                for i, axis in enumerate(axes if arg.number is None else ()):
                    plain = axis is not None and axis[1:] == (0, 1, 1)
                    if axis is not None and plain and arg.shape[i] == self.out.shape[axis.axis] > 1:
                        along.append((position, i, axis.axis))
            rank = len(self.out.shape)
            added = [(0, i, 0, i) for i in self.params] if self.kind == REDUCE else []
            self._links = along, [(0, rank - 1, 1, rank - 2)] if self.kind == PRODUCT else added
        return self._links


class RecordedSteps:
    """Steps in order, the inputs among their operands, and what the outputs are."""

    __slots__ = ("inputs", "ops", "outputs")

    def __init__(self, ops: list[Any], inputs: list[tuple[Node, PlanValue]], outputs: list[PlanValue]) -> None:
        self.ops = ops
        self.inputs = inputs
        self.outputs = outputs


def common(shapes: Sequence[Shape]) -> Shape:
    """The shape of an entry-by-entry result."""
    first = shapes[0]
    if all(shape == first for shape in shapes):
        return first
    return tuple(np.broadcast_shapes(*shapes))


def bare(x: PlanValue) -> PlanValue:
    """What a ufunc repeats by itself: the small array that a broadcast repeats."""
    op = x.op
    return op.args[0] if op is not None and op.kind == VIEW and op.function == BROADCAST else x


def unrepeated(x: PlanValue, axis: int) -> int | None:
    """1 where all entries along an axis are equal by construction, None where that is not known."""
    if x.number is not None:
        return 1
    op = x.op
    if op is not None and op.kind == VIEW and op.function == BROADCAST and op.args[0].shape[axis] == 1:
        return 1
    return None


def is_zero(value: PlanValue) -> bool:
    """Whether a value is the number 0, of either sign, everywhere."""
    return value.number is not None and bool(value.number == 0)


def base(value: PlanValue) -> PlanValue:
    """The value whose memory a view shows."""
    while value.op is not None and value.op.kind == VIEW:
        value = value.op.args[0]
    return value


def made_by(value: PlanValue) -> Op:
    """The step that gives a value, which is neither an input nor a number."""
    assert value.op is not None
    return value.op


def in_order(x: PlanValue) -> bool:
    """Whether the entries certainly stand in C order without gaps."""
    op = x.op
    while op is not None and op.kind == VIEW:
        if op.function != RESHAPE:
            return False
        op = op.args[0].op
    return True


def plain(part: Any) -> Any:
    """A part of an index that can be a key: slices as tuples."""
    return (SLICE, part.start, part.stop, part.step) if isinstance(part, slice) else part


def index_of(parts: tuple[Any, ...]) -> tuple[Any, ...]:
    """The index that `plain` parts stand for."""
    return tuple([slice(*part[1:]) if isinstance(part, tuple) else part for part in parts])


def live(ops: Sequence[Op], outputs: Sequence[PlanValue]) -> list[Op]:
    """The steps that the outputs need, in order."""
    needed = {value.serial for value in outputs}
    kept = []
    for op in reversed(ops):
        if op.out.serial in needed:
            kept.append(op)
            needed.update([arg.serial for arg in op.args])
    kept.reverse()
    return kept


# --- which entries a step reads ---------------------------------------------------------------------------------


def _accesses(op: Op) -> tuple[list[Access], set[int]]:
    kind, rank = op.kind, len(op.out.shape)
    if kind in (ENTRY, CHOICE, CAST, COPY) or (kind == VIEW and op.function == BROADCAST):
        return [_broadcast_access(arg.shape, op.out.shape) for arg in op.args], set()
    if kind == VIEW:
        return _view_access(op)
    if kind == REDUCE:
        kept = iter(range(rank))
        return [[None if i in op.params else AxisMap(next(kept)) for i in range(len(op.args[0].shape))]], set()
    if kind == PRODUCT:
        lead: Access = [AxisMap(i) for i in range(rank - 2)]
        return [[*lead, AxisMap(rank - 2), None], [*lead, None, AxisMap(rank - 1)]], set()
    if kind == PLACE:
        axes, fixed = _place_access(op, op.args[0])
        return [axes], fixed
    if kind == ADDED:
        axes, fixed = _place_access(op, op.args[1])
        return [_broadcast_access(op.args[0].shape, op.out.shape), axes], fixed
    if kind == JOIN:
        accesses: list[Access] = []
        start = 0
        for arg in op.args:
            accesses.append([AxisMap(i, -start if i == op.params else 0) for i in range(rank)])
            start += arg.shape[op.params]
        return accesses, set()
    return [[None] * len(arg.shape) for arg in op.args], set(range(rank))


def _broadcast_access(shape: Shape, out: Shape) -> Access:
    shift = len(out) - len(shape)
    return [AxisMap(i + shift) if n == out[i + shift] else None for i, n in enumerate(shape)]


def _view_access(op: Op) -> tuple[list[Access], set[int]]:
    shape, out = op.args[0].shape, op.out.shape
    axes: Access = [None] * len(shape)
    if op.function == PERMUTE:
        for j, axis in enumerate(op.params):
            axes[axis] = AxisMap(j)
        return [axes], set()
    if op.function == SLICE:
        for i, part in enumerate(index_of(op.params)):
            if (part.step or 1) > 0:
                axes[i] = AxisMap(i, part.start, part.step or 1)
        return [axes], {i for i, axis in enumerate(axes) if axis is None}
    i, j, before, beside = 0, 0, 1, 1  # a reshape: axes with as many entries in front of them
    whole = set(range(len(out)))
    while i < len(shape) and j < len(out):
        if before == beside and shape[i] == out[j]:
            axes[i] = AxisMap(j)
            whole.discard(j)
            before, beside, i, j = before * shape[i], beside * out[j], i + 1, j + 1
        elif before * shape[i] <= beside * out[j] and (before < beside or shape[i] == 1 or out[j] != 1):
            before, i = before * shape[i], i + 1
        else:
            beside, j = beside * out[j], j + 1
    return [axes], whole


def _place_access(op: Op, x: PlanValue) -> tuple[Access, set[int]]:
    """How entries that are put among zeros, or added to a part, come to their places."""
    shape = op.out.shape
    if len(x.shape) != len(shape):
        return [None] * len(x.shape), set(range(len(shape)))
    axes: Access = []
    for i, (part, n) in enumerate(zip(index_of(op.params[1]), shape, strict=True)):
        start, stop, step = part.indices(n)
        filled = step > 0 and x.shape[i] == len(range(start, stop, step))
        axes.append(AxisMap(i, -start, 1, step) if filled else None)
    return axes, {i for i, axis in enumerate(axes) if axis is None or axis.spread > 1}
