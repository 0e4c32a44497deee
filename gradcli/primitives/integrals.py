"""Functions that integrals define: the exponential, elliptic and Fresnel integrals, and the scaled error functions."""

from __future__ import annotations

from gradcli.graph.domain import POSITIVE, REAL, Closed, Interval, Open, inf
from gradcli.graph.primitive import Primitive, composite, elementwise
from gradcli.primitives.analytic import analytic, parametric
from gradcli.primitives.exponential import exp
from gradcli.primitives.gamma_functions import pi_beside
from gradcli.primitives.powers import sqrt
from gradcli.primitives.trigonometric import PI, cos, sin

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_AROUND, _SIZE = Closed(-2, 2), Closed(0.5, 3)


# --- of the normal distribution -----------------------------------------------------------------------------

erfcx: Primitive = parametric(
    "erfcx",
    "exp(x**2)*erfc(x), with full precision in the tail.",
    lambda x: (x * x).exp() * x.erfc(),
    symbolic=lambda sp, x: sp.exp(x * x) * sp.erfc(x),
    partials=lambda x, *, out: (erfcx.derivative(x, orders=(1,)),),
    closed=lambda x, *, orders: 2 * x * erfcx(x) - 2 / sqrt(pi_beside(x)) if orders == (1,) else None,
    texts={(1,): "2*x*erfcx(x) - 2/sqrt(pi)"},
    domain=[REAL],
    sample=[_AROUND],
    examples=[("erfcx(0)", 1), ("erfcx(30)", 0.018795888861416751)],
    node="SpecialErfcxBackward0",
    formula="exp(x**2)*erfc(x)",
    names="scipy.special. torch.special. jax.scipy.special.",
)

erfi: Primitive = analytic(
    "erfi",
    "Imaginary error function: erf(i*x)/i.",
    lambda x: x.erfi(),
    symbolic=lambda sp, x: sp.erfi(x),
    partials=lambda x, *, out: (2 * exp(x * x) / sqrt(PI),),
    domain=[REAL],
    sample=[_AROUND],
    examples=[("erfi(0)", 0), ("erfi(1)", 1.6504257587975429)],
    formula="erfi(x)",
    names="scipy.special.",
)

dawsn: Primitive = parametric(
    "dawsn",
    "Dawson's integral: exp(-x**2) times the integral of exp(t**2) from 0 to x.",
    lambda x: (-x * x).exp() * x.erfi() * x.pi().sqrt() / 2,
    symbolic=lambda sp, x: sp.exp(-x * x) * sp.erfi(x) * sp.sqrt(sp.pi) / 2,
    partials=lambda x, *, out: (dawsn.derivative(x, orders=(1,)),),
    closed=lambda x, *, orders: 1 - 2 * x * dawsn(x) if orders == (1,) else None,
    texts={(1,): "1 - 2*x*dawsn(x)"},
    domain=[REAL],
    sample=[_AROUND],
    examples=[("dawsn(0)", 0), ("dawsn(1)", 0.5380795069127684)],
    formula="exp(-x**2)*∫exp(t**2) dt from 0 to x",
    names="scipy.special. jax.scipy.special.",
)

log_ndtr: Primitive = analytic(
    "log_ndtr",
    "Logarithm of the normal distribution function, with full precision in the tails.",
    lambda x: ((-x * (x * 0 + 0.5).sqrt()).erfc() / 2).log(),
    ball=lambda fl, x: ((-(x / fl.integer(2).sqrt())).erfc() / 2).log(),
    symbolic=lambda sp, x: sp.log(sp.erfc(-x / sp.sqrt(2)) / 2),
    partials=lambda x, *, out: (sqrt(2 / PI) / erfcx(-x / sqrt(2)),),
    domain=[REAL],
    sample=[_AROUND],
    examples=[("log_ndtr(0)", -0.6931471805599453), ("log_ndtr(-30)", -454.32124395634327)],
    node="SpecialLogNdtrBackward0",
    formula="log(Φ(x))",
    names="scipy.special. torch.special. jax.scipy.special.",
)


# --- exponential integrals ----------------------------------------------------------------------------------

expi = elementwise(
    "expi",
    "Exponential integral Ei: the principal value of the integral of exp(t)/t from -∞ to x.",
    impl=lambda xp, x: xp.analytic("expi", lambda x: x.ei(), (REAL,), x),
    ball=lambda fl, x: x.ei(),
    symbolic=lambda sp, x: sp.Ei(x),
    partials=lambda x, *, out: (exp(x) / x,),
    domain=[REAL],
    sample=[_SIZE],
    examples=[("expi(1)", 1.8951178163559368), ("expi(-2)", -0.04890051070806112)],
    formula="Ei(x)",
    names="scipy.special. jax.scipy.special.",
    traits="real_only",
)

exp1 = elementwise(
    "exp1",
    "Exponential integral E₁: the integral of exp(-t)/t from x to ∞.",
    impl=lambda xp, x: xp.analytic("exp1", lambda x: x.expint(1), (POSITIVE,), x),
    ball=lambda fl, x: -(-x).ei() if fl.sign(x) > 0 else fl.undefined("exp1 of a number that is not positive"),
    symbolic=lambda sp, x: sp.expint(1, x),
    partials=lambda x, *, out: (-exp(-x) / x,),
    domain=[POSITIVE],
    sample=[_SIZE],
    examples=[("exp1(1)", 0.21938393439552026)],
    formula="E₁(x)",
    names="scipy.special. jax.scipy.special.",
    traits="real_only",
)

# --- elliptic integrals --------------------------------------------------------------------------------------


def _ellipk_slope(m: Any, *, orders: tuple[int, ...]) -> Any:
    return (ellipe(m) - (1 - m) * ellipk(m)) / (2 * m * (1 - m)) if orders == (1,) else None


def _ellipe_slope(m: Any, *, orders: tuple[int, ...]) -> Any:
    return (ellipe(m) - ellipk(m)) / (2 * m) if orders == (1,) else None


def _ellipe_ball(fl: Any, m: Any) -> Any:
    side = fl.sign(1 - m)
    if side < 0:
        return fl.undefined("an elliptic integral of a parameter above 1")
    return fl.analytic(lambda m: m.elliptic_e(), (Open(-inf, 1),), m) if side else fl.integer(1)


ellipk: Primitive = parametric(
    "ellipk",
    "Complete elliptic integral of the first kind of the parameter m, the square of the modulus.",
    lambda m: m.elliptic_k(),
    symbolic=lambda sp, m: sp.elliptic_k(m),
    partials=lambda m, *, out: (ellipk.derivative(m, orders=(1,)),),
    closed=_ellipk_slope,
    texts={(1,): "(ellipe(x) - (1 - x)*ellipk(x))/(2*x*(1 - x))"},
    domain=[Open(-inf, 1)],
    sample=[Closed(-2, 0.8)],
    examples=[("ellipk(0)", 1.5707963267948966), ("ellipk(0.5)", 1.8540746773013719)],
    formula="K(m)",
    names="scipy.special.",
)

ellipe: Primitive = parametric(
    "ellipe",
    "Complete elliptic integral of the second kind of the parameter m, the square of the modulus.",
    lambda m: m.elliptic_e(),
    ball=_ellipe_ball,
    symbolic=lambda sp, m: sp.elliptic_e(m),
    partials=lambda m, *, out: (ellipe.derivative(m, orders=(1,)),),
    closed=_ellipe_slope,
    texts={(1,): "(ellipe(x) - ellipk(x))/(2*x)"},
    domain=[Interval(-inf, 1.0)],
    sample=[Closed(-2, 0.8)],
    examples=[("ellipe(0)", 1.5707963267948966), ("ellipe(0.5)", 1.3506438810476755)],
    formula="E(m)",
    names="scipy.special.",
)

# --- Fresnel integrals ---------------------------------------------------------------------------------------

fresnels: Primitive = analytic(
    "fresnels",
    "Fresnel integral S: the integral of sin(pi*t**2/2) from 0 to x.",
    lambda x: x.fresnel_s(),
    symbolic=lambda sp, x: sp.fresnels(x),
    ball=lambda fl, x: x.fresnel_s(),
    partials=lambda x, *, out: (sin(PI * (x * x) / 2),),
    domain=[REAL],
    sample=[_AROUND],
    examples=[("fresnels(1)", 0.43825914739035476)],
    formula="S(x)",
)

fresnelc: Primitive = analytic(
    "fresnelc",
    "Fresnel integral C: the integral of cos(pi*t**2/2) from 0 to x.",
    lambda x: x.fresnel_c(),
    symbolic=lambda sp, x: sp.fresnelc(x),
    ball=lambda fl, x: x.fresnel_c(),
    partials=lambda x, *, out: (cos(PI * (x * x) / 2),),
    domain=[REAL],
    sample=[_AROUND],
    examples=[("fresnelc(1)", 0.7798934003768228)],
    formula="C(x)",
)

fresnel = composite(
    "fresnel",
    "Two values: the Fresnel integrals S and C.",
    definition=lambda x: (fresnels(x), fresnelc(x)),
    domain=[REAL],
    sample=[_AROUND],
    examples=[
        ("fresnel(1)[0]", 0.43825914739035476),
        ("fresnel(1)[1]", 0.7798934003768228),
        ("fresnel([0, 1])[0]", [0, 0.43825914739035476]),
    ],
    formula="S(x), C(x)",
)
