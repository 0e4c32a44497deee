"""Collects array operations as steps without repetitions.

Local rules apply while steps are made: sums and products over repeated entries become multiplications, a view of a view
is one view. The rules change the order of roundings at most.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.execution.plans.entries import Entries
from gradcli.execution.plans.values import (
    CALL,
    COPY,
    JOIN,
    PLACE,
    PRODUCT,
    REDUCE,
    VIEW,
    Value,
    plain,
    unrepeated,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Shape = tuple[int, ...]


class Steps(Entries):
    """Makes steps of all kinds."""

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
            if (negated := self.negated(factor)) is not None:
                pair = (negated, y) if position == 0 else (x, negated)
                return self.entry(np.negative, self.product(*pair))
        return self.make(PRODUCT, None, (self._dense(x), self._dense(y)), None, shape, x.dtype)

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
