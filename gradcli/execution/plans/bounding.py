"""Arrays that know how far their entries may move, and the operations on them: sums and matrix products open such gaps.

All other operations hand gaps on: by their slopes or, where they are monotone, by their values at both ends. They are
reached by the names that an `impl` uses, as a recorder is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.execution.plans.gaps import COMPARISONS, Gap, at_the_edge, of_function, rounded, times
from gradcli.execution.plans.tracing import Recorder, Trace, Unrecordable
from gradcli.execution.plans.values import index_of

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence


class Bounded:
    """An array, its gap (None: no entry may differ), and for products what their terms come to without signs.

    `origin` says of what and over which axes it is the largest or the smallest entry.
    """

    __slots__ = ("constant", "gap", "origin", "terms", "value")
    number = op = array = leaf = None  # what a recorded value may have

    def __init__(self, value: Any, gap: Gap = None, terms: Any = None, constant: bool = False) -> None:
        self.value = value
        self.gap = gap
        self.terms = terms
        self.constant = constant
        self.origin: tuple[Bounded, tuple[int, ...]] | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.value.shape)

    @property
    def dtype(self) -> Any:
        return self.value.dtype

    @property
    def size(self) -> int:
        return int(self.value.size)

    def moved(self, move: Any) -> Bounded:
        """What a movement of entries makes of it."""
        gap, terms = [None if part is None else move(part) for part in (self.gap, self.terms)]
        return Bounded(move(self.value), gap, terms, self.constant)

    def majorant(self) -> Any:
        """The size of each entry; of a product, of its terms."""
        return np.abs(self.value) if self.terms is None else self.terms


class Taken:
    """The steps of `Steps`, taken at once."""

    def __init__(self, float_type: Any, inexact: Collection[Any], looped: bool) -> None:
        self.float_type = np.dtype(float_type)
        self.unit = float(np.finfo(self.float_type).eps) / 2
        self.inexact = frozenset(inexact)
        self.looped = looped

    def number(self, number: Any, shape: tuple[int, ...] = ()) -> Bounded:
        return Bounded(np.broadcast_to(np.asarray(number), shape), constant=True)

    def array(self, array: Any) -> Bounded:
        return Bounded(np.asarray(array), constant=True)

    def entry(self, ufunc: Any, *xs: Bounded) -> Bounded:
        value = np.asarray(ufunc(*[x.value for x in xs]))
        gap: Gap = None
        if any(x.gap is not None for x in xs):
            known = _ties(ufunc, xs) if ufunc in COMPARISONS else None
            if known is None:
                known = of_function(ufunc, value, [x.value for x in xs], [x.gap for x in xs])
            gap = known if value.dtype.kind != "f" else rounded(ufunc, known, value, self.unit)
        if ufunc in self.inexact and value.dtype.kind == "f":
            gap = (0 if gap is None else gap) + 8 * self.unit * np.abs(value)
        if ufunc in (np.multiply, np.divide) and value.dtype.kind == "f":
            beyond = at_the_edge(value, [x.value for x in xs])
            gap = gap if beyond is None else beyond if gap is None else gap + beyond
        found = Bounded(value, gap, constant=all(x.constant for x in xs))
        if self.looped and ufunc in (np.add, np.subtract) and value.dtype.kind == "f":
            self._summed(found, xs)
        return found

    def _summed(self, found: Bounded, xs: Sequence[Bounded]) -> None:
        """What turns of a loop add up, any sum for all we know, may be added in another order."""
        found.terms = np.broadcast_to(xs[0].majorant() + xs[1].majorant(), found.shape)
        found.gap = (0 if found.gap is None else found.gap) + 2 * self.unit * found.terms

    def view(self, kind: str, x: Bounded, params: Any, shape: tuple[int, ...]) -> Bounded:
        if kind == "permute":
            return x.moved(lambda part: part.transpose(params))
        if kind == "slice":
            return x.moved(lambda part: part[index_of(params)])
        turn = np.reshape if kind == "reshape" else np.broadcast_to
        found = x.moved(lambda part: turn(part, shape))
        found.origin = x.origin
        return found

    def choice(self, condition: Bounded, x: Bounded, y: Bounded) -> Bounded:
        value = np.where(condition.value, x.value, y.value)
        gap: Gap = None
        if x.gap is not None or y.gap is not None:
            gap = np.where(condition.value, 0 if x.gap is None else x.gap, 0 if y.gap is None else y.gap)
        if condition.gap is not None:
            far = np.abs(x.value - y.value) + (0 if x.gap is None else x.gap) + (0 if y.gap is None else y.gap)
            gap = np.where(condition.gap > 0, np.nan_to_num(far, nan=np.inf, posinf=np.inf), 0 if gap is None else gap)
        return Bounded(value, None if gap is None else np.broadcast_to(gap, value.shape))

    def cast(self, x: Bounded, dtype: Any) -> Bounded:
        return Bounded(x.value.astype(dtype), x.gap, constant=x.constant)

    def reduce(self, ufunc: Any, x: Bounded, axes: tuple[int, ...], keepdims: bool = False) -> Bounded:
        value = np.asarray(ufunc.reduce(x.value, axes, keepdims=keepdims))
        if ufunc is not np.add:
            gap = None if x.gap is None else np.asarray(np.max(x.gap, axes, keepdims=keepdims))
            found = Bounded(value, gap)
            found.origin = x, axes
            return found
        opened = None if x.gap is None else np.asarray(np.sum(x.gap, axes, keepdims=keepdims))
        count = x.size // max(value.size, 1)
        if count > 1 and value.dtype.kind == "f":  # a product may come into a sum without a rounding of its own
            whole = np.asarray(np.sum(np.abs(x.value), axes, keepdims=keepdims))
            opened = (0 if opened is None else opened) + 2 * self.unit * times(float(count), whole)
        return Bounded(value, opened)

    def product(self, x: Bounded, y: Bounded) -> Bounded:
        value = np.matmul(x.value, y.value)
        terms = np.matmul(x.majorant(), y.majorant())
        count = x.shape[-1]
        gap: Gap = None if count < 2 else 2 * self.unit * (count + 1) * terms
        for one, other, turned in ((x, y, False), (y, x, True)):
            if one.gap is not None:
                sizes = np.abs(other.value) if other.gap is None or turned else np.abs(other.value) + other.gap
                more = np.matmul(sizes, one.gap) if turned else np.matmul(one.gap, sizes)
                gap = more if gap is None else gap + more
        return Bounded(value, None if gap is None else np.nan_to_num(gap, nan=np.inf, posinf=np.inf), terms)

    def place(self, x: Bounded, shape: tuple[int, ...], slices: Any) -> Bounded:
        def put(part: Any) -> Any:
            room = np.zeros(shape, part.dtype)
            room[slices] = part
            return room

        return x.moved(put)

    def join(self, xs: Sequence[Bounded], axis: int) -> Bounded:
        gap: Gap = None
        if any(x.gap is not None for x in xs):
            gap = np.concatenate([np.zeros(x.shape) if x.gap is None else x.gap for x in xs], axis)
        return Bounded(np.concatenate([x.value for x in xs], axis), gap)


def _ties(ufunc: Any, xs: Sequence[Bounded]) -> Any:
    """A comparison of entries with the largest of them: certain where only one of them comes close to it.

    One with themselves is always certain. None for any other.
    """
    if xs[0] is xs[1] and xs[0].gap is not None:
        return 1.0 * ~np.isfinite(xs[0].gap)
    for one, other in (xs, xs[::-1]):
        if other.origin is not None and other.origin[0] is one and ufunc in (np.equal, np.not_equal):
            gap = (0 if one.gap is None else one.gap) + (0 if other.gap is None else other.gap)
            near = np.abs(one.value - other.value) <= gap
            return 1.0 * (near & (near.sum(axis=other.origin[1], keepdims=True) > 1))
    return None


class Bounder(Recorder):
    """The namespace `numpy` on arrays with gaps.

    `inexact` are functions that a vector form may round otherwise; `looped`: any sums may be taken together.
    """

    def __init__(self, dtype: str, inexact: Collection[Any] = (), looped: bool = False) -> None:
        super().__init__(dtype)
        self.steps: Any = Taken(self.numpy.float_type, inexact, looped)

    def _trace(self, held: Any) -> Trace:
        return Trace(self, held)

    def frexp(self, x: Trace) -> tuple[Trace, Trace]:
        """Mantissas and exponents; these are certain where both ends have the same."""
        held: Any = x.value
        mantissa, exponent = np.frexp(held.value)
        if held.gap is None:
            return self._trace(Bounded(mantissa)), self._trace(Bounded(exponent))
        ends = [np.abs(np.frexp(end)[1] - exponent) for end in (held.value - held.gap, held.value + held.gap)]
        turns = np.maximum(*ends) * 1.0
        gap = np.where(turns > 0, np.inf, np.ldexp(held.gap, -exponent))
        return self._trace(Bounded(mantissa, gap)), self._trace(Bounded(exponent, turns))

    def ldexp(self, x: Trace, exponent: Any) -> Trace:
        """A number times a power of two."""
        held, power = x.value, self.lifted(exponent, ())
        one: Any = held
        other: Any = power
        value = np.ldexp(one.value, other.value)
        gap = None if one.gap is None else np.ldexp(one.gap, other.value)
        if other.gap is not None:
            gap = np.where(other.gap > 0, np.inf, 0 if gap is None else gap)
        return self._trace(Bounded(value, gap))

    def _linear(self, function: Any, x: Trace, *args: Any) -> Trace:
        """A sum of entries, the same steps in every order of work."""
        held: Any = x.value
        value = np.asarray(function(held.value, *args))
        gap = None if held.gap is None else np.asarray(function(held.gap, *args))
        if gap is not None:
            gap = gap + 2 * self.steps.unit * x.size * np.asarray(function(np.abs(held.value), *args))
        return self._trace(Bounded(value, gap))

    def cumsum(self, x: Trace, axis: int) -> Trace:
        return self._linear(np.cumsum, x, axis)

    def swapaxes(self, x: Trace, one: int, other: int) -> Trace:
        held: Any = x.value
        return self._trace(held.moved(lambda part: np.swapaxes(part, one, other)))

    def take_along_axis(self, x: Trace, index: Trace, axis: int) -> Trace:
        held: Any = x.value
        where: Any = index.value
        if where.gap is not None:
            raise Unrecordable("positions that may change")
        return self._trace(held.moved(lambda part: self.numpy.take_along_axis(part, where.value, axis)))

    def put_along_add(self, x: Trace, index: Trace, axis: int, size: int) -> Trace:
        held: Any = x.value
        where: Any = index.value
        if where.gap is not None:
            raise Unrecordable("positions that may change")

        def put(part: Any) -> Any:
            return self.numpy.put_along_add(part, where.value, axis, size)

        met = put(np.ones(held.shape))
        opened = 2 * self.steps.unit * times(met, put(np.abs(held.value))) * (met > 1)
        gap = opened if held.gap is None else opened + put(held.gap)
        return self._trace(Bounded(put(held.value), gap if gap.any() else None))
