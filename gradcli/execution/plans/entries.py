"""Steps that work entry by entry: equal ones are one, numbers are folded, repeated entries are computed once."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcli.execution.plans.making import Making
from gradcli.execution.plans.values import (
    ADDED,
    CAST,
    CHOICE,
    ENTRY,
    PLACE,
    Value,
    bare,
    common,
)

Shape = tuple[int, ...]

FEW = 1 << 10  # entries up to which a call costs more than what it computes


class Entries(Making):
    """Makes steps that work entry by entry. Unless they are `faithful`, zeros may change their signs."""

    faithful = False

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
                    xs = tuple([x if x.number is not None else self.raised(x, len(shape)) for x in xs])
                    small = common([x.shape for x in xs if x.number is None])
                if small != shape:
                    xs = tuple([x if x.number is None else self.number(x.number) for x in xs])
                    return self.view("broadcast", self.entry(ufunc, *xs), shape, shape)
        return self._even(ufunc, xs, shape)

    def _even(self, ufunc: Any, xs: tuple[Value, ...], shape: Shape) -> Value:
        simpler = self._simpler(ufunc, xs, shape)
        if simpler is not None:
            return simpler
        if ufunc is np.add or ufunc is np.multiply:
            if xs[0] is xs[1] and ufunc is np.multiply:
                ufunc, xs = np.square, xs[:1]
            elif xs[0].serial > xs[1].serial:
                xs = xs[::-1]
        key = (ufunc, *[x.dtype for x in xs])
        dtype = self._dtypes.get(key)
        if dtype is None:
            dtype = self._dtypes[key] = ufunc.resolve_dtypes((*[x.dtype for x in xs], None))[-1]
        return self.make(ENTRY, ufunc, xs, None, shape, dtype)

    def _simpler(self, ufunc: Any, xs: tuple[Value, ...], shape: Shape) -> Value | None:
        """The same numbers by less work, or None."""
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
        if ufunc is np.multiply and one.dtype == other.dtype == self.float_type:
            for factor, rest in (xs, xs[::-1]):
                if factor.number is not None and factor.number == 1 and rest.shape == shape:
                    return rest
        return None

    def _added(self, xs: tuple[Value, ...], shape: Shape) -> Value | None:
        """A sum with entries that stand among zeros: the zeros need not be added."""
        for one, other in (xs, xs[::-1]):
            placed = other.op
            if placed is None or placed.kind != PLACE:
                continue
            if one.shape == other.shape == shape and one.dtype == other.dtype:
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
        zero = y.number is not None and y.number == 0 and not self.faithful
        if zero and (negated := self.negated(x)) is not None:
            return self.entry(np.negative, self.choice(condition, negated, self.number(y.number, shape)))
        small = common([value.shape for value in (condition, x, y) if value.number is None])
        if small != shape:
            full = self.view("broadcast", self.raised(condition, len(shape)), shape, shape)
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
            return self._minus_size(y)
        if x.number is not None and x.number == 1 and y.size < FEW and y.op is not None and y.op.function is np.exp:
            inner = y.op.args[0]
            if inner is self._minus_size(tested):
                return self.entry(np.exp, self.entry(np.minimum, tested, bound))
        return None

    def _minus_size(self, x: Value) -> Value:
        """-|x|: one call where calls are what it costs."""
        if x.size < FEW:
            return self.entry(np.copysign, x, self.number(self.float_type.type(-1)))
        return self.entry(np.negative, self.entry(np.absolute, x))

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

    def negated(self, x: Value) -> Value | None:
        """What a value is the negative of, if it is."""
        op = x.op
        if op is not None and op.kind == ENTRY and op.function is np.negative and op.out.dtype == self.float_type:
            return op.args[0]
        return None
