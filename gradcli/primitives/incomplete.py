"""The regularized incomplete gamma and beta functions of x, with SciPy's arguments.

Their derivatives with respect to the parameters `a` and `b` have no closed form, so these are numbers that are known
before a script runs: a leaf that stands there becomes const, as one that is read as a size does.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from gradcli.base.diagnostics import error
from gradcli.graph.domain import NONNEGATIVE, Closed, Interval
from gradcli.graph.exact import number_text
from gradcli.graph.primitive import Primitive, elementwise
from gradcli.primitives.exponential import exp, xlogy
from gradcli.primitives.special import beta, betaln, gamma, lgamma

MOST_POWER = 100  # for which powers and gamma functions stay in range


def _parameter(value: Any, parameter: str, name: str) -> Any:
    """A positive number; raises GradcliError GC306 for anything else."""
    if not isinstance(value, (int, float, Fraction)) or not value > 0:
        shown = f"{len(value)} values" if isinstance(value, tuple) else number_text(value)
        raise error("GC306", f"`{parameter}` of {name} is one positive number, not {shown}")
    return value if isinstance(value, int) else Fraction(value)


def _rational(sp: Any, value: Any) -> Any:
    return sp.Rational(value.numerator, value.denominator)


def _ball(fl: Any, value: Any) -> Any:
    return fl.integer(value.numerator) / value.denominator


# --- the incomplete gamma function --------------------------------------------------------------------------


def gammainc_call(a: Any, x: Any) -> Any:
    """SciPy's `gammainc(a, x)`; raises GradcliError GC306 unless a is a positive number."""
    return gammainc(x, a=_parameter(a, "a", "gammainc"))


def gammaincc_call(a: Any, x: Any) -> Any:
    """SciPy's `gammaincc(a, x)`; raises GradcliError GC306 unless a is a positive number."""
    return gammaincc(x, a=_parameter(a, "a", "gammaincc"))


def _gamma_density(x: Any, a: Any) -> Any:
    if a <= MOST_POWER:  # a power has more digits than an exponential, and a value at 0
        return x ** (a - 1) * exp(-x) / gamma(a)
    return exp(xlogy(a - 1, x) - x - lgamma(a))


gammainc: Primitive = elementwise(
    "gammainc",
    "Regularized lower incomplete gamma function P(a, x), for a fixed number a.",
    impl=lambda xp, x, *, a: xp.gammainc(xp.parameter(a, x), x),
    symbolic=lambda sp, x, *, a: sp.lowergamma(_rational(sp, a), x) / sp.gamma(_rational(sp, a)),
    ball=lambda fl, x, *, a: x.gamma_lower(_ball(fl, a), 1),
    partials=lambda x, *, out, a: (_gamma_density(x, a),),
    call=gammainc_call,
    static=("a",),
    aliases=("igamma",),
    domain=[NONNEGATIVE],
    sample=[Closed(0.5, 3)],
    examples=[
        ("gammainc(1, 1)", 0.6321205588285577),
        ("gammainc(2.5, 0)", 0),
        ("gammainc(2.5, 3)", 0.6937810815867212),
    ],
    node="IgammaBackward0",
    formula="∫exp(-t)*t**(a - 1) dt from 0 to x, divided by Γ(a)",
    names="scipy.special. torch.igamma torch.special. jax.scipy.special.",
    traits="real_only",
)

gammaincc: Primitive = elementwise(
    "gammaincc",
    "Regularized upper incomplete gamma function Q(a, x) = 1 - P(a, x), for a fixed number a; precise in the tail.",
    impl=lambda xp, x, *, a: xp.gammaincc(xp.parameter(a, x), x),
    symbolic=lambda sp, x, *, a: sp.uppergamma(_rational(sp, a), x) / sp.gamma(_rational(sp, a)),
    ball=lambda fl, x, *, a: x.gamma_upper(_ball(fl, a), 1),
    partials=lambda x, *, out, a: (-_gamma_density(x, a),),
    call=gammaincc_call,
    static=("a",),
    aliases=("igammac",),
    domain=[NONNEGATIVE],
    sample=[Closed(0.5, 3)],
    examples=[
        ("gammaincc(1, 1)", 0.36787944117144233),
        ("gammaincc(2.5, 0)", 1),
        ("gammaincc(2.5, 3)", 0.3062189184132784),
    ],
    node="IgammacBackward0",
    formula="∫exp(-t)*t**(a - 1) dt from x to ∞, divided by Γ(a)",
    names="scipy.special. torch.igammac torch.special. jax.scipy.special.",
    traits="real_only",
)

# --- the incomplete beta function ---------------------------------------------------------------------------


def betainc_call(a: Any, b: Any, x: Any) -> Any:
    """SciPy's `betainc(a, b, x)`; raises GradcliError GC306 unless a and b are positive numbers."""
    return betainc(x, a=_parameter(a, "a", "betainc"), b=_parameter(b, "b", "betainc"))


def _beta_density(x: Any, a: Any, b: Any) -> Any:
    if a + b <= MOST_POWER:
        return x ** (a - 1) * (1 - x) ** (b - 1) / beta(a, b)
    return exp(xlogy(a - 1, x) + xlogy(b - 1, 1 - x) - betaln(a, b))


betainc: Primitive = elementwise(
    "betainc",
    "Regularized incomplete beta function I_x(a, b), for fixed numbers a and b, and x from 0 to 1.",
    impl=lambda xp, x, *, a, b: xp.betainc(xp.parameter(a, x), xp.parameter(b, x), x),
    symbolic=lambda sp, x, *, a, b: sp.betainc_regularized(_rational(sp, a), _rational(sp, b), 0, x),
    ball=lambda fl, x, *, a, b: x.beta_lower(_ball(fl, a), _ball(fl, b), 1),
    partials=lambda x, *, out, a, b: (_beta_density(x, a, b),),
    call=betainc_call,
    static=("a", "b"),
    domain=[Interval(0.0, 1.0)],
    sample=[Closed(0.2, 0.8)],
    examples=[
        ("betainc(1, 1, 0.5)", 0.5),
        ("betainc(2, 3, 0.25)", 0.26171875),
        ("betainc(2.5, 1.5, 0.5)", 0.2877934092108062),
    ],
    formula="∫t**(a - 1)*(1 - t)**(b - 1) dt from 0 to x, divided by B(a, b)",
    names="scipy.special. jax.scipy.special.",
    traits="real_only",
)
