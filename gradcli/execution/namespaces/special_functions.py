"""`scipy.special`, with more digits in float64 where its functions may be more than 4 ulp off.

`lgamma` is a Taylor polynomial between 0.5 and 2. Elsewhere entries are rounded from balls of python-flint, one by one,
with as many bits as their rounding needs: 3 to 100 us an entry. SciPy's values decide about infinities and NaN.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache, partial
from importlib import import_module
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import special

from gradcli.graph.arrays import nearest_float

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gradcli.graph.domain import Interval

BITS = (64, 128, 256, 512, 1024, 2048)  # tried in turn
TERMS = 30  # of the polynomials
_PRECISION = Lock()  # python-flint has one precision for all threads
# each function as a ball, and for which operands it is rounded from one
BALLS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "gammaln": (lambda x: abs(x.gamma()).log(), lambda x: x < 0),
    "betaln": (lambda x, y: x.lgamma() + y.lgamma() - (x + y).lgamma(), lambda *_: True),
}


def analytic(name: str, function: Callable[..., Any], domain: Sequence[Interval], *operands: Any) -> Any:
    """A function of complex balls, for arrays and numbers; SciPy's of this name, if any, at infinities and poles."""
    floats = np.broadcast_arrays(*[np.asarray(x, dtype=np.float64) for x in operands])
    plain = getattr(special, name)(*floats) if name else np.nan
    values = np.array(np.broadcast_to(plain, floats[0].shape), dtype=np.float64)
    ends = zip(domain, np.clip(floats, -1.7e308, 1.7e308), strict=True)  # infinity is an end of a domain without end
    known = [np.vectorize(interval.contains, otypes=[bool])(x) for interval, x in ends]
    values = np.where(np.all(known, axis=0) | np.isinf(values), values, np.nan)
    if np.any(finite := np.isfinite(floats).all(axis=0) & np.all(known, axis=0)):
        flint = import_module("flint")
        complex_ball = flint.acb

        def ball(*xs: Any) -> Any:
            value = function(*map(complex_ball, xs))
            return value.real if value.imag.contains(0) else flint.arb.nan()

        values[finite] = _rounded(ball, [x[finite].tolist() for x in floats], values[finite].tolist())
    return values[()]


def derivative(function: Callable[..., Any], orders: Sequence[int], domain: Sequence[Interval], *operands: Any) -> Any:
    """The values of a partial derivative of such a function."""
    enclosures = import_module("gradcli.execution.namespaces.cauchy")
    return analytic("", partial(enclosures.partial_derivative, function, orders, domain), domain, *operands)


class PreciseUfunc:
    """A ufunc of SciPy with more digits."""

    def __init__(self, name: str) -> None:
        self.ufunc = getattr(special, name)
        self.ball, self.chosen = BALLS[name]

    def __getattr__(self, name: str) -> Any:
        return getattr(self.ufunc, name)

    def __call__(self, *operands: Any, out: Any = None) -> Any:
        """The values for arrays and numbers; a Fraction stands for itself, not for its nearest double."""
        if len(operands) > self.ufunc.nin:
            *operands, out = operands  # type: ignore[assignment]
        floats = [nearest_float(x) if isinstance(x, Fraction) else x for x in operands]
        values = np.array(self.ufunc(*floats))
        if values.dtype == np.float64:
            if self.ufunc is special.gammaln and np.any(near := (floats[0] > 0.5) & (floats[0] < 2)):
                values[near] = _log_gamma(np.asarray(floats[0])[near])
            if np.any(wide := np.isfinite(values) & self.chosen(*floats)):
                columns = [np.broadcast_to(x, values.shape)[wide].tolist() for x in operands]
                values[wide] = _rounded(self.ball, columns, values[wide].tolist())
        if out is not None:
            np.copyto(out, values)
        return values[()] if out is None else out


def _rounded(ball: Callable[..., Any], columns: list[list[Any]], values: list[float]) -> list[float]:
    """The doubles nearest to the balls of some operands; the given value where no ball has enough digits."""
    flint = import_module("flint")
    with _PRECISION, flint.ctx.workprec(BITS[0]):
        for at, entry in enumerate(zip(*columns, strict=True)):
            exact = [flint.fmpq(x.numerator, x.denominator) if isinstance(x, Fraction) else x for x in entry]
            for bits in BITS:
                flint.ctx.prec = bits
                value = ball(*map(flint.arb, exact))
                if float(value.lower()) == (nearest := float(value.upper())) or value.rel_accuracy_bits() >= BITS[2]:
                    values[at] = nearest
                    break
    return values


@cache
def _taylor_coefficients() -> Any:
    """Those of the logarithm of the gamma function at 1, 1.5 and 2."""
    at, k = np.array([[1.0], [1.5], [2.0]]), np.arange(2, TERMS)
    rest = (-1.0) ** k * special.zeta(k, at) / k
    return np.concatenate([[[0.0], [-0.12078223763524522], [0.0]], special.digamma(at), rest], axis=1)


def _log_gamma(x: Any) -> Any:
    """The logarithm of the gamma function between 0.5 and 2, below 0.75 by that of x + 1."""
    low = x < 0.75
    nearest = np.rint(2 * (x + low))
    z = x - (nearest / 2 - low)
    rows = _taylor_coefficients()[nearest.astype(np.int64) - 2]
    value = rows[:, -1]
    for k in range(TERMS - 2, -1, -1):
        value = value * z + rows[:, k]
    return value - np.where(low, np.log(x), 0.0)


def __getattr__(name: str) -> Any:
    """A function under its name in SciPy."""
    return PreciseUfunc(name) if name in BALLS else getattr(special, name)
