"""Sine, cosine, tangent and their inverses, in radians."""

from __future__ import annotations

from gradcli.graph.domain import REAL, Closed
from gradcli.graph.primitive import Kink, Primitive, composite, elementwise
from gradcli.primitives.comparison import where
from gradcli.primitives.powers import direction_cosine, div_no_nan, hypot, sqrt

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

sin: Primitive = elementwise(
    "sin",
    "Sine of an angle in radians.",
    impl=lambda xp, x: xp.sin(x),
    symbolic=lambda sp, x: sp.sin(x),
    ball=lambda fl, x: x.sin(),
    partials=lambda x, *, out: (cos(x),),
    domain=[REAL],
    sample=[Closed(-2, 2)],
    examples=[("sin(0)", 0), ("sin(1)", 0.8414709848078965)],
    node="SinBackward0",
    formula="sin(x)",
    names="c. latex. numpy. torch.",
)

cos: Primitive = elementwise(
    "cos",
    "Cosine of an angle in radians.",
    impl=lambda xp, x: xp.cos(x),
    symbolic=lambda sp, x: sp.cos(x),
    ball=lambda fl, x: x.cos(),
    partials=lambda x, *, out: (-sin(x),),
    domain=[REAL],
    sample=[Closed(-2, 2)],
    examples=[("cos(0)", 1), ("cos(1)", 0.5403023058681398)],
    node="CosBackward0",
    formula="cos(x)",
    names="c. latex. numpy. torch.",
)

tan = elementwise(
    "tan",
    "Tangent of an angle in radians.",
    impl=lambda xp, x: xp.tan(x),
    symbolic=lambda sp, x: sp.tan(x),
    ball=lambda fl, x: x.tan(),
    partials=lambda x, *, out: (1 + out**2,),
    domain=[REAL],
    sample=[Closed(-1.2, 1.2)],
    examples=[("tan(0)", 0), ("tan(1)", 1.5574077246549023)],
    node="TanBackward0",
    formula="tan(x)",
    names="c. latex. numpy. torch.",
    elementary="sin(x)/cos(x)",
)

asin = elementwise(
    "asin",
    "The angle in [-pi/2, pi/2] whose sine is x.",
    impl=lambda xp, x: xp.arcsin(x),
    symbolic=lambda sp, x: sp.asin(x),
    ball=lambda fl, x: x.asin(),
    partials=lambda x, *, out: (1 / sqrt((1 - x) * (1 + x)),),
    aliases=("arcsin",),
    domain=[Closed(-1, 1)],
    sample=[Closed(-0.8, 0.8)],
    examples=[("asin(0.5)", 0.5235987755982989), ("asin(1)", 1.5707963267948966)],
    node="AsinBackward0",
    formula="asin(x)",
    names="c. numpy.arcsin torch.",
)

acos = elementwise(
    "acos",
    "The angle in [0, pi] whose cosine is x.",
    impl=lambda xp, x: xp.arccos(x),
    symbolic=lambda sp, x: sp.acos(x),
    ball=lambda fl, x: x.acos(),
    partials=lambda x, *, out: (-(1 / sqrt((1 - x) * (1 + x))),),
    aliases=("arccos",),
    domain=[Closed(-1, 1)],
    sample=[Closed(-0.8, 0.8)],
    examples=[("acos(0.5)", 1.0471975511965979), ("acos(-1)", 3.141592653589793)],
    node="AcosBackward0",
    formula="acos(x)",
    names="c. numpy.arccos torch.",
)
PI = acos(-1)  # to the digits of any arithmetic

radians = composite(
    "radians",
    "An angle converted from degrees to radians.",
    definition=lambda x: x * (PI / 180),
    pointwise=True,
    arity=1,
    aliases=("deg2rad",),
    domain=[REAL],
    sample=[Closed(-180, 180)],
    examples=[("radians(180)", 3.141592653589793)],
    formula="x*π/180",
    names="numpy. torch.deg2rad",
)

degrees = composite(
    "degrees",
    "An angle converted from radians to degrees.",
    definition=lambda x: x * (180 / PI),
    pointwise=True,
    arity=1,
    aliases=("rad2deg",),
    domain=[REAL],
    sample=[Closed(-2, 2)],
    examples=[("degrees(1)", 57.29577951308232)],
    formula="x*180/π",
    names="numpy. torch.rad2deg",
)

atan = elementwise(
    "atan",
    "The angle in (-pi/2, pi/2) whose tangent is x.",
    impl=lambda xp, x: xp.arctan(x),
    symbolic=lambda sp, x: sp.atan(x),
    ball=lambda fl, x: x.atan(),
    partials=lambda x, *, out: (1 / (1 + x**2),),
    aliases=("arctan",),
    domain=[REAL],
    sample=[Closed(-2, 2)],
    examples=[("atan(1)", 0.7853981633974483), ("atan(-2)", -1.1071487177940904)],
    node="AtanBackward0",
    formula="atan(x)",
    names="c. numpy.arctan torch.",
)


def _atan2_partials(y: Any, x: Any, *, out: Any) -> tuple[Any, Any]:
    length = hypot(x, y)
    return div_no_nan(direction_cosine(x, y), length), -div_no_nan(direction_cosine(y, x), length)


atan2 = elementwise(
    "atan2",
    "The angle of the point (x, y), given y first.",
    impl=lambda xp, y, x: xp.arctan2(y, x),
    symbolic=lambda sp, y, x: sp.atan2(y, x) if sp.sign_at_point(x * x + y * y) else sp.Integer(0),
    ball=lambda fl, y, x: fl.angle(y, x),
    partials=_atan2_partials,
    aliases=("arctan2",),
    domain=[REAL, REAL],
    kinks=[
        Kink(lambda y, x: x * x + y * y, "x = 0 and y = 0", "0, 0", discontinuity=True),
        Kink(lambda y, x: where(x < 0, y, 1), "y = 0 and x < 0", "the limit from y > 0", discontinuity=True),
    ],
    sample=[Closed(-2, 2), Closed(0.2, 2)],
    examples=[("atan2(1, 1)", 0.7853981633974483), ("atan2(1, -1)", 2.356194490192345)],
    node="Atan2Backward0",
    formula="angle of (x, y)",
    names="c. numpy.arctan2 torch.",
    traits="real_only",
)
