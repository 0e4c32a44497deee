"""The regularized incomplete gamma and beta functions, with SciPy's arguments, and their densities."""

from __future__ import annotations

from gradcli.graph.domain import NONNEGATIVE, POSITIVE, Closed, Interval, Open
from gradcli.graph.primitive import Primitive, elementwise
from gradcli.primitives.analytic import parametric
from gradcli.primitives.exponential import exp, log
from gradcli.primitives.gamma_functions import beta, digamma, gamma
from gradcli.primitives.powers import pow_ball

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_SHAPE, _SIZE, _PART = Closed(0.5, 3), Closed(0.5, 3), Closed(0.2, 0.8)
UNIT = Interval(0.0, 1.0)
MOST_POWER = 100  # for which powers and gamma functions stay in range


# --- the incomplete gamma function --------------------------------------------------------------------------


def _lower(a: Any, x: Any) -> Any:
    return x.gamma_lower(a, 1) if x.real.mid() <= a.real.mid() + 1 else 1 - x.gamma_upper(a, 1)


def _gamma_density_value(xp: Any, a: Any, x: Any) -> Any:
    """By powers, which have more digits than an exponential, and a value at 0; 0 where 1/gamma(a) is."""
    small = xp.where(a <= MOST_POWER, a, 1.0)
    scale = xp.gamma(small)
    pole = (small <= 0) & (small == xp.floor(small))
    power = xp.where(pole, 0.0, x ** (small - 1) * xp.exp(-x) / xp.where(pole, 1.0, scale))
    large = xp.where(a <= MOST_POWER, MOST_POWER, a)
    return xp.where(a <= MOST_POWER, power, xp.exp((large - 1) * xp.log(x) - x - xp.gammaln(large)))


def _incomplete(function: Any, method: str, smooth: Any) -> Any:
    """The ball rule: with parameters that stay python-flint's own series and expansions at edges, else Cauchy's."""

    def ball(fl: Any, *xs: Any) -> Any:
        *parameters, x = xs
        if all(fl.is_still(parameter) for parameter in parameters):
            return getattr(x, method)(*parameters, 1)
        return fl.analytic(function, smooth, *xs)

    return ball


def _incomplete_closed(density: Any, sign: int = 1) -> Any:
    """What is a derivative by x, and by one parameter at most: the density, or the partial of the density."""

    def closed(*xs: Any, orders: tuple[int, ...]) -> Any:
        *parameters, last = orders
        if last != 1 or sum(parameters) > 1:
            return None
        value = density(*xs)
        derivative = value if not any(parameters) else density.partials(*xs, out=value)[parameters.index(1)]
        return derivative if sign > 0 else -derivative

    return closed


GAMMA_DENSITY = "y**(x - 1)*exp(-y)/gamma(x)"
BETA_DENSITY = "z**(x - 1)*(1 - z)**(y - 1)/beta(x, y)"

gamma_density: Primitive = elementwise(
    "gamma_density",
    "The derivative of gammainc by x.",
    impl=_gamma_density_value,
    symbolic=lambda sp, a, x: sp.Pow(x, a - 1) * sp.exp(-x) / sp.gamma(a),
    ball=lambda fl, a, x: pow_ball(fl, x, a - 1) * (-x).exp() * a.rgamma(),
    partials=lambda a, x, *, out: (out * (log(x) - digamma(a)), gamma_density(a - 1, x) - out),
    closed=lambda a, x: x ** (a - 1) * exp(-x) / gamma(a),
    formula=GAMMA_DENSITY,
    internal=True,
    domain=[POSITIVE, NONNEGATIVE],
    sample=[_SHAPE, _SIZE],
    traits="real_only",
)

gammainc: Primitive = parametric(
    "gammainc",
    "Regularized lower incomplete gamma function P(a, x).",
    _lower,
    symbolic=lambda sp, a, x: sp.lowergamma(a, x) / sp.gamma(a),
    ball=_incomplete(_lower, "gamma_lower", (POSITIVE, POSITIVE)),
    partials=lambda a, x, *, out: (gammainc.derivative(a, x, orders=(1, 0)), gamma_density(a, x)),
    closed=_incomplete_closed(gamma_density),
    texts={(0, 1): GAMMA_DENSITY, (1, 1): f"{GAMMA_DENSITY}*(log(y) - digamma(x))"},
    aliases=("igamma",),
    domain=[POSITIVE, NONNEGATIVE],
    sample=[_SHAPE, _SIZE],
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

gammaincc: Primitive = parametric(
    "gammaincc",
    "Regularized upper incomplete gamma function Q(a, x) = 1 - P(a, x); precise in the tail.",
    lambda a, x: x.gamma_upper(a, 1),
    symbolic=lambda sp, a, x: sp.uppergamma(a, x) / sp.gamma(a),
    ball=_incomplete(lambda a, x: x.gamma_upper(a, 1), "gamma_upper", (POSITIVE, POSITIVE)),
    partials=lambda a, x, *, out: (gammaincc.derivative(a, x, orders=(1, 0)), -gamma_density(a, x)),
    closed=_incomplete_closed(gamma_density, -1),
    texts={(0, 1): f"-{GAMMA_DENSITY}", (1, 1): f"-{GAMMA_DENSITY}*(log(y) - digamma(x))"},
    aliases=("igammac",),
    domain=[POSITIVE, NONNEGATIVE],
    sample=[_SHAPE, _SIZE],
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


def _beta_density_value(xp: Any, a: Any, b: Any, x: Any) -> Any:
    few = a + b <= MOST_POWER
    small, other = xp.where(few, a, 1.0), xp.where(few, b, 1.0)
    pole = ((small <= 0) & (small == xp.floor(small))) | ((other <= 0) & (other == xp.floor(other)))
    scale = xp.beta(xp.where(pole, 1.0, small), xp.where(pole, 1.0, other))
    power = xp.where(pole, 0.0, x ** (small - 1) * (1 - x) ** (other - 1) / scale)
    p, q = xp.where(few, MOST_POWER, a), xp.where(few, MOST_POWER, b)
    return xp.where(few, power, xp.exp((p - 1) * xp.log(x) + (q - 1) * xp.log1p(-x) - xp.betaln(p, q)))


beta_density: Primitive = elementwise(
    "beta_density",
    "The derivative of betainc by x.",
    impl=_beta_density_value,
    symbolic=lambda sp, a, b, x: sp.Pow(x, a - 1) * sp.Pow(1 - x, b - 1) * sp.gamma(a + b) / sp.gamma(a) / sp.gamma(b),
    ball=lambda fl, a, b, x: (
        pow_ball(fl, x, a - 1) * pow_ball(fl, 1 - x, b - 1) * (a + b).gamma() * a.rgamma() * b.rgamma()
    ),
    partials=lambda a, b, x, *, out: (
        out * (log(x) - digamma(a) + digamma(a + b)),
        out * (log(1 - x) - digamma(b) + digamma(a + b)),
        (a + b - 1) * (beta_density(a - 1, b, x) - beta_density(a, b - 1, x)),
    ),
    closed=lambda a, b, x: x ** (a - 1) * (1 - x) ** (b - 1) / beta(a, b),
    formula=BETA_DENSITY,
    internal=True,
    domain=[POSITIVE, POSITIVE, UNIT],
    sample=[_SHAPE, _SHAPE, _PART],
    traits="real_only",
)

betainc: Primitive = parametric(
    "betainc",
    "Regularized incomplete beta function I_x(a, b), for x from 0 to 1.",
    lambda a, b, x: x.beta_lower(a, b, 1),
    symbolic=lambda sp, a, b, x: sp.betainc_regularized(a, b, 0, x),
    ball=_incomplete(lambda a, b, x: x.beta_lower(a, b, 1), "beta_lower", (POSITIVE, POSITIVE, Open(0, 1))),
    partials=lambda a, b, x, *, out: (
        betainc.derivative(a, b, x, orders=(1, 0, 0)),
        betainc.derivative(a, b, x, orders=(0, 1, 0)),
        beta_density(a, b, x),
    ),
    closed=_incomplete_closed(beta_density),
    texts={
        (0, 0, 1): BETA_DENSITY,
        (1, 0, 1): f"{BETA_DENSITY}*(log(z) - digamma(x) + digamma(x + y))",
        (0, 1, 1): f"{BETA_DENSITY}*(log(1 - z) - digamma(y) + digamma(x + y))",
    },
    domain=[POSITIVE, POSITIVE, UNIT],
    sample=[_SHAPE, _SHAPE, _PART],
    examples=[
        ("betainc(1, 1, 0.5)", 0.5),
        ("betainc(2, 3, 0.25)", 0.26171875),
        ("betainc(2.5, 1.5, 0.5)", 0.2877934092108062),
    ],
    formula="∫t**(a - 1)*(1 - t)**(b - 1) dt from 0 to x, divided by B(a, b)",
    names="scipy.special. jax.scipy.special.",
    traits="real_only",
)
