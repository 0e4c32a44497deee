"""Functions that a sign or a whole number decides: absolute value, steps, extremes, rounding; each says what it is at its kink.

Away from their kinks they are straight lines, so every partial here is a constant, a step or a whole number. At a kink the
partial is the one that PyTorch returns.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from gradcli.graph.domain import REAL, Closed, inf
from gradcli.graph.operand import Operand
from gradcli.graph.primitive import Kink, Primitive, elementwise
from gradcli.primitives.broadcasting import together
from gradcli.primitives.comparison import and_, equal, or_, where

HALF = Fraction(1, 2)

# --- sign and steps -----------------------------------------------------------------------------------


def _abs_symbolic(sp: Any, x: Any) -> Any:
    return sp.sign_at_point(x) * x


def _abs_ball(fl: Any, x: Any) -> Any:
    side = fl.sign(x)
    return x if side > 0 else -x if side < 0 else fl.integer(0)


abs_ = elementwise(
    "abs",
    "Absolute value.",
    impl=lambda xp, x: xp.abs(x),
    symbolic=_abs_symbolic,
    ball=_abs_ball,
    partials=lambda x, *, out: (sign(x),),
    aliases=("absolute", "fabs"),
    domain=[REAL],
    kinks=[Kink(lambda x: x, "x = 0", "0")],
    sample=[Closed(-2, -0.2)],
    examples=[("abs(-2.5)", 2.5)],
    node="AbsBackward0",
    formula="|x|",
)

sign = elementwise(
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
    formula="sign(x)",
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
    formula="1 if x > 0 else 0",
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
)

# --- extremes -------------------------------------------------------------------------------------------

tie_step = elementwise(
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
    formula="1 if x > y, 1/2 if x = y, 0 if x < y",
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
    "x kept between two bounds: minimum(maximum(x, low), high).",
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
)

# --- whole numbers ----------------------------------------------------------------------------------------


def _floor_at_point(sp: Any, x: Any) -> int:
    """The whole number below x at the point of the check, found by halving with the signs of x - n."""
    low, high = -1, 1
    while sp.sign_at_point(x - low) < 0:
        low *= 2
    while sp.sign_at_point(x - high) >= 0:
        high *= 2
    while high - low > 1:
        middle = (low + high) // 2
        if sp.sign_at_point(x - middle) >= 0:
            low = middle
        else:
            high = middle
    return low


def _floor_ball(fl: Any, x: Any) -> Any:
    """The whole number below x; undecided while the ball of x reaches over one."""
    whole = x.floor()
    fl.sign(whole - whole.mid())  # decided only where `whole` is one number
    return whole


def _round_symbolic(sp: Any, x: Any) -> Any:
    whole = _floor_at_point(sp, x)
    side = sp.sign_at_point(x - whole - sp.Rational(1, 2))
    up = side > 0 or (side == 0 and whole % 2 == 1)
    return sp.Integer(whole + up)


def _round_ball(fl: Any, x: Any) -> Any:
    whole = _floor_ball(fl, x + fl.number(HALF))
    tie = fl.sign(x + fl.number(HALF) - whole) == 0
    odd = not (whole / 2).is_integer()
    return whole - 1 if tie and odd else whole


def _mod_symbolic(sp: Any, x: Any, y: Any) -> Any:
    return x - y * _floor_at_point(sp, x / y)


def _mod_ball(fl: Any, x: Any, y: Any) -> Any:
    if fl.sign(y) == 0:
        fl.undefined("the remainder of a division by 0")
    return x - y * _floor_ball(fl, x / y)


def _beside(x: Any) -> Any:
    """How far x is from the nearest whole number, with its sign."""
    return x - round_(x)


def _whole(
    name: str, summary: str, impl: Any, symbolic: Any, ball: Any, kink: Kink, formula: str, **fields: Any
) -> Primitive:
    """A rounding function: flat between jumps."""
    return elementwise(
        name,
        summary,
        impl=impl,
        symbolic=symbolic,
        ball=ball,
        partials=lambda x, *, out: (0,),
        domain=[REAL],
        kinks=[kink],
        node=f"{name.capitalize()}Backward0",
        formula=formula,
        **fields,
    )


floor = _whole(
    "floor",
    "The largest whole number that is not above x.",
    lambda xp, x: xp.floor(x),
    lambda sp, x: sp.Integer(_floor_at_point(sp, x)),
    _floor_ball,
    Kink(_beside, "x a whole number", "0", discontinuity=True),
    "⌊x⌋",
    sample=[Closed(1.1, 1.9)],
    examples=[("floor(2.7)", 2), ("floor(-2.1)", -3)],
)

ceil = _whole(
    "ceil",
    "The smallest whole number that is not below x.",
    lambda xp, x: xp.ceil(x),
    lambda sp, x: sp.Integer(-_floor_at_point(sp, -x)),
    lambda fl, x: -_floor_ball(fl, -x),
    Kink(_beside, "x a whole number", "0", discontinuity=True),
    "⌈x⌉",
    sample=[Closed(1.1, 1.9)],
    examples=[("ceil(2.1)", 3), ("ceil(-2.7)", -2)],
)

trunc = _whole(
    "trunc",
    "x without its fraction: the whole number beside it, towards 0.",
    lambda xp, x: xp.trunc(x),
    lambda sp, x: sp.Integer(
        _floor_at_point(sp, x) if sp.sign_at_point(x) >= 0 else -_floor_at_point(sp, -x)
    ),
    lambda fl, x: _floor_ball(fl, x) if fl.sign(x) >= 0 else -_floor_ball(fl, -x),
    Kink(
        lambda x: where(equal(round_(x), 0), 1, _beside(x)),
        "x a whole number but 0",
        "0",
        discontinuity=True,
    ),
    "trunc(x)",
    aliases=("fix",),
    sample=[Closed(-1.9, -1.1)],
    examples=[("trunc(2.7)", 2), ("trunc(-2.7)", -2)],
)

round_ = _whole(
    "round",
    "The nearest whole number; halfway, the even one.",
    lambda xp, x: xp.rint(x),
    _round_symbolic,
    _round_ball,
    Kink(lambda x: x - floor(x) - 0.5, "x halfway between whole numbers", "0", discontinuity=True),
    "round(x)",
    aliases=("rint", "around"),
    sample=[Closed(1.6, 2.4)],
    examples=[("round(2.4)", 2), ("round(2.5)", 2), ("round(-3.5)", -4)],
)

mod = elementwise(
    "mod",
    "Remainder of a division, with the sign of the divisor, as in Python.",
    impl=lambda xp, x, y: xp.mod(x, y),
    symbolic=_mod_symbolic,
    ball=_mod_ball,
    partials=lambda x, y, *, out: (1, -round_((x - out) / y)),
    aliases=("remainder",),
    domain=[REAL, REAL],
    kinks=[
        Kink(lambda x, y: x - y * round_(x / y), "x a multiple of y", "1 in x, -x/y in y", discontinuity=True)
    ],
    sample=[Closed(4.2, 5.6), Closed(1.9, 2)],
    examples=[("mod(7.5, 2)", 1.5), ("mod(-7.5, 2)", 0.5)],
    node="RemainderBackward1",
    formula="x - y*⌊x/y⌋",
)
