"""Array operations go in one by one, a list without repetitions comes out; it knows shapes, but computes nothing.

Equal steps are one. Local rules apply while steps are made: numbers are folded, sums and products over repeated entries
become multiplications, a view of a view is one view. The rules change the order of roundings at most.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.execution.plans.values import (
    ADDED,
    CALL,
    CAST,
    CHOICE,
    COPY,
    DTYPES,
    ENTRY,
    JOIN,
    PLACE,
    PRODUCT,
    REDUCE,
    VIEW,
    Op,
    Value,
    bare,
    common,
    in_order,
    plain,
    power_of_two,
    scaled,
    unrepeated,
)  # fmt: skip

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gradcli.graph.node import Node

    Shape = tuple[int, ...]

FEW = 1 << 10  # entries up to which another exponential is cheaper than a choice


class Steps:
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

    def leaf(self, node: Node, dtype: Any) -> Value:
        """An input."""
        value = self._value(node.type.shape, dtype)
        value.leaf = node
        return value

    # --- steps ----------------------------------------------------------------------------------------

    def make(self, kind: str, function: Any, args: tuple[Value, ...], params: Any, shape: Shape, dtype: Any) -> Value:
        key = (kind, function, tuple([arg.serial for arg in args]), params)
        known = self._table.get(key)
        if known is not None:
            return known
        out = self._value(shape, dtype)
        out.constant = all(arg.constant for arg in args)
        out.op = Op(kind, function, args, params, out, self.node)
        self.ops.append(out.op)
        self._table[key] = out
        return out

    def entry(self, ufunc: Any, *xs: Value) -> Value:
        """A ufunc with one result, entry by entry."""
        shape = xs[0].shape
        for x in xs:
            if x.shape != shape or x.number is not None or (x.op is not None and x.op.function == "broadcast"):
                return self._uneven(ufunc, xs)
        return self._even(ufunc, xs, shape)

    def _uneven(self, ufunc: Any, xs: tuple[Value, ...]) -> Value:
        """Operands of several shapes, with numbers or repeated entries among them."""
        shape = common([x.shape for x in xs])
        if all(x.number is not None for x in xs):
            with np.errstate(all="ignore"):
                return self.number(ufunc(*[x.number for x in xs]), shape)
        if shape:
            xs = tuple([bare(x) for x in xs])
            small = common([x.shape for x in xs if x.number is None])
            if small != shape:
                if len(small) != len(shape):
                    xs = tuple([x if x.number is not None else self._raised(x, len(shape)) for x in xs])
                    small = common([x.shape for x in xs if x.number is None])
                if small != shape:
                    xs = tuple([x if x.number is None else self.number(x.number) for x in xs])
                    return self.view("broadcast", self.entry(ufunc, *xs), shape, shape)
        return self._even(ufunc, xs, shape)

    def _even(self, ufunc: Any, xs: tuple[Value, ...], shape: Shape) -> Value:
        simpler = self._simpler(ufunc, xs, shape)
        if simpler is not None:
            return simpler
        if len(xs) == 2 and ufunc in (np.add, np.multiply):
            if xs[0] is xs[1] and ufunc is np.multiply:
                ufunc, xs = np.square, xs[:1]
            elif xs[0].serial > xs[1].serial:
                xs = xs[::-1]
        key = (ufunc, *[x.dtype for x in xs])
        dtype = self._dtypes.get(key)
        if dtype is None:
            dtype = self._dtypes[key] = ufunc.resolve_dtypes((*[x.dtype for x in xs], None))[-1]
        return self.make(ENTRY, ufunc, xs, None, shape, dtype)

    def _raised(self, x: Value, rank: int) -> Value:
        """x with axes of size 1 in front."""
        shape = (1,) * (rank - len(x.shape)) + x.shape
        return self.view("reshape", x, shape, shape)

    def _simpler(self, ufunc: Any, xs: tuple[Value, ...], shape: Shape) -> Value | None:
        """The same numbers by less work, or None. Powers of two may move: a product with one is not rounded."""
        if len(xs) != 2:
            below = xs[0].op
            negated = ufunc is np.absolute and below is not None and below.function is np.negative
            return self.entry(ufunc, below.args[0]) if negated and below is not None else None
        one, other = xs
        if ufunc is np.add:
            return self._added(xs, shape)
        if ufunc is np.not_equal and other.number is not None and other.number == 0:
            return (
                one.op.args[0]
                if one.op is not None and one.op.kind == CAST and one.op.args[0].dtype.kind == "b"
                else None
            )
        if one.dtype != self.float_type or other.dtype != self.float_type:
            return None
        if ufunc is np.divide and (turned := power_of_two(other.number)) is not None:
            return self.entry(np.multiply, one, self.number(1 / turned))
        if ufunc is not np.multiply:
            return None
        if other.number is not None:
            one, other = other, one
        if one.number is not None:
            if one.number == 1:
                return other if other.shape == shape else None
            scale, rest = scaled(other)
            if scale is not None and power_of_two(one.number) is not None:
                return self.entry(np.multiply, self.number(one.number * scale), rest)
            return None
        for big, small in ((one, other), (other, one)):
            scale, rest = scaled(big)
            if scale is not None and small.size < big.size:
                return self.entry(np.multiply, rest, self.entry(np.multiply, self.number(scale), small))
        return None

    def _added(self, xs: tuple[Value, ...], shape: Shape) -> Value | None:
        """A sum with entries that stand among zeros: the zeros need not be added."""
        for one, other in (xs, xs[::-1]):
            placed = other.op
            if placed is not None and placed.kind == PLACE and one.shape == shape and one.dtype == other.dtype:
                if one.number is not None and one.number == 0:
                    return other
                return self.make(ADDED, None, (one, placed.args[0]), placed.params, shape, one.dtype)
        return None

    def choice(self, condition: Value, x: Value, y: Value) -> Value:
        """x where the condition holds, else y."""
        shape = common([condition.shape, x.shape, y.shape])
        if condition.number is not None:
            chosen = x if condition.number else y
            if chosen.number is not None:
                return self.number(chosen.number, shape)
            if chosen.shape == shape:
                return chosen
        condition, x, y = bare(condition), bare(x), bare(y)
        if (plain := self._unbranched(condition, x, y)) is not None and plain.shape == shape:
            return plain
        if y.number is not None and y.number == 0 and (negated := self._negated(x)) is not None:
            return self.entry(np.negative, self.choice(condition, negated, self.number(y.number, shape)))
        small = common([value.shape for value in (condition, x, y) if value.number is None])
        if small != shape:
            full = self.view("broadcast", self._raised(condition, len(shape)), shape, shape)
            return self.make(CHOICE, None, (full, x, y), None, shape, np.result_type(x.dtype, y.dtype))
        return self.make(CHOICE, None, (condition, x, y), None, shape, np.result_type(x.dtype, y.dtype))

    def _unbranched(self, condition: Value, x: Value, y: Value) -> Value | None:
        """The choices that a steady exponential makes, -|x| and exp(min(x, 0)), without a choice."""
        test = condition.op
        if test is None or test.function is not np.greater_equal or y.dtype != self.float_type:
            return None
        tested, bound = test.args
        if bound.number is None or bound.number != 0:
            return None
        if y is tested and x.op is not None and x.op.function is np.negative and x.op.args[0] is y:
            return self.entry(np.negative, self.entry(np.absolute, y))
        if x.number is not None and x.number == 1 and y.size < FEW and y.op is not None and y.op.function is np.exp:
            inner = y.op.args[0]
            if inner is self.entry(np.negative, self.entry(np.absolute, tested)):
                return self.entry(np.exp, self.entry(np.minimum, tested, bound))
        return None

    def cast(self, x: Value, dtype: Any) -> Value:
        """The same numbers in another type."""
        if x.dtype == dtype:
            return x
        if x.number is not None:
            return self.number(x.number.astype(dtype), x.shape)
        small = bare(x)
        if small is not x:
            return self.view("broadcast", self.cast(small, dtype), x.shape, x.shape)
        return self.make(CAST, None, (x,), np.dtype(dtype), x.shape, dtype)

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
        if kind == "reshape" and not self._reshapable(x, shape):
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

    def _reshapable(self, x: Value, shape: Shape) -> bool:
        """Whether a reshaped x is certainly a view: it is in C order, or only axes of size 1 come or go."""
        if [n for n in x.shape if n != 1] == [n for n in shape if n != 1]:
            return True
        return in_order(x)

    def reduce(self, ufunc: Any, x: Value, axes: Shape, keepdims: bool = False) -> Value:
        """A ufunc over axes, counted from the front."""
        if keepdims:
            shape = tuple([1 if i in axes else n for i, n in enumerate(x.shape)])
            return self.view("reshape", self.reduce(ufunc, x, axes), shape, shape)
        if not axes:
            return x
        shape = tuple([n for i, n in enumerate(x.shape) if i not in axes])
        if ufunc is np.add and x.dtype == self.float_type:
            below = x.op
            if x.number is not None:
                count = self.float_type.type(np.prod([x.shape[i] for i in axes], dtype=np.int64))
                with np.errstate(all="ignore"):
                    return self.number(x.number * count, shape)
            if below is not None and below.kind == VIEW and below.function == "broadcast":
                small = below.args[0]
                repeated = [i for i in axes if small.shape[i] != x.shape[i]]
                if repeated:
                    count = self.number(self.float_type.type(np.prod([x.shape[i] for i in repeated], dtype=np.int64)))
                    rest = tuple([i for i in axes if i not in repeated])
                    total = self.reduce(np.add, small, rest, True) if rest else small
                    full = tuple([1 if i in axes else n for i, n in enumerate(x.shape)])
                    return self.view(
                        "reshape",
                        self.view("broadcast", self.entry(np.multiply, total, count), full, full),
                        shape,
                        shape,
                    )
        if x.number is not None and ufunc is not np.add:
            return self.number(x.number, shape)
        dtype = np.dtype(np.int64) if ufunc is np.add and x.dtype.kind == "b" else x.dtype
        return self.make(REDUCE, ufunc, (x,), axes, shape, dtype)

    def product(self, x: Value, y: Value) -> Value:
        """The matrix product; what is repeated along an axis is multiplied once."""
        shape = (*x.shape[:-1], y.shape[-1])
        if x.dtype == y.dtype == self.float_type and min(x.shape[-1], *shape[-2:]) > 0:
            small = unrepeated(x, -2)
            if small is not None and x.shape[-2] > 1:
                row = self.product(self._narrow(x, -2), y)
                return self.view("broadcast", row, shape, shape)
            if unrepeated(y, -1) is not None and y.shape[-1] > 1:
                column = self.product(x, self._narrow(y, -1))
                return self.view("broadcast", column, shape, shape)
            inner = len(x.shape) - 1
            if unrepeated(x, -1) is not None and x.shape[-1] > 1:
                return self.entry(np.multiply, self._narrow(x, -1), self.reduce(np.add, y, (inner - 1,), True))
            if unrepeated(y, -2) is not None and x.shape[-1] > 1:
                return self.entry(np.multiply, self.reduce(np.add, x, (inner,), True), self._narrow(y, -2))
        for position, factor in enumerate((x, y)):
            if (negated := self._negated(factor)) is not None:
                pair = (negated, y) if position == 0 else (x, negated)
                return self.entry(np.negative, self.product(*pair))
        return self.make(PRODUCT, None, (self._dense(x), self._dense(y)), None, shape, x.dtype)

    def _negated(self, x: Value) -> Value | None:
        """What a value is the negative of, if it is."""
        op = x.op
        if op is not None and op.kind == ENTRY and op.function is np.negative and op.out.dtype == self.float_type:
            return op.args[0]
        return None

    def _narrow(self, x: Value, axis: int) -> Value:
        """The first entry along an axis of equal entries, the axis kept."""
        at = len(x.shape) + axis
        shape = tuple([1 if i == at else n for i, n in enumerate(x.shape)])
        if x.number is not None:
            return self.number(x.number, shape)
        assert x.op is not None
        return self.view("broadcast", x.op.args[0], shape, shape)

    def _dense(self, x: Value) -> Value:
        """A matrix as the libraries want it: no axis of it repeated."""
        if x.number is not None or (x.op is not None and x.op.kind == VIEW and x.op.function == "broadcast"):
            if any(unrepeated(x, axis) is not None for axis in (-1, -2)):
                return self.make(COPY, None, (x,), None, x.shape, x.dtype)
        return x

    def place(self, x: Value, shape: Shape, slices: tuple[Any, ...]) -> Value:
        """x among zeros."""
        return self.make(PLACE, None, (x,), (shape, tuple([plain(s) for s in slices])), shape, x.dtype)

    def join(self, xs: Sequence[Value], axis: int) -> Value:
        """Arrays one after the other along an axis, counted from the front."""
        total = sum(x.shape[axis] for x in xs)
        shape = (*xs[0].shape[:axis], total, *xs[0].shape[axis + 1 :])
        return self.make(JOIN, None, tuple(xs), axis, shape, np.result_type(*[x.dtype for x in xs]))

    def call(self, impl: Callable[..., Any], params: Any, xs: tuple[Value, ...], shape: Shape, dtype: Any) -> Value:
        """Anything else: a function of arrays that makes a new one."""
        return self.make(CALL, impl, xs, params, shape, dtype)
