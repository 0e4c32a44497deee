"""Simplifies steps while they are recorded: equal steps are one, numbers are folded, repeated entries computed once.

The rules are local and change the order of roundings at most.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.execution.compiler import ir
from gradcli.execution.compiler.ir import (
    DTYPES,
    Op,
    PlanValue,
    bare,
    common,
    in_order,
    made_by,
    plain,
    unrepeated,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    Shape = tuple[int, ...]
    from gradcli.graph.node import Node

FEW = 1 << 10  # entries up to which a call costs more than what it computes


class StepTable:
    """The table of the steps that are made, each once. Unless they are `faithful`, zeros may change their signs.

    `node` is the node of the program that is being recorded, for messages.
    """

    faithful = False

    def __init__(self, float_type: Any) -> None:
        self.float_type = np.dtype(float_type)
        self.ops: list[Op] = []
        self.node: Node | None = None
        self._table: dict[Any, PlanValue] = {}
        self._count = 0
        self._dtypes: dict[Any, Any] = {}

    # --- what is given --------------------------------------------------------------------------------

    def _value(self, shape: Shape, dtype: Any) -> PlanValue:
        self._count += 1
        return PlanValue(self._count, shape, dtype if type(dtype) in DTYPES else np.dtype(dtype))

    def number(self, number: Any, shape: Shape = ()) -> PlanValue:
        """A number that fills a shape."""
        scalar = np.asarray(number)[()]
        key = ("number", scalar.tobytes(), scalar.dtype, shape)
        known = self._table.get(key)
        if known is None:
            known = self._table[key] = self._value(shape, scalar.dtype)
            known.number, known.constant = scalar, True
        return known

    def array(self, array: Any) -> PlanValue:
        """An array of constants."""
        value = self._value(array.shape, array.dtype)
        value.array, value.constant = array, True
        return value

    def leaf(self, node: Node, dtype: Any, lead: Shape = ()) -> PlanValue:
        """An input, with further axes in front."""
        value = self._value(lead + node.type.shape, dtype)
        value.leaf = node
        return value

    # --- steps ----------------------------------------------------------------------------------------

    def make(
        self, kind: str, function: Any, args: tuple[PlanValue, ...], params: Any, shape: Shape, dtype: Any
    ) -> PlanValue:
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

    def view(self, kind: str, x: PlanValue, params: Any, shape: Shape) -> PlanValue:
        """The entries of x, or some of them, under other positions: no memory of its own."""
        if x.number is not None:
            return self.number(x.number, shape)
        if shape == x.shape and kind in (ir.RESHAPE, ir.BROADCAST):
            return x
        if kind == ir.PERMUTE and params == tuple(range(len(params))):
            return x
        below = x.op
        if kind == ir.RESHAPE and below is not None and below.kind == ir.VIEW and below.function == ir.RESHAPE:
            return self.view(ir.RESHAPE, below.args[0], shape, shape)
        if kind == ir.PERMUTE and below is not None and below.kind == ir.VIEW and below.function == ir.PERMUTE:
            axes = tuple([below.params[axis] for axis in params])
            return self.view(ir.PERMUTE, below.args[0], axes, shape)
        if below is not None and below.function == ir.BROADCAST and kind in (ir.PERMUTE, ir.SLICE):
            return self.view(ir.BROADCAST, self._moved(kind, below.args[0], x, params, shape), shape, shape)
        if kind == ir.RESHAPE and not self.reshapable(x, shape):
            x = self.make(ir.COPY, None, (x,), None, x.shape, x.dtype)
        return self.make(ir.VIEW, kind, (x,), params, shape, x.dtype)

    def _moved(self, kind: str, small: PlanValue, x: PlanValue, params: Any, shape: Shape) -> PlanValue:
        """The entries of a small array where those of x, which repeats them, would be."""
        if kind == ir.PERMUTE:
            return self.view(kind, small, params, tuple([small.shape[axis] for axis in params]))
        rows = zip(small.shape, x.shape, params, shape, strict=True)
        parts = [(part, m) if n == size else ((ir.SLICE, 0, 1, 1), 1) for n, size, part, m in rows]
        index = tuple([part for part, _ in parts])
        if all(part == (ir.SLICE, 0, n, 1) for part, n in zip(index, small.shape, strict=True)):
            return small
        return self.view(kind, small, index, tuple([m for _, m in parts]))

    def reshapable(self, x: PlanValue, shape: Shape) -> bool:
        """Whether a reshaped x is certainly a view: it is in C order, or only axes of size 1 come or go."""
        if [n for n in x.shape if n != 1] == [n for n in shape if n != 1]:
            return True
        return in_order(x)

    def raised(self, x: PlanValue, rank: int) -> PlanValue:
        """x with axes of size 1 in front."""
        shape = (1,) * (rank - len(x.shape)) + x.shape
        return self.view(ir.RESHAPE, x, shape, shape)

    # --- entry by entry -------------------------------------------------------------------------------

    def entry(self, ufunc: Any, *xs: PlanValue) -> PlanValue:
        """A ufunc with one result, entry by entry."""
        shape = xs[0].shape
        for x in xs:
            if x.shape != shape or x.number is not None or (x.op is not None and x.op.function == ir.BROADCAST):
                return self._uneven(ufunc, xs)
        return self._even(ufunc, xs, shape)

    def _uneven(self, ufunc: Any, xs: tuple[PlanValue, ...]) -> PlanValue:
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
                    xs = tuple([x if x.number is not None else self.raised(x, len(shape)) for x in xs])
                    small = common([x.shape for x in xs if x.number is None])
                if small != shape:
                    xs = tuple([x if x.number is None else self.number(x.number) for x in xs])
                    return self.view(ir.BROADCAST, self.entry(ufunc, *xs), shape, shape)
        return self._even(ufunc, xs, shape)

    def _even(self, ufunc: Any, xs: tuple[PlanValue, ...], shape: Shape) -> PlanValue:
        if ufunc is np.add and (added := self._added(xs, shape)) is not None:
            return added
        if ufunc is np.add or ufunc is np.multiply:
            if xs[0] is xs[1] and ufunc is np.multiply:
                ufunc, xs = np.square, xs[:1]
            elif xs[0].serial > xs[1].serial:
                xs = xs[::-1]
        key = (ufunc, *[x.dtype for x in xs])
        dtype = self._dtypes.get(key)
        if dtype is None:
            dtype = self._dtypes[key] = ufunc.resolve_dtypes((*[x.dtype for x in xs], None))[-1]
        return self.make(ir.ENTRY, ufunc, xs, None, shape, dtype)

    def _added(self, xs: tuple[PlanValue, ...], shape: Shape) -> PlanValue | None:
        """A sum with entries that stand among zeros: the zeros need not be added."""
        for total, other in (xs, xs[::-1]):
            placed = other.op
            if placed is None or placed.kind != ir.PLACE:
                continue
            if total.shape == other.shape == shape and total.dtype == other.dtype:
                if ir.is_zero(total):
                    return other
                return self.make(ir.ADDED, None, (total, placed.args[0]), placed.params, shape, total.dtype)
        return None

    def choice(self, condition: PlanValue, x: PlanValue, y: PlanValue) -> PlanValue:
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
        zero = ir.is_zero(y) and not self.faithful
        if zero and (negated := self.negated(x)) is not None:
            return self.entry(np.negative, self.choice(condition, negated, self.number(y.number, shape)))
        small = common([value.shape for value in (condition, x, y) if value.number is None])
        if small != shape:
            condition = self.view(ir.BROADCAST, self.raised(condition, len(shape)), shape, shape)
        return self.make(ir.CHOICE, None, (condition, x, y), None, shape, np.result_type(x.dtype, y.dtype))

    def _unbranched(self, condition: PlanValue, x: PlanValue, y: PlanValue) -> PlanValue | None:
        """The choices that a steady exponential makes, -|x| and exp(min(x, 0)), without a choice."""
        test = condition.op
        if test is None or test.function is not np.greater_equal or y.dtype != self.float_type:
            return None
        tested, bound = test.args
        if not ir.is_zero(bound):
            return None
        if y is tested and x.op is not None and x.op.function is np.negative and x.op.args[0] is y:
            return self._minus_size(y)
        if x.number is not None and x.number == 1 and y.size < FEW and y.op is not None and y.op.function is np.exp:
            inner = y.op.args[0]
            if inner is self._minus_size(tested):
                return self.entry(np.exp, self.entry(np.minimum, tested, bound))
        return None

    def _minus_size(self, x: PlanValue) -> PlanValue:
        """-|x|: one call where calls are what it costs."""
        if x.size < FEW:
            return self.entry(np.copysign, x, self.number(self.float_type.type(-1)))
        return self.entry(np.negative, self.entry(np.absolute, x))

    def cast(self, x: PlanValue, dtype: Any) -> PlanValue:
        """The same numbers in another type."""
        if x.dtype == dtype:
            return x
        if x.number is not None:
            return self.number(x.number.astype(dtype), x.shape)
        small = bare(x)
        if small is not x:
            return self.view(ir.BROADCAST, self.cast(small, dtype), x.shape, x.shape)
        return self.make(ir.CAST, None, (x,), np.dtype(dtype), x.shape, dtype)

    def negated(self, x: PlanValue) -> PlanValue | None:
        """What a value is the negative of, if it is."""
        op = x.op
        if op is not None and op.kind == ir.ENTRY and op.function is np.negative and op.out.dtype == self.float_type:
            return op.args[0]
        return None

    # --- reductions, products, places -----------------------------------------------------------------

    def reduce(self, ufunc: Any, x: PlanValue, axes: Shape, keepdims: bool = False) -> PlanValue:
        """A ufunc over axes, counted from the front."""
        if keepdims:
            shape = tuple([1 if i in axes else n for i, n in enumerate(x.shape)])
            return self.view(ir.RESHAPE, self.reduce(ufunc, x, axes), shape, shape)
        if not axes:
            return x
        shape = tuple([n for i, n in enumerate(x.shape) if i not in axes])
        if ufunc is np.add and x.dtype == self.float_type and x.number is not None:
            count = self.float_type.type(np.prod([x.shape[i] for i in axes], dtype=np.int64))
            with np.errstate(all="ignore"):
                return self.number(x.number * count, shape)
        if x.number is not None and ufunc is not np.add:
            return self.number(x.number, shape)
        dtype = np.dtype(np.int64) if ufunc is np.add and x.dtype.kind == "b" else x.dtype
        return self.make(ir.REDUCE, ufunc, (x,), axes, shape, dtype)

    def product(self, x: PlanValue, y: PlanValue) -> PlanValue:
        """The matrix product; what is repeated along an axis is multiplied once."""
        shape = (*x.shape[:-1], y.shape[-1])
        if x.dtype == y.dtype == self.float_type and min(x.shape[-1], *shape[-2:]) > 0:
            small = unrepeated(x, -2)
            if small is not None and x.shape[-2] > 1:
                row = self.product(self._narrow(x, -2), y)
                return self.view(ir.BROADCAST, row, shape, shape)
            if unrepeated(y, -1) is not None and y.shape[-1] > 1:
                column = self.product(x, self._narrow(y, -1))
                return self.view(ir.BROADCAST, column, shape, shape)
        for position, factor in enumerate((x, y)):
            if (negated := self.negated(factor)) is not None:
                pair = (negated, y) if position == 0 else (x, negated)
                return self.entry(np.negative, self.product(*pair))
        return self.make(ir.PRODUCT, None, (self._dense(x), self._dense(y)), None, shape, x.dtype)

    def _narrow(self, x: PlanValue, axis: int) -> PlanValue:
        """The first entry along an axis of equal entries, the axis kept."""
        at = len(x.shape) + axis
        shape = tuple([1 if i == at else n for i, n in enumerate(x.shape)])
        if x.number is not None:
            return self.number(x.number, shape)
        assert x.op is not None
        return self.view(ir.BROADCAST, x.op.args[0], shape, shape)

    def _dense(self, x: PlanValue) -> PlanValue:
        """A matrix as the libraries take it: no axis of it repeated."""
        if x.number is not None or (x.op is not None and x.op.kind == ir.VIEW and x.op.function == ir.BROADCAST):
            if any(unrepeated(x, axis) is not None for axis in (-1, -2)):
                return self.make(ir.COPY, None, (x,), None, x.shape, x.dtype)
        return x

    def place(self, x: PlanValue, shape: Shape, slices: tuple[Any, ...]) -> PlanValue:
        """x among zeros."""
        return self.make(ir.PLACE, None, (x,), (shape, tuple([plain(s) for s in slices])), shape, x.dtype)

    def join(self, xs: Sequence[PlanValue], axis: int) -> PlanValue:
        """Arrays one after the other along an axis, counted from the front."""
        total = sum(x.shape[axis] for x in xs)
        shape = (*xs[0].shape[:axis], total, *xs[0].shape[axis + 1 :])
        return self.make(ir.JOIN, None, tuple(xs), axis, shape, np.result_type(*[x.dtype for x in xs]))


# --- truth values ----------------------------------------------------------------------------------------------


def simplified(ops: Sequence[Op], outputs: Sequence[PlanValue]) -> list[Op]:
    """The steps without sums of truth values as numbers that are only compared with 0, as masks of branches are.

    Whether any entry is true needs no array of zeros and ones, eight times as large.
    """
    others = [arg for op in ops if op.function != ir.RESHAPE and not _is_zero_test(op) for arg in op.args]
    counts = {_reshaped(value).serial for value in (*others, *outputs)}  # what is read as a number
    serials = itertools.count(1 << 40)  # that no value has
    known: dict[int, PlanValue] = {}  # whether any is true, by the sum
    steps: list[Op] = []
    for op in ops:
        total = _reshaped(op.args[0]) if _is_zero_test(op) else None
        marks = None if total is None or total.serial in counts else _summed_marks(total)
        if total is None or marks is None:
            steps.append(op)
            continue
        any_ = known.get(total.serial)
        if any_ is None:
            any_ = known[total.serial] = PlanValue(next(serials), total.shape, marks.dtype)
            any_.op = Op(ir.REDUCE, np.logical_or, (marks,), made_by(total).params, any_, op.node)
            steps.append(any_.op)
        op.out.op = Op(ir.VIEW, ir.RESHAPE, (any_,), op.out.shape, op.out, op.node)
        steps.append(op.out.op)
    return ir.live(steps, outputs)


def _is_zero_test(op: Op) -> bool:
    return op.function is np.not_equal and ir.is_zero(op.args[1]) and op.out.shape == op.args[0].shape


def _reshaped(value: PlanValue) -> PlanValue:
    """What reshapes show."""
    while value.op is not None and value.op.function == ir.RESHAPE:
        value = value.op.args[0]
    return value


def _summed_marks(total: PlanValue) -> PlanValue | None:
    """The truth values that a sum adds up."""
    cast = total.op.args[0].op if total.op is not None and total.op.function is np.add else None
    summed = cast is not None and made_by(total).kind == ir.REDUCE and cast.kind == ir.CAST
    return cast.args[0] if cast is not None and summed and cast.args[0].dtype.kind == "b" else None
