"""Bessel functions of whole orders: closed under differentiation by J_n' = (J_(n-1) - J_(n+1))/2, without poles."""

from __future__ import annotations

from gradcli.base.diagnostics import error
from gradcli.graph.domain import REAL, Closed
from gradcli.graph.exact import number_text
from gradcli.graph.primitive import Primitive, elementwise

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MOST_ORDER = 1000


def _order(n: Any, name: str) -> int:
    if not isinstance(n, int) or abs(n) > MOST_ORDER:
        raise error(
            "GC306",
            f"the order of {name} is a whole number up to {MOST_ORDER:,} in size, not {number_text(n)}",
            help="it is known before the script runs: a literal, or a const name",
        )
    return n


def jn_call(n: Any, x: Any) -> Any:
    """SciPy's `jn(n, x)`; raises GradcliError GC306 for an order that is not a whole number."""
    n = _order(n, "jn")
    if n < 0:
        return -jn_call(-n, x) if n % 2 else jn_call(-n, x)
    return j0(x) if n == 0 else j1(x) if n == 1 else jn(x, n=n)


def iv_call(n: Any, x: Any) -> Any:
    """SciPy's `iv(n, x)`; raises GradcliError GC306 for an order that is not a whole number."""
    n = abs(_order(n, "iv"))
    return i0(x) if n == 0 else i1(x) if n == 1 else iv(x, n=n)


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
    partials=lambda x, *, out: ((j0(x) - jn(x, n=2)) / 2,),
    aliases=("bessel_j1",),
    domain=[REAL],
    sample=[Closed(-2, 2)],
    examples=[("j1(0)", 0), ("j1(1)", 0.4400505857449335)],
    formula="J₁(x)",
    names="scipy.special. torch.special.bessel_j1",
    traits="real_only",
)

jn: Primitive = elementwise(
    "jn",
    "Bessel function of the first kind of a whole order n.",
    impl=lambda xp, x, *, n: xp.jv(float(n), x),
    symbolic=lambda sp, x, *, n: sp.besselj(n, x),
    ball=lambda fl, x, *, n: x.bessel_j(n),
    partials=lambda x, *, out, n: ((jn_call(n - 1, x) - jn(x, n=n + 1)) / 2,),
    call=jn_call,
    static=("n",),
    aliases=("jv",),
    domain=[REAL],
    sample=[Closed(-2, 2)],
    examples=[("jn(2, 1)", 0.11490348493190047), ("jn(3, 0)", 0)],
    formula="Jₙ(x)",
    names="scipy.special.jv sympy.besselj",
    traits="real_only",
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
    partials=lambda x, *, out: ((i0(x) + iv(x, n=2)) / 2,),
    aliases=("modified_bessel_i1",),
    domain=[REAL],
    sample=[Closed(-2, 2)],
    examples=[("i1(0)", 0), ("i1(1)", 0.5651591039924850)],
    node="SpecialI1Backward0",
    formula="I₁(x)",
    names="scipy.special. torch.special. torch.special.modified_bessel_i1 jax.scipy.special.",
    traits="real_only",
)

iv: Primitive = elementwise(
    "iv",
    "Modified Bessel function of the first kind of a whole order n.",
    impl=lambda xp, x, *, n: xp.iv(float(n), x),
    symbolic=lambda sp, x, *, n: sp.besseli(n, x),
    ball=lambda fl, x, *, n: x.bessel_i(n),
    partials=lambda x, *, out, n: ((iv_call(n - 1, x) + iv(x, n=n + 1)) / 2,),
    call=iv_call,
    static=("n",),
    domain=[REAL],
    sample=[Closed(-2, 2)],
    examples=[("iv(2, 1)", 0.13574766976703828), ("iv(3, 0)", 0)],
    formula="Iₙ(x)",
    names="scipy.special. sympy.besseli",
    traits="real_only",
)
