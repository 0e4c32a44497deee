"""Exponentials and logarithms in every base, with the two that stay exact near 0."""

from __future__ import annotations

from gradcli.graph.domain import NONNEGATIVE, POSITIVE, REAL, Closed, ClosedOpen, Open, inf
from gradcli.graph.primitive import Kink, Primitive, composite, elementwise
from gradcli.primitives.comparison import and_, equal, where

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

exp = elementwise(
    "exp",
    "The exponential function.",
    impl=lambda xp, x: xp.exp(x),
    symbolic=lambda sp, x: sp.exp(x),
    ball=lambda fl, x: x.exp(),
    partials=lambda x, *, out: (out,),
    domain=[REAL],
    sample=[Closed(-2, 2)],
    examples=[("exp(0)", 1), ("exp(1)", 2.718281828459045)],
    node="ExpBackward0",
    formula="exp(x)",
    names="c. latex. numpy. torch.",
)

exp2 = elementwise(
    "exp2",
    "The power of 2 with exponent x.",
    impl=lambda xp, x: xp.exp2(x),
    symbolic=lambda sp, x: sp.Pow(2, x),
    ball=lambda fl, x: (x * fl.integer(2).log()).exp(),
    partials=lambda x, *, out: (out * log(2),),
    domain=[REAL],
    sample=[Closed(-2, 2)],
    examples=[("exp2(3)", 8), ("exp2(0.5)", 1.4142135623730951)],
    node="Exp2Backward0",
    formula="2**x",
    names="c. numpy. torch. torch.special.",
    elementary="exp(x*log(2))",
)

expm1 = elementwise(
    "expm1",
    "exp(x) - 1, with full precision near 0.",
    impl=lambda xp, x: xp.expm1(x),
    symbolic=lambda sp, x: sp.Add(sp.exp(x), -1),
    ball=lambda fl, x: x.expm1(),
    partials=lambda x, *, out: (exp(x),),
    domain=[REAL],
    sample=[Closed(-2, 2)],
    examples=[("expm1(1)", 1.718281828459045), ("expm1(1e-20)", 1e-20)],
    node="Expm1Backward0",
    formula="exp(x) - 1",
    names="c. numpy. torch. torch.special.",
    elementary="exp(x) - 1",
)

log: Primitive = elementwise(
    "log",
    "Natural logarithm.",
    impl=lambda xp, x: xp.log(x),
    symbolic=lambda sp, x: sp.log(x),
    ball=lambda fl, x: x.log(),
    partials=lambda x, *, out: (1 / x,),
    aliases=("ln",),
    domain=[POSITIVE],
    sample=[Closed(0.2, 3)],
    examples=[("log(1)", 0), ("log(10)", 2.302585092994046)],
    node="LogBackward0",
    formula="log(x)",
    names="c. latex. numpy. torch.",
)

log2 = elementwise(
    "log2",
    "Logarithm to base 2.",
    impl=lambda xp, x: xp.log2(x),
    symbolic=lambda sp, x: sp.log(x) / sp.log(2),
    ball=lambda fl, x: x.log() / fl.integer(2).log(),
    partials=lambda x, *, out: (1 / (x * log(2)),),
    domain=[POSITIVE],
    sample=[Closed(0.2, 3)],
    examples=[("log2(8)", 3), ("log2(10)", 3.321928094887362)],
    node="Log2Backward0",
    formula="log(x)/log(2)",
    names="c. numpy. torch.",
    elementary="log(x)/log(2)",
)

log10 = elementwise(
    "log10",
    "Logarithm to base 10.",
    impl=lambda xp, x: xp.log10(x),
    symbolic=lambda sp, x: sp.log(x) / sp.log(10),
    ball=lambda fl, x: x.log() / fl.integer(10).log(),
    partials=lambda x, *, out: (1 / (x * log(10)),),
    domain=[POSITIVE],
    sample=[Closed(0.2, 3)],
    examples=[("log10(1000)", 3), ("log10(2)", 0.3010299956639812)],
    node="Log10Backward0",
    formula="log(x)/log(10)",
    names="c. numpy. torch.",
    elementary="log(x)/log(10)",
)

log1p = elementwise(
    "log1p",
    "log(1 + x), with full precision near 0.",
    impl=lambda xp, x: xp.log1p(x),
    symbolic=lambda sp, x: sp.log(sp.Add(1, x)),
    ball=lambda fl, x: x.log1p(),
    partials=lambda x, *, out: (1 / (1 + x),),
    domain=[Open(-1, inf)],
    sample=[Closed(-0.7, 2)],
    examples=[("log1p(1)", 0.6931471805599453), ("log1p(1e-20)", 1e-20)],
    node="Log1PBackward0",
    formula="log(1 + x)",
    names="c. numpy. torch. torch.special.",
    elementary="log(1 + x)",
)


def _xlogy_value(xp: Any, x: Any, y: Any) -> Any:
    absent = (x == 0) & (y == y)  # NaN in y stays
    return xp.where(absent, 0.0, x * xp.log(xp.where(absent, 1.0, y)))


def _xlogy_symbolic(sp: Any, x: Any, y: Any) -> Any:
    if sp.sign_at_point(y) <= 0 and sp.sign_at_point(x) == 0:
        return sp.Integer(0)
    return x * sp.log(y)


def _by_log(fl: Any, x: Any, y: Any, log: Any) -> Any:
    """x*log in balls, a logarithm of y >= 0, and 0 where both are 0."""
    side = fl.sign(y)
    if side < 0:
        return fl.undefined("a logarithm of a negative number")
    return fl.integer(0) if side == 0 and fl.sign(x) == 0 else x * log()


xlogy = elementwise(
    "xlogy",
    "x*log(y), and 0 where x is 0, as in an entropy.",
    impl=_xlogy_value,
    symbolic=_xlogy_symbolic,
    ball=lambda fl, x, y: _by_log(fl, x, y, y.log),
    partials=lambda x, y, *, out: (
        where(and_(equal(x, 0), y <= 0), 0, log(y)),
        where(and_(equal(x, 0), equal(y, 0)), 0, x / y),
    ),
    domain=[REAL, NONNEGATIVE],
    kinks=[Kink(lambda x, y: x * x + y * y, "x = 0 and y = 0", "0 in x, 0 in y")],
    sample=[Closed(-2, 2), Closed(0.2, 3)],
    examples=[("xlogy(0, 0)", 0), ("xlogy(2, 10)", 4.605170185988092)],
    node="XlogyBackward0",
    formula="x*log(y)",
    names="scipy.special. torch. torch.special. jax.scipy.special.",
    steady="where(x == 0, 0, x*log(where(x == 0, 1, y)))",
)

xlog1py = elementwise(
    "xlog1py",
    "x*log1p(y), and 0 where x is 0.",
    impl=lambda xp, x, y: xp.where((x == 0) & (y >= -1), 0.0, x * xp.log1p(xp.where(x == 0, 0.0, y))),
    symbolic=lambda sp, x, y: _xlogy_symbolic(sp, x, sp.Add(1, y)),
    ball=lambda fl, x, y: _by_log(fl, x, 1 + y, y.log1p),
    partials=lambda x, y, *, out: (
        where(and_(equal(x, 0), y <= -1), 0, log1p(y)),
        where(and_(equal(x, 0), equal(y, -1)), 0, x / (1 + y)),
    ),
    domain=[REAL, ClosedOpen(-1, inf)],
    kinks=[Kink(lambda x, y: x * x + (y + 1) * (y + 1), "x = 0 and y = -1", "0 in x, 0 in y")],
    sample=[Closed(-2, 2), Closed(-0.7, 2)],
    examples=[("xlog1py(0, -1)", 0), ("xlog1py(2, 9)", 4.605170185988092)],
    node="SpecialXlog1PyBackward0",
    formula="x*log(1 + y)",
    names="scipy.special. torch.special. jax.scipy.special.",
    traits="real_only",
)

entr = composite(
    "entr",
    "-x*log(x), and 0 at 0: a term of an entropy.",
    definition=lambda x: -xlogy(x, x),
    pointwise=True,
    arity=1,
    domain=[NONNEGATIVE],
    sample=[Closed(0.2, 3)],
    examples=[("entr(0)", 0), ("entr(2)", -1.3862943611198906)],
    node="SpecialEntrBackward0",
    formula="-x*log(x)",
    names="scipy.special. torch.special. jax.scipy.special.",
)

rel_entr = composite(
    "rel_entr",
    "x*log(x/y), and 0 where x is 0: a term of a relative entropy.",
    definition=lambda x, y: xlogy(x, x / y),
    pointwise=True,
    arity=2,
    domain=[NONNEGATIVE, POSITIVE],
    sample=[Closed(0.2, 3), Closed(0.2, 3)],
    examples=[("rel_entr(0, 2)", 0), ("rel_entr(2, 1)", 1.3862943611198906)],
    formula="x*log(x/y)",
    names="scipy.special. jax.scipy.special.",
)
