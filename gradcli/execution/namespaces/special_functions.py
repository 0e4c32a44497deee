"""`scipy.special`, with the functions that lose digits there rounded from balls of python-flint.

SciPy's value decides about infinities and NaN. In float64, entries where it may be more than 4 ulp off are computed
again, one by one, with as many bits as their rounding needs: 3 to 100 us an entry.
"""

from __future__ import annotations

from fractions import Fraction
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import special

from gradcli.graph.arrays import nearest_float

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

BITS = (64, 128, 256, 512, 1024, 2048)  # tried in turn
MOST_PARAMETER = 50  # the balls of an incomplete function take milliseconds above


def _log_gamma(x: Any) -> Any:
    return x.lgamma() if x > 0 else abs(x.gamma()).log()


def _small(values: Any, *operands: Any) -> Any:
    """Incomplete functions with small parameters, which come before x."""
    return np.isfinite(values) & (sum(operands[:-1]) <= MOST_PARAMETER)


# each function: as a ball, and where SciPy's value is not good enough
BALLS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "gammaln": (_log_gamma, lambda values, x: np.isfinite(values) & (x < 2) & ((x > 0.5) | (x < 0))),
    "betaln": (lambda x, y: x.lgamma() + y.lgamma() - (x + y).lgamma(), lambda values, *_: np.isfinite(values)),
    "jv": (lambda n, x: x.bessel_j(n), lambda values, *_: np.isfinite(values)),
    "gammainc": (lambda a, x: x.gamma_lower(a, 1), _small),
    "gammaincc": (lambda a, x: x.gamma_upper(a, 1), _small),
    "betainc": (lambda a, b, x: x.beta_lower(a, b, 1), _small),
}


class RoundedUfunc:
    """A ufunc of SciPy whose entries are rounded from balls where its own may be too far off."""

    def __init__(self, name: str) -> None:
        self.ufunc = getattr(special, name)
        self.ball, self.is_wide = BALLS[name]

    def __getattr__(self, name: str) -> Any:
        return getattr(self.ufunc, name)

    def __call__(self, *operands: Any, out: Any = None) -> Any:
        """The values for arrays and numbers; a Fraction stands for itself, not for its nearest double."""
        if len(operands) > self.ufunc.nin:
            *operands, out = operands  # type: ignore[assignment]
        floats = [nearest_float(x) if isinstance(x, Fraction) else x for x in operands]
        values = self.ufunc(*floats)
        if values.dtype == np.float64 and np.any(wide := self.is_wide(values, *floats)):
            values = np.array(values)
            columns = [_column(x, wide) for x in operands]
            values[wide] = _rounded(self.ball, columns, values[wide].tolist())
        if out is None:
            return values[()]
        np.copyto(out, values)
        return out


def _column(x: Any, chosen: Any) -> list[Any]:
    """An operand at the chosen entries, as numbers that balls are made of without rounding."""
    if isinstance(x, Fraction):
        return [import_module("flint").fmpq(x.numerator, x.denominator)] * int(chosen.sum())
    return np.broadcast_to(x, chosen.shape)[chosen].tolist()  # type: ignore[no-any-return]


def _rounded(ball: Callable[..., Any], columns: Sequence[list[Any]], values: list[float]) -> list[float]:
    """The double nearest to the ball of each entry; the given value where no ball has enough digits."""
    flint = import_module("flint")
    before = flint.ctx.prec
    try:
        for at, entry in enumerate(zip(*columns, strict=True)):
            for bits in BITS:
                flint.ctx.prec = bits
                found = ball(*map(flint.arb, entry))
                if float(found.lower()) == (nearest := float(found.upper())) or found.rel_accuracy_bits() >= BITS[2]:
                    values[at] = nearest
                    break
    finally:
        flint.ctx.prec = before
    return values


def __getattr__(name: str) -> Any:
    """A function under its name in SciPy."""
    return RoundedUfunc(name) if name in BALLS else getattr(special, name)
