"""The error function, the gamma function and sinc with their families: closed under differentiation, exact at 0."""

from __future__ import annotations

from math import comb, factorial, perm, pi, sqrt

from gradcli.base.diagnostics import error
from gradcli.graph.arrays import nearest_float
from gradcli.graph.domain import POSITIVE, REAL, Closed, Open
from gradcli.graph.exact import number_text
from gradcli.graph.primitive import Primitive, composite, elementwise
from gradcli.primitives.exponential import log
from gradcli.primitives.trigonometric import PI

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# --- the error function ---------------------------------------------------------------------------------

erf = elementwise(
    "erf",
    "Error function.",
    impl=lambda xp, x: xp.erf(x),
    symbolic=lambda sp, x: sp.erf(x),
    ball=lambda fl, x: x.erf(),
    partials=lambda x, *, out: (erf_derivative(x),),
    domain=[REAL],
    sample=[Closed(-2, 2)],
    examples=[("erf(0)", 0), ("erf(1)", 0.8427007929497149)],
    node="ErfBackward0",
    formula="erf(x)",
    names="c. scipy.special. torch. torch.special. jax.scipy.special.",
    traits="real_only saturates",
)

erfc = elementwise(
    "erfc",
    "1 - erf(x), with full precision in the tail.",
    impl=lambda xp, x: xp.erfc(x),
    symbolic=lambda sp, x: sp.erfc(x),
    ball=lambda fl, x: x.erfc(),
    partials=lambda x, *, out: (-erf_derivative(x),),
    domain=[REAL],
    sample=[Closed(-2, 2)],
    examples=[("erfc(0)", 1), ("erfc(10)", 2.088487583762545e-45)],
    node="ErfcBackward0",
    formula="1 - erf(x)",
    names="c. scipy.special. torch. torch.special. jax.scipy.special.",
    elementary="1 - erf(x)",
    traits="real_only saturates",
)

erfinv = elementwise(
    "erfinv",
    "Inverse of the error function.",
    impl=lambda xp, x: xp.erfinv(x),
    symbolic=lambda sp, x: sp.erfinv(x),
    ball=lambda fl, x: x.erfinv(),
    partials=lambda x, *, out: (1 / erf_derivative(out),),
    domain=[Open(-1, 1)],
    sample=[Closed(-0.8, 0.8)],
    examples=[("erfinv(0)", 0), ("erfinv(0.5)", 0.4769362762044699)],
    node="ErfinvBackward0",
    formula="erfinv(x)",
    names="cuda. scipy.special. torch. torch.special. jax.scipy.special. jax.lax.erf_inv",
    traits="real_only",
)

erfcinv = elementwise(
    "erfcinv",
    "Inverse of erfc, with full precision for small x.",
    impl=lambda xp, x: xp.erfcinv(x),
    symbolic=lambda sp, x: sp.erfcinv(x),
    ball=lambda fl, x: x.erfcinv(),
    partials=lambda x, *, out: (-1 / erf_derivative(out),),
    domain=[Open(0, 2)],
    sample=[Closed(0.2, 1.8)],
    examples=[("erfcinv(1)", 0), ("erfcinv(0.5)", 0.4769362762044699), ("erfcinv(1e-50)", 10.592090169527364)],
    formula="erfcinv(x)",
    names="scipy.special.",
    elementary="erfinv(1 - x)",
    traits="real_only",
)


def pi_beside(x: Any) -> Any:
    return x.builder.constant("pi", x.shape)


erf_derivative: Primitive = elementwise(
    "erf_derivative",
    "The derivative of erf: a bell curve.",
    impl=lambda xp, x: (2 / sqrt(pi)) * xp.exp(-(x * x)),
    symbolic=lambda sp, x: 2 * sp.exp(-(x * x)) / sp.sqrt(sp.pi),
    ball=lambda fl, x: 2 * (-(x * x)).exp() / fl.pi().sqrt(),
    partials=lambda x, *, out: (-2 * (x * out),),
    internal=True,
    domain=[REAL],
    sample=[Closed(-2, 2)],
    formula="2*exp(-x**2)/sqrt(pi)",
    closed=lambda x: 2 * x.named("exp")(-(x**2)) / x.named("sqrt")(pi_beside(x)),
)

# --- the gamma function -----------------------------------------------------------------------------------


def _guard_pole(fl: Any, x: Any) -> None:
    if x.is_integer() and fl.sign(x) <= 0:
        fl.undefined("the gamma function has a pole at 0, -1, -2, ...")


def _gamma_ball(fl: Any, x: Any) -> Any:
    _guard_pole(fl, x)
    return x.gamma()


gamma = elementwise(
    "gamma",
    "Gamma function: (n - 1)! at whole numbers n.",
    impl=lambda xp, x: xp.gamma(x),
    symbolic=lambda sp, x: sp.gamma(x),
    ball=_gamma_ball,
    partials=lambda x, *, out: (out * digamma(x),),
    domain=[REAL],
    sample=[Closed(0.5, 4)],
    examples=[("gamma(5)", 24), ("gamma(0.5)", 1.772453850905516)],
    formula="Γ(x)",
    names="c.tgamma scipy.special. jax.scipy.special.",
    traits="real_only",
)


def _lgamma_symbolic(sp: Any, x: Any) -> Any:
    if sp.sign_at_point(x) > 0:
        return sp.loggamma(x)
    value = sp.gamma(x)
    return sp.log(sp.sign_at_point(value) * value)


def _lgamma_ball(fl: Any, x: Any) -> Any:
    _guard_pole(fl, x)
    if fl.sign(x) > 0:
        return x.lgamma()
    value = x.gamma()
    return (fl.sign(value) * value).log()


factorial_ = composite(
    "factorial",
    "The gamma function of x + 1: the product of 1 to x at whole numbers.",
    definition=lambda x: gamma(x + 1),
    pointwise=True,
    arity=1,
    domain=[REAL],
    sample=[Closed(0.5, 4)],
    examples=[("factorial(5)", 120)],
    formula="x!",
    names="scipy.special. jax.scipy.special.",
)

lgamma = elementwise(
    "lgamma",
    "Logarithm of the absolute value of the gamma function.",
    impl=lambda xp, x: xp.gammaln(x),
    symbolic=_lgamma_symbolic,
    ball=_lgamma_ball,
    partials=lambda x, *, out: (digamma(x),),
    aliases=("gammaln",),
    domain=[REAL],
    sample=[Closed(0.5, 4)],
    examples=[("lgamma(1)", 0), ("lgamma(10)", 12.801827480081469)],
    node="LgammaBackward0",
    formula="log|Γ(x)|",
    names="c. scipy.special.gammaln torch. torch.special.gammaln jax.scipy.special.gammaln sympy.loggamma",
    traits="real_only",
)


loggamma = elementwise(
    "loggamma",
    "Logarithm of the gamma function of positive numbers.",
    impl=lambda xp, x: xp.where(x > 0, xp.gammaln(x), xp.nan),
    symbolic=lambda sp, x: sp.loggamma(x),
    ball=lambda fl, x: x.lgamma(),
    partials=lambda x, *, out: (digamma(x),),
    domain=[POSITIVE],
    sample=[Closed(0.5, 4)],
    examples=[("loggamma(1)", 0), ("loggamma(10)", 12.801827480081469)],
    formula="log(Γ(x))",
    names="scipy.special.",
    traits="real_only",
)


def _digamma_ball(fl: Any, x: Any) -> Any:
    _guard_pole(fl, x)
    return x.digamma()


digamma: Primitive = elementwise(
    "digamma",
    "Derivative of lgamma.",
    impl=lambda xp, x: xp.digamma(x),
    symbolic=lambda sp, x: sp.digamma(x),
    ball=_digamma_ball,
    partials=lambda x, *, out: (polygamma(x, n=1),),
    aliases=("psi",),
    domain=[REAL],
    sample=[Closed(0.5, 4)],
    examples=[("digamma(1)", -0.5772156649015329)],
    node="DigammaBackward0",
    formula="ψ(x)",
    names="scipy.special. torch. torch.special. torch.special.psi jax.scipy.special.",
    traits="real_only",
)


MOST_POLYGAMMA = 170  # 171! is infinite in float64


def _polygamma_value(xp: Any, x: Any, *, n: int) -> Any:
    """For x > 0 by Hurwitz' zeta; else by reflection, with the n-th derivative of pi*cot(pi*x)."""
    right = x > 0
    positive = xp.where(right, x, 1.0 - x)
    series = (-1.0) ** (n + 1) * nearest_float(factorial(n)) * xp.zeta(n + 1.0, positive)
    sine, cosine = _sine_cosine(xp, xp.where(right, 0.5, x))
    cotangent = cosine / sine
    first, *others = _cotangent_polynomial(n)
    value = nearest_float(first)
    for coefficient in others:
        value = value * cotangent + nearest_float(coefficient)
    return xp.where(right, series, (-1.0) ** n * series - pi ** (n + 1) * value)


def _cotangent_polynomial(n: int) -> list[int]:
    """The n-th derivative of cot as a polynomial in cot, highest power first: P' = -(1 + c**2) dP/dc."""
    p = [0, 1]
    for _ in range(n):
        slope = [i * p[i] for i in range(1, len(p))]
        p = [-a for a in slope] + [0, 0]
        for i, a in enumerate(slope):
            p[i + 2] -= a
    return p[::-1]


def _polygamma_ball(fl: Any, x: Any, *, n: int) -> Any:
    """By Hurwitz' zeta right of 0, else by the recurrence psi_n(x) = psi_n(x + 1) - (-1)**n n! / x**(n + 1)."""
    _guard_pole(fl, x)
    scale = factorial(n) * (-1) ** (n + 1)
    total = fl.integer(0)
    while fl.sign(fl.at_point(x)) <= 0:
        total = total + 1 / x ** (n + 1)
        x = x + 1
    return scale * (total + fl.zeta(n + 1, x))


def polygamma_call(n: Any, x: Any) -> Any:
    """SciPy's `polygamma(n, x)`: the n-th derivative of digamma; raises GradcliError GC306 unless n is 0, 1, 2, ..."""
    if not isinstance(n, int) or not 0 <= n <= MOST_POLYGAMMA:
        raise error(
            "GC306", f"the order of polygamma is a whole number from 0 to {MOST_POLYGAMMA:,}, not {number_text(n)}"
        )
    return polygamma(x, n=n) if n else digamma(x)


polygamma: Primitive = elementwise(
    "polygamma",
    "The n-th derivative of digamma.",
    impl=_polygamma_value,
    symbolic=lambda sp, x, *, n: sp.polygamma(n, x),
    ball=_polygamma_ball,
    partials=lambda x, *, out, n: (polygamma(x, n=n + 1),),
    call=polygamma_call,
    static=("n",),
    domain=[REAL],
    sample=[Closed(0.5, 4)],
    examples=[("polygamma(1, 1)", 1.6449340668482264), ("polygamma(2, 1.5)", -0.8287966442343199)],
    node="PolygammaBackward0",
    formula="ψ⁽ⁿ⁾(x)",
    names="scipy.special. jax.scipy.special.",
    traits="real_only",
)

trigamma = composite(
    "trigamma",
    "Derivative of digamma.",
    definition=lambda x: polygamma(x, n=1),
    pointwise=True,
    arity=1,
    domain=[REAL],
    sample=[Closed(0.5, 4)],
    examples=[("trigamma(1)", 1.6449340668482264), ("trigamma([1, 2])", [1.6449340668482264, 0.6449340668482264])],
    formula="ψ'(x)",
)


def multigammaln_call(a: Any, d: Any) -> Any:
    """SciPy's `multigammaln(a, d)`; raises GradcliError GC306 unless d is 1, 2, 3, ..."""
    if not isinstance(d, int) or not 1 <= d <= MOST_POLYGAMMA:
        raise error("GC306", f"the dimension of multigammaln is a whole number from 1, not {number_text(d)}")
    total = d * (d - 1) * log(PI) / 4
    for j in range(d):
        total = total + lgamma(a - j / 2)
    return total


multigammaln = composite(
    "multigammaln",
    "Logarithm of the multivariate gamma function of dimension d, for a above (d - 1)/2.",
    definition=multigammaln_call,
    static=("d",),
    domain=[REAL],
    sample=[Closed(2, 4)],
    examples=[("multigammaln(3, 1)", 0.6931471805599453), ("multigammaln(3, 3)", 2.694924879806965)],
    formula="log(Γ_d(a))",
    names="scipy.special. jax.scipy.special.",
)

beta = elementwise(
    "beta",
    "Beta function: gamma(x)*gamma(y)/gamma(x + y).",
    impl=lambda xp, x, y: xp.beta(x, y),
    symbolic=lambda sp, x, y: sp.gamma(x) * sp.gamma(y) / sp.gamma(x + y),
    ball=lambda fl, x, y: x.gamma() * y.gamma() * (x + y).rgamma(),
    partials=lambda x, y, *, out: (
        out * (digamma(x) - digamma(x + y)),
        out * (digamma(y) - digamma(x + y)),
    ),
    domain=[REAL, REAL],
    sample=[Closed(0.5, 3), Closed(0.5, 3)],
    examples=[("beta(2, 3)", 0.08333333333333333), ("beta(0.5, 0.5)", 3.141592653589793)],
    formula="Γ(x)Γ(y)/Γ(x + y)",
    names="scipy.special. jax.scipy.special.",
)

betaln = composite(
    "betaln",
    "Logarithm of the beta function, for positive x and y.",
    definition=lambda x, y: lgamma(x) + lgamma(y) - lgamma(x + y),
    impl=lambda xp, x, y: xp.betaln(x, y),
    pointwise=True,
    arity=2,
    domain=[REAL, REAL],
    sample=[Closed(0.5, 3), Closed(0.5, 3)],
    examples=[("betaln(1, 1)", 0), ("betaln(2, 3)", -2.4849066497880004)],
    formula="log|Γ(x)Γ(y)/Γ(x + y)|",
    names="scipy.special. jax.scipy.special.",
)

# --- sinc -------------------------------------------------------------------------------------------------


def _sine_cosine(xp: Any, x: Any) -> tuple[Any, Any]:
    """sin(pi*x) and cos(pi*x), exact at whole and half numbers: multiples of 2 are taken off before pi comes in."""
    turn = x - 2.0 * xp.rint(0.5 * x.real)
    left = turn.real < 0
    right = xp.where(left, -turn, turn)
    sine = xp.sin(pi * xp.where(right.real > 0.5, 1.0 - right, right))
    return xp.where(left, -sine, sine), xp.sin(pi * (0.5 - right))


def _sinc_value(xp: Any, x: Any) -> Any:
    right = xp.where(x.real < 0, -x, x)
    zero = right == 0
    return xp.where(zero, 1.0, _sine_cosine(xp, right)[0] / (pi * xp.where(zero, 1.0, right)))


def _sinc_derivative_value(xp: Any, x: Any, *, n: int) -> Any:
    """With z = pi*x: z*S_n = sin's n-th derivative - n*S_(n-1) where z is large; near 0 the series of sin(z)/z."""
    z = pi * x
    radius = max(2.0, float(n))
    near = xp.abs(z) <= radius
    return pi**n * xp.where(near, _sinc_series(xp.where(near, z, 0.0), n), _sinc_far(xp, x, z, near, n))


def _sinc_series(z: Any, n: int) -> Any:
    """The n-th derivative of 1 - z**2/3! + z**4/5! - ..., to the last bit for |z| <= max(2, n)."""
    first = n + n % 2  # the first power of z that n derivatives leave alive
    terms = 12 + 2 * n
    value = 0.0 * z
    for power in range(first + 2 * (terms - 1), first - 1, -2):
        coefficient = (-1) ** (power // 2) / ((power + 1) * factorial(power - n))
        value = value * (z * z) + coefficient
    return value * z if n % 2 else value


def _sinc_far(xp: Any, x: Any, z: Any, near: Any, n: int) -> Any:
    sine, cosine = _sine_cosine(xp, x)
    safe = xp.where(near, 1.0, z)
    turns = (sine, cosine, -sine, -cosine)
    value = sine / safe
    for k in range(1, n + 1):
        value = (turns[k % 4] - k * value) / safe
    return value


def _sinc_symbolic(sp: Any, x: Any, *, n: int = 0) -> Any:
    """At 0 the Taylor polynomial: right in value and in every derivative that a check needs."""
    z = sp.pi * x
    if sp.sign_at_point(x) == 0:
        value: Any = sp.Integer(0)
        for k in range((n + 1) // 2, n // 2 + 12):
            value = value + sp.Rational((-1) ** k * perm(2 * k, n), factorial(2 * k + 1)) * z ** (2 * k - n)
    else:
        turns = (sp.sin(z), sp.cos(z), -sp.sin(z), -sp.cos(z))
        value = turns[0] / z
        for k in range(1, n + 1):  # z*sinc is the sine
            value = (turns[k % 4] - k * value) / z
    return sp.pi**n * value


def _sinc_derivative_closed(x: Any, *, n: int) -> Any:
    """By the same recurrence, away from 0."""
    z = pi_beside(x) * x
    sine, cosine = x.named("sin")(z), x.named("cos")(z)
    turns = (sine, cosine, -sine, -cosine)
    value = sine / z
    for k in range(1, n + 1):
        value = (turns[k % 4] - k * value) / z
    return pi_beside(x) ** n * value


def _sinc_derivative_ball(fl: Any, x: Any, *, n: int) -> Any:
    """By Leibniz on sin(z) times 1/z."""
    if fl.sign(x) == 0:
        return fl.integer(0) if n % 2 else (-1) ** (n // 2) * fl.pi() ** n / (n + 1)
    z = fl.pi() * x
    turns = (z.sin(), z.cos(), -z.sin(), -z.cos())
    total = fl.integer(0)
    for k in range(n + 1):
        total = total + comb(n, k) * turns[(n - k) % 4] * (-1) ** k * factorial(k) / z ** (k + 1)
    return fl.pi() ** n * total


sinc = elementwise(
    "sinc",
    "sin(pi*x)/(pi*x), and 1 at 0.",
    impl=_sinc_value,
    symbolic=_sinc_symbolic,
    ball=lambda fl, x: x.sinc_pi(),
    partials=lambda x, *, out: (sinc_derivative(x, n=1),),
    domain=[REAL],
    sample=[Closed(-2, 2)],
    examples=[("sinc(0)", 1), ("sinc(0.5)", 0.6366197723675814), ("sinc(2)", 0)],
    node="SincBackward0",
    formula="sin(πx)/(πx)",
    names="numpy. torch. torch.special.",
    steady="where(x == 0, 1, sin(pi*x)/(pi*where(x == 0, 1, x)))",
    traits="real_only",
)

sinc_derivative: Primitive = elementwise(
    "sinc_derivative",
    "The n-th derivative of sinc.",
    impl=_sinc_derivative_value,
    symbolic=_sinc_symbolic,
    ball=_sinc_derivative_ball,
    partials=lambda x, *, out, n: (sinc_derivative(x, n=n + 1),),
    internal=True,
    domain=[REAL],
    sample=[Closed(-2, 2)],
    formula=lambda *, n: "(cos(pi*x) - sin(pi*x)/(pi*x))/x" if n == 1 else "",
    closed=_sinc_derivative_closed,
    traits="real_only",
)
