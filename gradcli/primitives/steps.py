"""Piecewise linear functions and their kinks: absolute value, steps, extremes.

Away from their kinks they are straight lines, so every partial here is a constant or a step. At a kink the
partial is the one that PyTorch returns.
"""

from __future__ import annotations

from fractions import Fraction

from gradcli.graph.domain import REAL, Closed, inf
from gradcli.graph.primitive import Kink, Operand, Primitive, elementwise
from gradcli.primitives.arithmetic import parts
from gradcli.primitives.broadcasting import together
from gradcli.primitives.comparison import and_, equal, or_, where
from gradcli.primitives.powers import div_no_nan, hypot

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

HALF = Fraction(1, 2)

# --- sign and steps -----------------------------------------------------------------------------------


def _abs_ball(fl: Any, x: Any) -> Any:
    side = fl.sign(x)
    return x if side > 0 else -x if side < 0 else fl.integer(0)


abs_ = elementwise(
    "abs",
    "Absolute value.",
    impl=lambda xp, x: xp.abs(x),
    symbolic=lambda sp, x: sp.sign_at_point(x) * x,
    ball=_abs_ball,
    partials=lambda x, *, out: (sign(x),),
    aliases=("absolute", "fabs"),
    domain=[REAL],
    kinks=[Kink(lambda x: x, "x = 0", "0")],
    sample=[Closed(-2, -0.2)],
    examples=[("abs(-2.5)", 2.5)],
    node="AbsBackward0",
    formula="|x|",
    plane=lambda z: hypot(*parts(z)),
    names="c.fabs numpy. torch. sympy.Abs",
    traits="keeps_whole",
    elementary="x*sign(x)",
)

sign: Primitive = elementwise(
    "sign",
    "The sign of a number: -1, 0 or 1.",
    impl=lambda xp, x: xp.sign(x),
    symbolic=lambda sp, x: sp.Integer(sp.sign_at_point(x)),
    ball=lambda fl, x: fl.integer(fl.sign(x)),
    partials=lambda x, *, out: (0,),
    aliases=("sgn",),
    domain=[REAL],
    kinks=[Kink(lambda x: x, "x = 0", "0", discontinuity=True)],
    sample=[Closed(-2, -0.2)],
    examples=[("sign(-3)", -1), ("sign(0)", 0)],
    node="SignBackward0",
    plane=lambda z: div_no_nan(z, hypot(*parts(z))),
    formula="sign(x)",
    names="numpy. torch.",
    traits="piecewise_constant keeps_whole",
    elementary="(x > 0) - (x < 0)",
)

step = elementwise(
    "step",
    "1 where x is above 0, else 0; 1 for NaN.",
    impl=lambda xp, x: 1.0 - xp.cast(x <= 0, "float"),
    symbolic=lambda sp, x: sp.Integer(1 if sp.sign_at_point(x) > 0 else 0),
    ball=lambda fl, x: fl.integer(1 if fl.sign(x) > 0 else 0),
    partials=lambda x, *, out: (0,),
    internal=True,
    domain=[REAL],
    kinks=[Kink(lambda x: x, "x = 0", "0", discontinuity=True)],
    sample=[Closed(0.2, 2)],
    formula="where(x > 0, 1, 0)",
    closed=lambda x: where(x > 0, 1, 0),
    traits="piecewise_constant",
)

heaviside = elementwise(
    "heaviside",
    "NumPy's step: 0 below 0, 1 above, and y at 0.",
    impl=lambda xp, x, y: xp.heaviside(x, y),
    symbolic=lambda sp, x, y: (sp.Integer(0), y, sp.Integer(1))[sp.sign_at_point(x) + 1],
    ball=lambda fl, x, y: (fl.integer(0), y, fl.integer(1))[fl.sign(x) + 1],
    partials=lambda x, y, *, out: (0, where(equal(x, 0), 1, 0)),
    domain=[REAL, REAL],
    kinks=[Kink(lambda x, y: x, "x = 0", "0 in x, 1 in y", discontinuity=True)],
    sample=[Closed(0.2, 2), Closed(-1, 1)],
    examples=[("heaviside(-1, 0.5)", 0), ("heaviside(0, 0.5)", 0.5), ("heaviside(2, 0.5)", 1)],
    formula="0 if x < 0, y if x = 0, 1 if x > 0",
    names="numpy. torch.",
    elementary="(x > 0) + y*(x == 0)",
    traits="piecewise_constant",
)

# --- extremes -------------------------------------------------------------------------------------------

tie_step: Primitive = elementwise(
    "tie_step",
    "1 where x is above y, 1/2 where they are equal, else 0; 1 for NaN: the share of x in maximum(x, y).",
    impl=lambda xp, x, y: 1.0 - 0.5 * (xp.cast(x < y, "float") + xp.cast(x <= y, "float")),
    symbolic=lambda sp, x, y: sp.Rational(sp.sign_at_point(x - y) + 1, 2),
    ball=lambda fl, x, y: fl.number(HALF if x is y else Fraction(fl.sign(x - y) + 1, 2)),
    partials=lambda x, y, *, out: (0, 0),
    internal=True,
    domain=[REAL, REAL],
    kinks=[Kink(lambda x, y: x - y, "x = y", "0", discontinuity=True)],
    sample=[Closed(0.2, 2), Closed(-2, 0)],
    formula="(sign(x - y) + 1)/2",
    closed=lambda x, y: 0 * x + HALF if x is y else where(x > y, 1, 0),
)

maximum = elementwise(
    "maximum",
    "The larger of two numbers.",
    impl=lambda xp, x, y: xp.maximum(x, y),
    symbolic=lambda sp, x, y: x if sp.sign_at_point(x - y) >= 0 else y,
    ball=lambda fl, x, y: x if x is y or fl.sign(x - y) >= 0 else y,
    partials=lambda x, y, *, out: (tie_step(x, y), tie_step(y, x)),
    domain=[REAL, REAL],
    kinks=[Kink(lambda x, y: x - y, "x = y", "1/2 each")],
    sample=[Closed(0.2, 2), Closed(-2, 0)],
    examples=[("maximum(2, 3)", 3), ("maximum([1, 5], 3)", [3, 5])],
    node="MaximumBackward0",
    formula="max(x, y)",
    names="c.fmax numpy. torch. jax.numpy. jax.lax.max sympy.Max",
    traits="chooses keeps_whole",
)

minimum = elementwise(
    "minimum",
    "The smaller of two numbers.",
    impl=lambda xp, x, y: xp.minimum(x, y),
    symbolic=lambda sp, x, y: x if sp.sign_at_point(x - y) <= 0 else y,
    ball=lambda fl, x, y: x if x is y or fl.sign(x - y) <= 0 else y,
    partials=lambda x, y, *, out: (tie_step(y, x), tie_step(x, y)),
    domain=[REAL, REAL],
    kinks=[Kink(lambda x, y: x - y, "x = y", "1/2 each")],
    sample=[Closed(0.2, 2), Closed(-2, 0)],
    examples=[("minimum(2, 3)", 2), ("minimum([1, 5], 3)", [1, 3])],
    node="MinimumBackward0",
    formula="min(x, y)",
    names="c.fmin numpy. torch. jax.numpy. jax.lax.min sympy.Min",
    traits="chooses keeps_whole",
)


def _clamp_symbolic(sp: Any, x: Any, low: Any, high: Any) -> Any:
    raised = low if sp.sign_at_point(x - low) < 0 else x
    return high if sp.sign_at_point(raised - high) > 0 else raised


def _clamp_ball(fl: Any, x: Any, low: Any, high: Any) -> Any:
    raised = low if fl.sign(x - low) < 0 else x
    return high if fl.sign(raised - high) > 0 else raised


def clamp_call(x: Any, low: Any = -inf, high: Any = inf) -> Any:
    """NumPy's `clip`: a bound that is left out does not bind."""
    operands = iter(together(*(z for z in (x, low, high) if isinstance(z, Operand)), verb="clamp"))
    return clamp(*(next(operands) if isinstance(z, Operand) else z for z in (x, low, high)))


clamp = elementwise(
    "clamp",
    "x limited to an interval: minimum(maximum(x, low), high).",
    impl=lambda xp, x, low, high: xp.minimum(xp.maximum(x, low), high),
    symbolic=_clamp_symbolic,
    ball=_clamp_ball,
    partials=lambda x, low, high, *, out: (
        where(and_(x >= low, x <= high), 1, 0),
        where(and_(x < low, low < high), 1, 0),
        where(or_(x > high, low > high), 1, 0),
    ),
    call=clamp_call,
    aliases=("clip",),
    domain=[REAL, REAL, REAL],
    kinks=[
        Kink(lambda x, low, high: x - low, "x = low", "1 in x, 0 in the bounds"),
        Kink(lambda x, low, high: x - high, "x = high", "1 in x, 0 in the bounds"),
    ],
    sample=[Closed(-0.8, 0.8), Closed(-2, -1), Closed(1, 2)],
    examples=[("clamp(5, -1, 1)", 1), ("clamp([-3, 0.5], -1, 1)", [-1, 0.5])],
    node="ClampBackward1",
    formula="min(max(x, low), high)",
    names="numpy.clip torch.",
    traits="chooses keeps_whole",
    elementary="minimum(maximum(x, low), high)",
)
