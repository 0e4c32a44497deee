"""Functions that a whole number decides: rounding in four ways and the remainder; flat or straight between jumps."""

from __future__ import annotations

from fractions import Fraction

from gradcli.graph.domain import REAL, Closed
from gradcli.graph.primitive import Kink, Primitive, elementwise
from gradcli.primitives.comparison import equal, where

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

HALF = Fraction(1, 2)


def floor_at_point(sp: Any, x: Any) -> int:
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
    """The whole number below x, which decides a branch; undecided while the ball of x reaches over one."""
    whole = x.floor()
    fl.sign(whole - whole.mid())  # decided only where `whole` is one number
    fl.signs += [whole.unique_fmpz()] if fl.is_still(whole) and not fl.is_still(x) else []
    return whole


def _round_symbolic(sp: Any, x: Any) -> Any:
    whole = floor_at_point(sp, x)
    side = sp.sign_at_point(x - whole - sp.Rational(1, 2))
    up = side > 0 or (side == 0 and whole % 2 == 1)
    return sp.Integer(whole + up)


def _round_ball(fl: Any, x: Any) -> Any:
    whole = _floor_ball(fl, x + fl.number(HALF))
    tie = fl.sign(x + fl.number(HALF) - whole) == 0
    odd = not (whole / 2).is_integer()
    return whole - 1 if tie and odd else whole


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
        traits="keeps_whole piecewise_constant whole_steps real_only",
        names="c.rint numpy. torch. torch.special." if name == "round" else "c. numpy. torch.",
        **fields,
    )


floor: Primitive = _whole(
    "floor",
    "The largest whole number that is not above x.",
    lambda xp, x: xp.floor(x),
    lambda sp, x: sp.Integer(floor_at_point(sp, x)),
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
    lambda sp, x: sp.Integer(-floor_at_point(sp, -x)),
    lambda fl, x: -_floor_ball(fl, -x),
    Kink(_beside, "x a whole number", "0", discontinuity=True),
    "⌈x⌉",
    sample=[Closed(1.1, 1.9)],
    examples=[("ceil(2.1)", 3), ("ceil(-2.7)", -2)],
)

trunc = _whole(
    "trunc",
    "x without its fractional part: x rounded towards 0.",
    lambda xp, x: xp.trunc(x),
    lambda sp, x: sp.Integer(floor_at_point(sp, x) if sp.sign_at_point(x) >= 0 else -floor_at_point(sp, -x)),
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

round_: Primitive = _whole(
    "round",
    "The nearest whole number; halves are rounded to the even one.",
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
    symbolic=lambda sp, x, y: x - y * floor_at_point(sp, x / y),
    ball=_mod_ball,
    partials=lambda x, y, *, out: (1, -round_((x - out) / y)),
    aliases=("remainder",),
    domain=[REAL, REAL],
    kinks=[Kink(lambda x, y: x - y * round_(x / y), "x a multiple of y", "1 in x, -x/y in y", discontinuity=True)],
    sample=[Closed(4.2, 5.6), Closed(1.9, 2)],
    examples=[("mod(7.5, 2)", 1.5), ("mod(-7.5, 2)", 0.5)],
    node="RemainderBackward1",
    formula="x - y*⌊x/y⌋",
    names="numpy. torch.remainder",
    traits="real_only whole_steps keeps_whole",
    steady="x - y*floor(x/y)",
)
