"""Bessel functions of real orders: closed under differentiation in x by neighbouring orders, without poles."""

from __future__ import annotations

from gradcli.graph.domain import POSITIVE, REAL, Closed
from gradcli.graph.primitive import Kink, Primitive, elementwise
from gradcli.primitives.analytic import analytic, parametric
from gradcli.primitives.exponential import exp
from gradcli.primitives.steps import abs_, sign

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_ORDER, _SIZE = Closed(0.2, 2.5), Closed(0.5, 3)


def _of_order(method: str) -> Callable[..., Any]:
    """The ball rule of J_v and I_v: for a whole order they are entire, for others there is a cut left of 0."""

    def ball(fl: Any, v: Any, x: Any) -> Any:
        if v.is_integer():
            return getattr(x, method)(int(v.unique_fmpz()))
        return fl.analytic(lambda v, x: getattr(x, method)(v), (REAL, POSITIVE), v, x)

    return ball


def _scaled(fl: Any, x: Any, value: Any) -> Any:
    return value * (-(fl.sign(x) * x)).exp() if not x.is_zero() else value


# --- of the first kind ------------------------------------------------------------------------------------

j0: Primitive = elementwise(
    "j0",
    "Bessel function of the first kind of order 0.",
    impl=lambda xp, x: xp.j0(x),
    symbolic=lambda sp, x: sp.besselj(0, x),
    ball=lambda fl, x: x.bessel_j(0),
    partials=lambda x, *, out: (-j1(x),),
    aliases=("bessel_j0",),
    domain=[REAL],
    sample=[Closed(-2, 2)],
    examples=[("j0(0)", 1), ("j0(1)", 0.7651976865579666)],
    formula="J₀(x)",
    names="scipy.special. torch.special.bessel_j0",
    traits="real_only",
)

j1: Primitive = elementwise(
    "j1",
    "Bessel function of the first kind of order 1.",
    impl=lambda xp, x: xp.j1(x),
    symbolic=lambda sp, x: sp.besselj(1, x),
    ball=lambda fl, x: x.bessel_j(1),
    partials=lambda x, *, out: ((j0(x) - jn(2, x)) / 2,),
    aliases=("bessel_j1",),
    domain=[REAL],
    sample=[Closed(-2, 2)],
    examples=[("j1(0)", 0), ("j1(1)", 0.4400505857449335)],
    formula="J₁(x)",
    names="scipy.special. torch.special.bessel_j1",
    traits="real_only",
)

jn: Primitive = parametric(
    "jn",
    "Bessel function of the first kind of a real order v; for x < 0 of a whole one.",
    lambda v, x: x.bessel_j(v),
    symbolic=lambda sp, v, x: sp.besselj(v, x),
    ball=_of_order("bessel_j"),
    partials=lambda v, x, *, out: (jn.derivative(v, x, orders=(1, 0)), (jn(v - 1, x) - jn(v + 1, x)) / 2),
    texts={(0, 1): "(jn(x - 1, y) - jn(x + 1, y))/2"},
    aliases=("jv",),
    domain=[REAL, REAL],
    smooth=[REAL, POSITIVE],
    sample=[_ORDER, _SIZE],
    examples=[("jn(2, 1)", 0.11490348493190047), ("jn(3, 0)", 0), ("jn(0.5, 2)", 0.5130161365618278)],
    formula="J_v(x)",
    names="scipy.special.jv sympy.besselj",
    traits="real_only",
)

# --- of the second kind -----------------------------------------------------------------------------------

y0: Primitive = analytic(
    "y0",
    "Bessel function of the second kind of order 0.",
    lambda x: x.bessel_y(0),
    symbolic=lambda sp, x: sp.bessely(0, x),
    partials=lambda x, *, out: (-y1(x),),
    aliases=("bessel_y0",),
    domain=[POSITIVE],
    sample=[_SIZE],
    examples=[("y0(1)", 0.08825696421567698)],
    formula="Y₀(x)",
    names="scipy.special. torch.special.bessel_y0",
)

y1: Primitive = analytic(
    "y1",
    "Bessel function of the second kind of order 1.",
    lambda x: x.bessel_y(1),
    symbolic=lambda sp, x: sp.bessely(1, x),
    partials=lambda x, *, out: ((y0(x) - yn(2, x)) / 2,),
    aliases=("bessel_y1",),
    domain=[POSITIVE],
    sample=[_SIZE],
    examples=[("y1(1)", -0.7812128213002887)],
    formula="Y₁(x)",
    names="scipy.special. torch.special.bessel_y1",
)

yn: Primitive = parametric(
    "yn",
    "Bessel function of the second kind of a real order v.",
    lambda v, x: x.bessel_y(v),
    symbolic=lambda sp, v, x: sp.bessely(v, x),
    partials=lambda v, x, *, out: (yn.derivative(v, x, orders=(1, 0)), (yn(v - 1, x) - yn(v + 1, x)) / 2),
    texts={(0, 1): "(yn(x - 1, y) - yn(x + 1, y))/2"},
    aliases=("yv",),
    domain=[REAL, POSITIVE],
    sample=[_ORDER, _SIZE],
    examples=[("yn(2, 1)", -1.6506826068162546), ("yn(0.5, 2)", 0.2347857104062484)],
    formula="Y_v(x)",
    names="scipy.special.yv",
)

# --- modified, of the first kind --------------------------------------------------------------------------

i0: Primitive = elementwise(
    "i0",
    "Modified Bessel function of the first kind of order 0.",
    impl=lambda xp, x: xp.i0(x),
    symbolic=lambda sp, x: sp.besseli(0, x),
    ball=lambda fl, x: x.bessel_i(0),
    partials=lambda x, *, out: (i1(x),),
    aliases=("modified_bessel_i0",),
    domain=[REAL],
    sample=[Closed(-2, 2)],
    examples=[("i0(0)", 1), ("i0(1)", 1.2660658777520084)],
    node="SpecialI0Backward0",
    formula="I₀(x)",
    names="scipy.special. torch.special. torch.special.modified_bessel_i0 jax.scipy.special.",
    traits="real_only",
)

i1: Primitive = elementwise(
    "i1",
    "Modified Bessel function of the first kind of order 1.",
    impl=lambda xp, x: xp.i1(x),
    symbolic=lambda sp, x: sp.besseli(1, x),
    ball=lambda fl, x: x.bessel_i(1),
    partials=lambda x, *, out: ((i0(x) + iv(2, x)) / 2,),
    aliases=("modified_bessel_i1",),
    domain=[REAL],
    sample=[Closed(-2, 2)],
    examples=[("i1(0)", 0), ("i1(1)", 0.5651591039924850)],
    node="SpecialI1Backward0",
    formula="I₁(x)",
    names="scipy.special. torch.special. torch.special.modified_bessel_i1 jax.scipy.special.",
    traits="real_only",
)

iv: Primitive = parametric(
    "iv",
    "Modified Bessel function of the first kind of a real order v; for x < 0 of a whole one.",
    lambda v, x: x.bessel_i(v),
    symbolic=lambda sp, v, x: sp.besseli(v, x),
    ball=_of_order("bessel_i"),
    partials=lambda v, x, *, out: (iv.derivative(v, x, orders=(1, 0)), (iv(v - 1, x) + iv(v + 1, x)) / 2),
    texts={(0, 1): "(iv(x - 1, y) + iv(x + 1, y))/2"},
    domain=[REAL, REAL],
    smooth=[REAL, POSITIVE],
    sample=[_ORDER, _SIZE],
    examples=[("iv(2, 1)", 0.13574766976703828), ("iv(3, 0)", 0), ("iv(0.5, 2)", 2.046236863089055)],
    formula="I_v(x)",
    names="scipy.special. sympy.besseli",
)

_AT_ZERO = [Kink(lambda x: x, "x = 0", "0")]

i0e: Primitive = analytic(
    "i0e",
    "exp(-|x|) times the modified Bessel function i0(x).",
    lambda x: x.bessel_i(0) * (-abs(x)).exp(),
    symbolic=lambda sp, x: sp.besseli(0, x) * sp.exp(-sp.sign_at_point(x) * x),
    ball=lambda fl, x: _scaled(fl, x, x.bessel_i(0)),
    partials=lambda x, *, out: (i1e(x) - sign(x) * out,),
    kinks=_AT_ZERO,
    domain=[REAL],
    sample=[Closed(-2, 2)],
    examples=[("i0e(0)", 1), ("i0e(-1)", 0.46575960759364043)],
    node="SpecialI0EBackward0",
    formula="exp(-|x|)*I₀(x)",
    names="scipy.special. torch.special. jax.scipy.special. jax.lax.bessel_i0e",
)

i1e: Primitive = analytic(
    "i1e",
    "exp(-|x|) times the modified Bessel function i1(x).",
    lambda x: x.bessel_i(1) * (-abs(x)).exp(),
    symbolic=lambda sp, x: sp.besseli(1, x) * sp.exp(-sp.sign_at_point(x) * x),
    ball=lambda fl, x: _scaled(fl, x, x.bessel_i(1)),
    partials=lambda x, *, out: ((i0e(x) + ive(2, x)) / 2 - sign(x) * out,),
    domain=[REAL],
    sample=[Closed(-2, 2)],
    examples=[("i1e(0)", 0), ("i1e(-1)", -0.2079104153497085)],
    node="SpecialI1EBackward0",
    formula="exp(-|x|)*I₁(x)",
    names="scipy.special. torch.special. jax.scipy.special. jax.lax.bessel_i1e",
)

ive: Primitive = analytic(
    "ive",
    "exp(-|x|) times the modified Bessel function iv(v, x).",
    lambda v, x: x.bessel_i(v) * (-abs(x)).exp(),
    symbolic=lambda sp, v, x: sp.besseli(v, x) * sp.exp(-sp.sign_at_point(x) * x),
    ball=lambda fl, v, x: _scaled(fl, x, _of_order("bessel_i")(fl, v, x)),
    partials=lambda v, x, *, out: (
        exp(-abs_(x)) * iv.derivative(v, x, orders=(1, 0)),
        (ive(v - 1, x) + ive(v + 1, x)) / 2 - sign(x) * out,
    ),
    domain=[REAL, REAL],
    sample=[_ORDER, _SIZE],
    examples=[("ive(2, 1)", 0.04993877689422354), ("ive(0.5, 2)", 0.27692804543535515)],
    formula="exp(-|x|)*I_v(x)",
    names="scipy.special.",
)

# --- modified, of the second kind -------------------------------------------------------------------------

k0: Primitive = analytic(
    "k0",
    "Modified Bessel function of the second kind of order 0.",
    lambda x: x.bessel_k(0),
    symbolic=lambda sp, x: sp.besselk(0, x),
    partials=lambda x, *, out: (-k1(x),),
    aliases=("modified_bessel_k0",),
    domain=[POSITIVE],
    sample=[_SIZE],
    examples=[("k0(1)", 0.42102443824070834)],
    formula="K₀(x)",
    names="scipy.special. torch.special.modified_bessel_k0",
)

k1: Primitive = analytic(
    "k1",
    "Modified Bessel function of the second kind of order 1.",
    lambda x: x.bessel_k(1),
    symbolic=lambda sp, x: sp.besselk(1, x),
    partials=lambda x, *, out: (-(k0(x) + kv(2, x)) / 2,),
    aliases=("modified_bessel_k1",),
    domain=[POSITIVE],
    sample=[_SIZE],
    examples=[("k1(1)", 0.6019072301972346)],
    formula="K₁(x)",
    names="scipy.special. torch.special.modified_bessel_k1",
)

kv: Primitive = parametric(
    "kv",
    "Modified Bessel function of the second kind of a real order v.",
    lambda v, x: x.bessel_k(v),
    symbolic=lambda sp, v, x: sp.besselk(v, x),
    partials=lambda v, x, *, out: (kv.derivative(v, x, orders=(1, 0)), -(kv(v - 1, x) + kv(v + 1, x)) / 2),
    texts={(0, 1): "-(kv(x - 1, y) + kv(x + 1, y))/2"},
    aliases=("kn",),
    domain=[REAL, POSITIVE],
    sample=[_ORDER, _SIZE],
    examples=[("kv(2, 1)", 1.6248388986351774), ("kv(0.5, 2)", 0.11993777196806145)],
    formula="K_v(x)",
    names="scipy.special.",
    traits="real_only",
)
