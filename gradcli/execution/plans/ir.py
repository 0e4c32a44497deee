"""The intermediate representation of plans: steps on arrays, with the values that they read and give."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gradcli.graph.node import Node

    Shape = tuple[int, ...]

ENTRY, CHOICE, CAST, VIEW, REDUCE, PRODUCT, PLACE, ADDED, JOIN, COPY, CALL, SCAN = (
    "entry", "choice", "cast", "view", "reduce", "product", "place", "added", "join", "copy", "call", "scan",
)  # fmt: skip


DTYPES = {type(np.dtype(kind)) for kind in ("f8", "f4", "i8", "?")}


class Value:
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

    def __repr__(self) -> str:
        return f"<%{self.serial} {self.dtype}{list(self.shape)}>"


class Op:
    """One step: what kind it is, the function or the parameters that it has, its operands, its result."""

    __slots__ = ("args", "function", "kind", "node", "out", "params")

    def __init__(self, kind: str, function: Any, args: tuple[Value, ...], params: Any, out: Value, node: Any) -> None:
        self.kind = kind
        self.function = function
        self.args = args
        self.params = params
        self.out = out
        self.node = node

    def __repr__(self) -> str:
        name = getattr(self.function, "__name__", self.function)
        return f"{self.out} = {self.kind} {name}({', '.join(f'%{arg.serial}' for arg in self.args)}) {self.params}"


class Recording:
    """Steps in order, the inputs among their operands, and what the outputs are."""

    __slots__ = ("inputs", "ops", "outputs")

    def __init__(self, ops: list[Any], inputs: list[tuple[Node, Value]], outputs: list[Value]) -> None:
        self.ops = ops
        self.inputs = inputs
        self.outputs = outputs


def common(shapes: Sequence[Shape]) -> Shape:
    """The shape of an entry-by-entry result."""
    first = shapes[0]
    if all(shape == first for shape in shapes):
        return first
    return tuple(np.broadcast_shapes(*shapes))


def bare(x: Value) -> Value:
    """What a ufunc repeats by itself: the small array that a broadcast repeats."""
    op = x.op
    return op.args[0] if op is not None and op.kind == VIEW and op.function == "broadcast" else x


def unrepeated(x: Value, axis: int) -> int | None:
    """1 where all entries along an axis are equal by construction, None where that is not known."""
    if x.number is not None:
        return 1
    op = x.op
    if op is not None and op.kind == VIEW and op.function == "broadcast" and op.args[0].shape[axis] == 1:
        return 1
    return None


def base(value: Value) -> Value:
    """The value whose memory a view shows."""
    while value.op is not None and value.op.kind == VIEW:
        value = value.op.args[0]
    return value


def made_by(value: Value) -> Op:
    """The step that gives a value, which is neither an input nor a number."""
    assert value.op is not None
    return value.op


def in_order(x: Value) -> bool:
    """Whether the entries certainly stand in C order without gaps."""
    op = x.op
    while op is not None and op.kind == VIEW:
        if op.function != "reshape":
            return False
        op = op.args[0].op
    return True


def plain(part: Any) -> Any:
    """A part of an index that can be a key: slices as tuples."""
    return ("slice", part.start, part.stop, part.step) if isinstance(part, slice) else part


def index_of(parts: tuple[Any, ...]) -> tuple[Any, ...]:
    """The index that `plain` parts stand for."""
    return tuple([slice(*part[1:]) if isinstance(part, tuple) else part for part in parts])


def live(ops: Sequence[Op], outputs: Sequence[Value]) -> list[Op]:
    """The steps that the outputs need, in order."""
    needed = {value.serial for value in outputs}
    kept = []
    for op in reversed(ops):
        if op.out.serial in needed:
            kept.append(op)
            needed.update([arg.serial for arg in op.args])
    kept.reverse()
    return kept
