"""Hypergeometric functions, Hurwitz' zeta function, Lambert's W, and transformations of Box and Cox."""

from __future__ import annotations

from gradcli.base.diagnostics import error
from gradcli.graph.domain import POSITIVE, REAL, Closed, Open, inf
from gradcli.graph.exact import number_text
from gradcli.graph.primitive import Primitive, composite, elementwise
from gradcli.primitives.analytic import analytic, parametric
from gradcli.primitives.exponential import exp, log, log1p

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_AROUND, _SIZE = Closed(-2, 2), Closed(0.5, 3)

hyp0f1: Primitive = parametric(
    "hyp0f1",
    "Confluent hypergeometric limit function: the sum of x**k/(k!*v*(v + 1)*...*(v + k - 1)).",
    lambda v, x: x.hypgeom_0f1(v),
    symbolic=lambda sp, v, x: sp.hyper((), (v,), x),
    partials=lambda v, x, *, out: (hyp0f1.derivative(v, x, orders=(1, 0)), hyp0f1(v + 1, x) / v),
    texts={(0, 1): "hyp0f1(x + 1, y)/x"},
    domain=[REAL, REAL],
    smooth=[POSITIVE, REAL],
    sample=[_SIZE, _AROUND],
    examples=[("hyp0f1(3, 2.5)", 2.1420143462925893)],
    formula="₀F₁(v; x)",
    names="scipy.special.",
)

hyp1f1: Primitive = parametric(
    "hyp1f1",
    "Kummer's confluent hypergeometric function.",
    lambda a, b, x: x.hypgeom_1f1(a, b),
    symbolic=lambda sp, a, b, x: sp.hyper((a,), (b,), x),
    partials=lambda a, b, x, *, out: (
        hyp1f1.derivative(a, b, x, orders=(1, 0, 0)),
        hyp1f1.derivative(a, b, x, orders=(0, 1, 0)),
        a / b * hyp1f1(a + 1, b + 1, x),
    ),
    texts={(0, 0, 1): "x/y*hyp1f1(x + 1, y + 1, z)"},
    domain=[REAL, REAL, REAL],
    smooth=[REAL, POSITIVE, REAL],
    sample=[_SIZE, _SIZE, _AROUND],
    examples=[("hyp1f1(1, 2, 0.5)", 1.2974425414002564)],
    formula="₁F₁(a; b; x)",
    names="scipy.special. jax.scipy.special.",
)

hyp2f1: Primitive = parametric(
    "hyp2f1",
    "Gauss' hypergeometric function, for x < 1.",
    lambda a, b, c, x: x.hypgeom_2f1(a, b, c),
    symbolic=lambda sp, a, b, c, x: sp.hyper((a, b), (c,), x),
    partials=lambda a, b, c, x, *, out: (
        hyp2f1.derivative(a, b, c, x, orders=(1, 0, 0, 0)),
        hyp2f1.derivative(a, b, c, x, orders=(0, 1, 0, 0)),
        hyp2f1.derivative(a, b, c, x, orders=(0, 0, 1, 0)),
        a * b / c * hyp2f1(a + 1, b + 1, c + 1, x),
    ),
    domain=[REAL, REAL, REAL, Open(-inf, 1)],
    smooth=[REAL, REAL, POSITIVE, Open(-inf, 1)],
    sample=[_SIZE, _SIZE, _SIZE, Closed(-2, 0.8)],
    examples=[("hyp2f1(0.5, 0.5, 1, 0.3)", 1.0910959103627816)],
    formula="₂F₁(a, b; c; x)",
    names="scipy.special.",
)

exprel: Primitive = analytic(
    "exprel",
    "(exp(x) - 1)/x, and 1 at 0.",
    lambda x: x.hypgeom_1f1(1, 2),
    symbolic=lambda sp, x: sp.hyper((1,), (2,), x),
    partials=lambda x, *, out: (hyp1f1(2, 3, x) / 2,),
    domain=[REAL],
    sample=[_AROUND],
    examples=[("exprel(0)", 1), ("exprel(1e-20)", 1), ("exprel(1)", 1.718281828459045)],
    formula="(exp(x) - 1)/x",
    names="scipy.special.",
)

# --- transformations of Box and Cox --------------------------------------------------------------------------

boxcox = composite(
    "boxcox",
    "(x**lmbda - 1)/lmbda, and log(x) where lmbda is 0.",
    definition=lambda x, lmbda: log(x) * exprel(lmbda * log(x)),
    pointwise=True,
    arity=2,
    domain=[POSITIVE, REAL],
    sample=[_SIZE, _AROUND],
    examples=[("boxcox(2, 0)", 0.6931471805599453), ("boxcox(4, 0.5)", 2)],
    formula="(x**λ - 1)/λ",
    names="scipy.special. jax.scipy.special.",
)

boxcox1p = composite(
    "boxcox1p",
    "boxcox(1 + x, lmbda), with full precision near 0.",
    definition=lambda x, lmbda: log1p(x) * exprel(lmbda * log1p(x)),
    pointwise=True,
    arity=2,
    domain=[Open(-1, inf), REAL],
    sample=[_SIZE, _AROUND],
    examples=[("boxcox1p(1, 0)", 0.6931471805599453), ("boxcox1p(3, 0.5)", 2)],
    formula="((1 + x)**λ - 1)/λ",
    names="scipy.special. jax.scipy.special.",
)

inv_boxcox = composite(
    "inv_boxcox",
    "Inverse of boxcox: (lmbda*y + 1)**(1/lmbda), and exp(y) where lmbda is 0.",
    definition=lambda y, lmbda: exp(y * hyp2f1(1, 1, 2, -(lmbda * y))),
    pointwise=True,
    arity=2,
    domain=[REAL, REAL],
    sample=[Closed(-0.4, 2), Closed(0.2, 2)],
    examples=[("inv_boxcox(1, 0)", 2.718281828459045), ("inv_boxcox(2, 0.5)", 4)],
    formula="(λ*y + 1)**(1/λ)",
    names="scipy.special.",
)

# --- zeta, and W ------------------------------------------------------------------------------------------------

zeta: Primitive = parametric(
    "zeta",
    "Hurwitz' zeta function: the sum of 1/(k + q)**x over k = 0, 1, 2, ...; with q = 1 that of Riemann.",
    lambda x, q: x.zeta(q),
    symbolic=lambda sp, x, q: sp.zeta(x, q),
    partials=lambda x, q, *, out: (zeta.derivative(x, q, orders=(1, 0)), -x * zeta(x + 1, q)),
    texts={(0, 1): "-x*zeta(x + 1, y)"},
    call=lambda x, q=1: zeta(x, q),
    domain=[Open(1, inf), POSITIVE],
    sample=[Closed(1.5, 4), _SIZE],
    examples=[("zeta(2)", 1.6449340668482264), ("zeta(2, 3)", 0.3949340668482264)],
    formula="ζ(x, q)",
    names="scipy.special. torch.special. jax.scipy.special.",
)


def lambertw_call(x: Any, k: Any = 0) -> Any:
    """SciPy's `lambertw(x, k)`, where it is real; raises GradcliError GC306 for another branch than 0 and -1."""
    if k not in (0, -1):
        raise error("GC306", f"the real branches of lambertw are 0 and -1, not {number_text(k)}")
    return lambertw(x, k=int(k))


lambertw: Primitive = elementwise(
    "lambertw",
    "Lambert's W: the solution w of w*exp(w) = x, at least -1 for k = 0, at most -1 for k = -1.",
    impl=lambda xp, x, *, k: xp.analytic("", lambda x: x.lambertw(k), (REAL,), x),
    symbolic=lambda sp, x, *, k: sp.LambertW(x, k),
    ball=lambda fl, x, *, k: x.lambertw(k),
    partials=lambda x, *, out, k: (1 / (x + exp(out)),),
    call=lambertw_call,
    static=("k",),
    domain=[Open(-0.36787944117144233, inf)],
    sample=[Closed(-0.35, -0.05)],
    examples=[("lambertw(1)", 0.5671432904097838), ("lambertw(-0.2, -1)", -2.5426413577735265)],
    formula="W(x)",
    traits="real_only",
)
