"""Hyperbolic sine, cosine, tangent and their inverses."""

from __future__ import annotations

from gradcli.graph.domain import REAL, Closed, ClosedOpen, Open, inf
from gradcli.graph.primitive import Primitive, elementwise
from gradcli.primitives.powers import sqrt

sinh: Primitive = elementwise(
    "sinh",
    "Hyperbolic sine.",
    impl=lambda xp, x: xp.sinh(x),
    symbolic=lambda sp, x: sp.sinh(x),
    ball=lambda fl, x: x.sinh(),
    partials=lambda x, *, out: (cosh(x),),
    domain=[REAL],
    sample=[Closed(-2, 2)],
    examples=[("sinh(1)", 1.1752011936438014)],
    node="SinhBackward0",
    formula="sinh(x)",
    names="c. latex. numpy. torch.",
    elementary="(exp(x) - exp(-x))/2",
)

cosh: Primitive = elementwise(
    "cosh",
    "Hyperbolic cosine.",
    impl=lambda xp, x: xp.cosh(x),
    symbolic=lambda sp, x: sp.cosh(x),
    ball=lambda fl, x: x.cosh(),
    partials=lambda x, *, out: (sinh(x),),
    domain=[REAL],
    sample=[Closed(-2, 2)],
    examples=[("cosh(1)", 1.5430806348152437)],
    node="CoshBackward0",
    formula="cosh(x)",
    names="c. latex. numpy. torch.",
    elementary="(exp(x) + exp(-x))/2",
)

tanh = elementwise(
    "tanh",
    "Hyperbolic tangent.",
    impl=lambda xp, x: xp.tanh(x),
    symbolic=lambda sp, x: sp.tanh(x),
    ball=lambda fl, x: x.tanh(),
    partials=lambda x, *, out: (1 - out**2,),
    domain=[REAL],
    sample=[Closed(-2, 2)],
    examples=[("tanh(1)", 0.7615941559557649), ("tanh(800)", 1)],
    node="TanhBackward0",
    formula="tanh(x)",
    names="c. latex. numpy. torch.",
    elementary="1 - 2/(1 + exp(2*x))",
    traits="saturates",
)

asinh = elementwise(
    "asinh",
    "Inverse of sinh.",
    impl=lambda xp, x: xp.arcsinh(x),
    symbolic=lambda sp, x: sp.asinh(x),
    ball=lambda fl, x: x.asinh(),
    partials=lambda x, *, out: (1 / sqrt(x**2 + 1),),
    aliases=("arcsinh",),
    domain=[REAL],
    sample=[Closed(-2, 2)],
    examples=[("asinh(1)", 0.881373587019543)],
    node="AsinhBackward0",
    formula="asinh(x)",
    names="c. numpy.arcsinh torch.",
)

acosh = elementwise(
    "acosh",
    "The inverse of cosh that is not negative.",
    impl=lambda xp, x: xp.arccosh(x),
    symbolic=lambda sp, x: sp.acosh(x),
    ball=lambda fl, x: x.acosh(),
    partials=lambda x, *, out: (1 / (sqrt(x - 1) * sqrt(x + 1)),),
    aliases=("arccosh",),
    domain=[ClosedOpen(1, inf)],
    sample=[Closed(1.2, 3)],
    examples=[("acosh(2)", 1.3169578969248167), ("acosh(1)", 0)],
    node="AcoshBackward0",
    formula="acosh(x)",
    names="c. numpy.arccosh torch.",
)

atanh = elementwise(
    "atanh",
    "Inverse of tanh.",
    impl=lambda xp, x: xp.arctanh(x),
    symbolic=lambda sp, x: sp.atanh(x),
    ball=lambda fl, x: x.atanh(),
    partials=lambda x, *, out: (1 / ((1 - x) * (1 + x)),),
    aliases=("arctanh",),
    domain=[Open(-1, 1)],
    sample=[Closed(-0.8, 0.8)],
    examples=[("atanh(0.5)", 0.5493061443340548)],
    node="AtanhBackward0",
    formula="atanh(x)",
    names="c. numpy.arctanh torch.",
)
