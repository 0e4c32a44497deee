"""Arrays that know how far their entries may move, and the steps on them: sums and matrix products open such gaps.

All other steps hand gaps on: by their slopes or, where they are monotone, by their values at both ends. Who takes them
is not known here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gradcli.execution.plans.gaps import (
    COMPARISONS,
    GAMMAS,
    ONCE,
    SAME,
    Gap,
    at_the_edge,
    of_function,
    of_gamma,
    of_shifted,
    rounded,
    times,
)  # fmt: skip
from gradcli.execution.plans.values import index_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gradcli.graph.node import Node


class Bounded:
    """An array, its gap (None: no entry may differ), and for products what their terms come to without signs.

    `origin` says of what and over which axes it is the largest or the smallest entry. What is `carried` comes of a
    linear recurrence, whose terms a plan may add up in any order: its terms are known through products too.
    """

    __slots__ = ("carried", "constant", "gap", "origin", "terms", "value")
    number = op = array = leaf = None  # what a recorded value may have

    def __init__(self, value: Any, gap: Gap = None, terms: Any = None, constant: bool = False) -> None:
        self.value = value
        self.gap = gap
        self.terms = terms
        self.constant = constant
        self.carried = False
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
        found = Bounded(move(self.value), gap, terms, self.constant)
        found.carried = self.carried
        return found

    def majorant(self) -> Any:
        """The size of each entry; of a product, of its terms."""
        return np.abs(self.value) if self.terms is None else self.terms


class Liberties(NamedTuple):
    """What a plan does otherwise than the evaluator, beside the order of additions.

    `inexact` are functions of NumPy that a vector form may compute, at most 2.5 ulp wrong; a `looped` plan takes turns
    of the program's loops together; `linear` are the nodes of recurrences that it solves in blocks of turns; in an
    `online` one blocks take exponentials beside largest entries of their own.
    """

    inexact: frozenset[Any] = frozenset()
    looped: bool = False
    linear: frozenset[Node] = frozenset()
    online: bool = False


NONE = Liberties()


class Taken:
    """The steps of `Steps`, taken at once; `liberties` are those of the plan that takes them."""

    def __init__(self, float_type: Any, liberties: Liberties) -> None:
        self.float_type = np.dtype(float_type)
        self.unit = float(np.finfo(self.float_type).eps) / 2
        self.liberties = liberties

    def number(self, number: Any, shape: tuple[int, ...] = ()) -> Bounded:
        return Bounded(np.broadcast_to(np.asarray(number), shape), constant=True)

    def array(self, array: Any) -> Bounded:
        return Bounded(np.asarray(array), constant=True)

    def entry(self, ufunc: Any, *xs: Bounded) -> Bounded:
        value = np.asarray(ufunc(*[x.value for x in xs]))
        gap: Gap = None
        if any(x.gap is not None for x in xs):
            known = _ties(ufunc, xs) if ufunc in COMPARISONS else None
            if ufunc.__name__ in GAMMAS:
                known = of_gamma(ufunc.__name__, ufunc, value, xs[0].value, xs[0].gap, self.unit)
            if known is None:
                known = of_function(ufunc, value, [x.value for x in xs], [x.gap for x in xs])
            gap = known if value.dtype.kind != "f" else rounded(ufunc, known, value, self.unit)
        if value.dtype.kind == "f" and (ufunc in self.liberties.inexact or _by_layout(ufunc, xs)):
            gap = (0 if gap is None else gap) + 8 * self.unit * np.abs(value)
        if ufunc is np.exp and self.liberties.online:  # by way of another number than the one that is subtracted
            gap = (0 if gap is None else gap) + of_shifted(value, xs[0].value, self.unit)
        if ufunc in (np.multiply, np.divide) and value.dtype.kind == "f":
            beyond = at_the_edge(value, [x.value for x in xs])
            gap = gap if beyond is None else beyond if gap is None else gap + beyond
        found = Bounded(value, gap, constant=all(x.constant for x in xs))
        if self.liberties.looped and ufunc in (np.add, np.subtract) and value.dtype.kind == "f":
            self._summed(found, xs)
        elif xs[0].carried or xs[-1].carried:
            self._carried(ufunc, found, xs)
        return found

    def _summed(self, found: Bounded, xs: Sequence[Bounded]) -> None:
        """What turns of a loop add up, any sum for all we know, may be added in another order."""
        found.terms = np.broadcast_to(xs[0].majorant() + xs[1].majorant(), found.shape)
        found.carried = xs[0].carried or xs[1].carried  # on its way a term comes by one more product and sum a turn
        found.gap = (0 if found.gap is None else found.gap) + (4 if found.carried else 2) * self.unit * found.terms

    def _carried(self, ufunc: Any, found: Bounded, xs: Sequence[Bounded]) -> None:
        """A factor beside what a linear recurrence gives is a factor of each of its terms."""
        if ufunc is np.negative:
            terms = xs[0].majorant()
        elif ufunc is np.multiply and xs[0].carried != xs[1].carried:
            terms = times(*[x.majorant() if x.carried else np.abs(x.value) for x in xs])
        elif ufunc is np.divide and not xs[1].carried:
            terms = xs[0].majorant() / np.abs(xs[1].value)
        else:
            return
        found.terms, found.carried = np.broadcast_to(terms, found.shape), True
        if ufunc is not np.negative:
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
        found = Bounded(value, None if gap is None else np.broadcast_to(gap, value.shape))
        if x.carried or y.carried:
            found.terms, found.carried = np.where(condition.value, x.majorant(), y.majorant()), True
        return found

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
            whole = np.asarray(np.sum(np.abs(x.value), axes, keepdims=keepdims)) + (0 if opened is None else opened)
            opened = (0 if opened is None else opened) + times(self._share(count), whole)
        return Bounded(value, opened)

    def _share(self, count: int) -> float:
        """How far two sums of n terms may be apart, as a share of the terms without signs."""
        rounding = count * self.unit
        return 2 * rounding / (1 - rounding) if rounding < 1 else np.inf

    def product(self, x: Bounded, y: Bounded) -> Bounded:
        value = np.matmul(x.value, y.value)
        terms = np.matmul(x.majorant(), y.majorant())
        count = x.shape[-1]
        chained = x.terms is not None or y.terms is not None  # then another product may be taken first
        gap: Gap = times(self._share(count + 1), terms) if count > 1 or chained else None
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


def _by_layout(ufunc: Any, xs: Sequence[Bounded]) -> bool:
    """Whether the last bits depend on how the operands lie in memory, which may be otherwise in blocks.

    NumPy has vector forms for steps forward only, and short cuts for a power whose exponent stands still in a row.
    """
    if ufunc in SAME or ufunc in ONCE:
        return False
    steps = [[step for n, step in zip(x.shape, x.value.strides, strict=True) if n > 1] for x in xs]
    if ufunc is np.power and 0 in steps[1] and any(steps[1]):
        return True
    return any(step < 0 for one in steps for step in one)


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
