"""Taylor coefficients and partial derivatives of analytic functions, enclosed from their values around a point.

A coefficient is Cauchy's integral as a mean over a small circle. What the mean adds are coefficients of higher orders,
which the largest value on a larger box bounds. No derivative rule is read.
"""

from __future__ import annotations

from functools import reduce
from itertools import product
from operator import mul
from typing import TYPE_CHECKING, Any

from flint import acb, arb, ctx

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gradcli.graph.domain import Interval

    Function = Callable[..., Any]  # of complex balls

NARROW, WIDE = 16, 2  # bits by which the circle is smaller than the box, for exact arguments and for wide balls
MOST_GROWTH = 64  # bits by which a function may be larger in the box than at its centre
MOST_HALVINGS = 60


def inside(domain: Sequence[Interval], xs: Sequence[Any]) -> bool:
    """Whether the real parts of complex balls lie in the interior of a domain: functions are analytic there."""
    return all(bool(arb(d.low) < x.real) and bool(x.real < arb(d.high)) for d, x in zip(domain, xs, strict=True))


def taylor(
    function: Function, terms: int, fits: Callable[..., bool], orders: Sequence[int] = (), real: bool = True
) -> list[Any]:
    """The first coefficients in t of an analytic function of s... and t, differentiated by each s so many times, at 0.

    They are NaN where none are known. `fits` tells whether the function is analytic on boxes of its arguments; `real`,
    whether it is real for real numbers.
    """
    orders = (*orders, terms - 1)
    center = function(*[acb(0)] * len(orders))
    bits = ctx.prec
    wide = NARROW if center.rel_accuracy_bits() > bits // 2 or center.is_zero() else WIDE
    for halvings in range(MOST_HALVINGS):
        size = arb(2) ** (1 - halvings)
        box = acb(arb(0, 1) * size, arb(0, 1) * size)
        boxes = [box if order else acb(0) for order in orders]
        if not fits(*boxes):
            continue
        most = abs(function(*boxes)).upper()
        growth = _exponent(most) - _exponent(abs(center).upper())
        if most.is_finite() and (growth <= MOST_GROWTH or halvings > MOST_GROWTH // 2):
            break
    else:
        return [acb(arb.nan())] * terms
    count = (bits + max(0, growth)) // wide + 2
    counts = [count + order if order else 1 for order in orders]
    radius = size / 2**wide
    with ctx.workprec(bits + 2 * wide * (sum(orders) + 1) + 32):
        circles = [[acb(arb(2 * j) / n).exp_pi_i() * (radius if n > 1 else 0) for j in range(n)] for n in counts]
        values = _on_grid(function, circles, real)
        error = most * arb(2) ** (len(orders) + 1 - wide * count)  # of the means: coefficients of higher orders
        for order, n in zip(orders[:-1], counts[:-1], strict=True):
            block = len(values) // n
            turns = [acb(arb(-2 * j * order) / n).exp_pi_i() for j in range(n)]
            values = [_mean([values[j * block + i] for j in range(n)], turns) for i in range(block)]
        scale = reduce(mul, [arb.fac_ui(order) / radius**order for order in orders[:-1]], arb(1))
        n, known = counts[-1], []
        for k in range(terms):
            turns = [acb(arb(-2 * j * k) / n).exp_pi_i() for j in range(n)]
            mean = _mean(values, turns) + acb(arb(0, 1), arb(0) if real else arb(0, 1)) * (
                error * arb(2) ** (-wide * (k + sum(orders[:-1])))
            )
            known.append(mean * scale / radius**k)
    return [acb(x.real) for x in known] if real else known


def _on_grid(function: Function, circles: Sequence[Sequence[Any]], real: bool) -> list[Any]:
    """The values at all points of a grid of circles, in C order; those at conjugates of real functions only once."""
    known: dict[tuple[int, ...], Any] = {}
    for place in product(*map(range, map(len, circles))):
        opposite = tuple(-j % len(circle) for j, circle in zip(place, circles, strict=True))
        if real and opposite in known:
            known[place] = known[opposite].conjugate()
        else:
            known[place] = function(*[circle[j] for j, circle in zip(place, circles, strict=True)])
    return [*known.values()]


def _mean(values: Sequence[Any], turns: Sequence[Any]) -> Any:
    return sum((v * turn for v, turn in zip(values, turns, strict=True)), acb(0)) / len(values)


def _exponent(x: Any) -> int:
    """The size of a positive number in bits."""
    if not x.is_finite() or x.is_zero():
        return -(2**20) if x.is_zero() else 2**20
    mantissa, exponent = x.man_exp()
    return int(exponent) + int(mantissa).bit_length()


def partial_derivative(function: Function, orders: Sequence[int], domain: Sequence[Interval], *xs: Any) -> Any:
    """A partial derivative of an analytic function at real numbers."""
    return series_of(function, domain, [(lambda t, x=x: x) for x in xs], 1, orders)[0]  # type: ignore[misc]


def series_of(
    function: Function,
    domain: Sequence[Interval],
    along: Sequence[Callable[[Any], Any]],
    terms: int,
    orders: Sequence[int] = (),
) -> list[Any]:
    """The power series in t of a function, or of a partial derivative of it, of arguments that are functions of t."""
    moved = [i for i, order in enumerate(orders) if order]

    def placed(*steps: Any) -> list[Any]:
        xs = [x(steps[-1]) for x in along]
        for i, step in zip(moved, steps, strict=False):
            xs[i] = xs[i] + step
        return xs

    return taylor(
        lambda *steps: function(*placed(*steps)),
        terms,
        lambda *steps: inside(domain, placed(*steps)),
        [orders[i] for i in moved],
    )
