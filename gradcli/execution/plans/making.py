"""Makes single steps without repetitions: numbers, arrays, and views, which are one step each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.execution.plans.values import COPY, DTYPES, VIEW, Op, Value, in_order

if TYPE_CHECKING:
    from gradcli.graph.node import Node

    Shape = tuple[int, ...]


class Making:
    """Makes steps; `node` is the node of the program that is being recorded, for messages."""

    def __init__(self, float_type: Any) -> None:
        self.float_type = np.dtype(float_type)
        self.ops: list[Op] = []
        self.node: Node | None = None
        self._table: dict[Any, Value] = {}
        self._count = 0
        self._dtypes: dict[Any, Any] = {}

    # --- what is given --------------------------------------------------------------------------------

    def _value(self, shape: Shape, dtype: Any) -> Value:
        self._count += 1
        return Value(self._count, shape, dtype if type(dtype) in DTYPES else np.dtype(dtype))

    def number(self, number: Any, shape: Shape = ()) -> Value:
        """A number that fills a shape."""
        scalar = np.asarray(number)[()]
        key = ("number", scalar.tobytes(), scalar.dtype, shape)
        known = self._table.get(key)
        if known is None:
            known = self._table[key] = self._value(shape, scalar.dtype)
            known.number, known.constant = scalar, True
        return known

    def array(self, array: Any) -> Value:
        """An array of constants."""
        value = self._value(array.shape, array.dtype)
        value.array, value.constant = array, True
        return value

    def leaf(self, node: Node, dtype: Any, lead: Shape = ()) -> Value:
        """An input, with further axes in front."""
        value = self._value(lead + node.type.shape, dtype)
        value.leaf = node
        return value

    def free(self, shape: Shape, dtype: Any) -> Value:
        """A value of which nothing is known but its shape and type."""
        return self._value(shape, dtype)

    # --- steps ----------------------------------------------------------------------------------------

    def make(self, kind: str, function: Any, args: tuple[Value, ...], params: Any, shape: Shape, dtype: Any) -> Value:
        key = (kind, function, tuple([arg.serial for arg in args]), params)
        known = self._table.get(key)
        if known is not None:
            return known
        out = self._table[key] = self._value(shape, dtype)
        for arg in args:
            if not arg.constant:
                break
        else:
            out.constant = True
        op = out.op = Op(kind, function, args, params, out, self.node)
        self.ops.append(op)
        return out

    def view(self, kind: str, x: Value, params: Any, shape: Shape) -> Value:
        """The entries of x, or some of them, under other positions: no memory of its own."""
        if x.number is not None:
            return self.number(x.number, shape)
        if shape == x.shape and kind in ("reshape", "broadcast"):
            return x
        if kind == "permute" and params == tuple(range(len(params))):
            return x
        below = x.op
        if kind == "reshape" and below is not None and below.kind == VIEW and below.function == "reshape":
            return self.view("reshape", below.args[0], shape, shape)
        if kind == "permute" and below is not None and below.kind == VIEW and below.function == "permute":
            axes = tuple([below.params[axis] for axis in params])
            return self.view("permute", below.args[0], axes, shape)
        if below is not None and below.function == "broadcast" and kind in ("permute", "slice"):
            return self.view("broadcast", self._moved(kind, below.args[0], x, params, shape), shape, shape)
        if kind == "reshape" and not self.reshapable(x, shape):
            x = self.make(COPY, None, (x,), None, x.shape, x.dtype)
        return self.make(VIEW, kind, (x,), params, shape, x.dtype)

    def _moved(self, kind: str, small: Value, x: Value, params: Any, shape: Shape) -> Value:
        """The entries of a small array where those of x, which repeats them, would be."""
        if kind == "permute":
            return self.view(kind, small, params, tuple([small.shape[axis] for axis in params]))
        rows = zip(small.shape, x.shape, params, shape, strict=True)
        parts = [(part, m) if n == size else (("slice", 0, 1, 1), 1) for n, size, part, m in rows]
        index = tuple([part for part, _ in parts])
        if all(part == ("slice", 0, n, 1) for part, n in zip(index, small.shape, strict=True)):
            return small
        return self.view(kind, small, index, tuple([m for _, m in parts]))

    def reshapable(self, x: Value, shape: Shape) -> bool:
        """Whether a reshaped x is certainly a view: it is in C order, or only axes of size 1 come or go."""
        if [n for n in x.shape if n != 1] == [n for n in shape if n != 1]:
            return True
        return in_order(x)

    def raised(self, x: Value, rank: int) -> Value:
        """x with axes of size 1 in front."""
        shape = (1,) * (rank - len(x.shape)) + x.shape
        return self.view("reshape", x, shape, shape)
