"""The namespace `numpy` on arrays with gaps: an `impl` goes in, how far its result may move comes out.

It is reached by the names that an `impl` uses, as a recorder is. How far whole routines move is said in `routines.py`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcli.execution.plans import routines
from gradcli.execution.plans.bounding import NONE, Bounded, Liberties, Taken
from gradcli.execution.plans.gaps import times
from gradcli.execution.plans.tracing import Recorder, Trace, Unrecordable


class Bounder(Recorder):
    """The namespace `numpy` on arrays with gaps.

    `liberties` are those of the plan. `trusted` says whether a routine was taken to be exact for a matrix nearby.
    """

    def __init__(self, dtype: str, liberties: Liberties = NONE) -> None:
        super().__init__(dtype)
        self.steps: Any = Taken(self.numpy.float_type, liberties)
        self.trusted = False

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

    def _whole(self, value: Any, gap: Any, *xs: Any) -> Trace:
        """What a routine gives; `gap` is asked for how far that moves, where any operand does."""
        moves = [np.zeros(x.shape) if x.gap is None else np.asarray(x.gap, np.float64) for x in xs]
        value = np.asarray(value)
        moved = any(x.gap is not None for x in xs) and value.size
        return self._trace(Bounded(value, np.broadcast_to(gap(*moves), value.shape) if moved else None))

    def _routine(self, value: Any, gap: Any, *xs: Any) -> Trace:
        """The same of a routine that is taken to be exact for a matrix nearby."""
        self.trusted |= any(x.gap is not None for x in xs)
        return self._whole(value, gap, *xs)

    def prod(self, x: Trace, axis: Any) -> Trace:
        held: Any = x.value
        unit = self.steps.unit
        return self._whole(np.prod(held.value, axis), lambda gap: routines.product(held.value, gap, axis, unit), held)

    def cumprod(self, x: Trace, axis: int) -> Trace:
        held: Any = x.value
        value, unit = np.cumprod(held.value, axis), self.steps.unit
        return self._whole(value, lambda gap: routines.running_product(held.value, gap, axis, unit), held)

    def sort(self, x: Trace, axis: int) -> Trace:
        held: Any = x.value
        return self._whole(self.numpy.sort(held.value, axis=axis), lambda gap: routines.ordered(gap, axis), held)

    def median(self, x: Trace, axis: Any) -> Trace:
        held: Any = x.value
        value, unit = np.asarray(self.numpy.median(held.value, axis=axis)), self.steps.unit
        return self._whole(value, lambda gap: np.max(gap, axis) + 4 * unit * (np.abs(value) + np.max(gap, axis)), held)

    def argsort(self, x: Trace, axis: int, stable: bool) -> Trace:
        """Positions, where no two entries may change places."""
        held: Any = x.value
        if held.gap is not None and not routines.order_is_certain(held.value, held.gap, axis):
            raise Unrecordable("an order that may change")
        return self._trace(Bounded(self.numpy.argsort(held.value, axis=axis, stable=stable)))

    def tril(self, x: Trace, k: int) -> Trace:
        held: Any = x.value
        return self._trace(held.moved(lambda part: np.tril(part, k)))

    def triu(self, x: Trace, k: int) -> Trace:
        held: Any = x.value
        return self._trace(held.moved(lambda part: np.triu(part, k)))

    def inv(self, a: Trace) -> Trace:
        held: Any = a.value
        value = self.numpy.inv(held.value)
        return self._routine(value, lambda gap: routines.inverse(held.value, gap, value, self.steps.unit), held)

    def solve(self, a: Trace, b: Trace) -> Trace:
        left: Any = a.value
        right: Any = b.value
        value, unit = self.numpy.solve(left.value, right.value), self.steps.unit
        return self._routine(
            value, lambda *moves: routines.solution(left.value, right.value, moves, value, unit), left, right
        )

    def det(self, a: Trace) -> Trace:
        held: Any = a.value
        value = np.asarray(self.numpy.det(held.value))
        return self._routine(value, lambda gap: routines.determinant(held.value, gap, value, self.steps.unit), held)

    def slogdet(self, a: Trace) -> tuple[Trace, Trace]:
        held: Any = a.value
        sign, value = [np.asarray(one) for one in self.numpy.slogdet(held.value)]

        def gap(moved: Any) -> Any:
            return routines.logarithm(held.value, moved, value, self.steps.unit)

        turned = self._routine(sign, lambda moved: np.where(np.isfinite(gap(moved)), 0.0, np.inf), held)
        return turned, self._routine(value, gap, held)

    def cholesky(self, a: Trace) -> Trace:
        held: Any = a.value
        value = self.numpy.cholesky(held.value)
        return self._routine(value, lambda gap: routines.factor(held.value, gap, value, self.steps.unit), held)

    def eigvalsh(self, a: Trace) -> Trace:
        held: Any = a.value
        value = self.numpy.eigvalsh(held.value)
        return self._routine(value, lambda gap: routines.spectrum(held.value, gap, self.steps.unit), held)

    def svd(self, a: Trace, full_matrices: bool) -> tuple[Trace, Trace, Trace]:
        """The singular values; of the vectors nothing is known."""
        held: Any = a.value
        left, values, right = self.numpy.svd(held.value, full_matrices=full_matrices)
        found = self._routine(values, lambda gap: routines.spectrum(held.value, gap, self.steps.unit), held)
        outer = [self._whole(one, lambda _, one=one: np.full(one.shape, np.inf), held) for one in (left, right)]
        return outer[0], found, outer[1]

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
