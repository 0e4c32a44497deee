"""The four operations, powers and their kin: the operations that operators stand for, and exact rules for constants."""

from __future__ import annotations

from gradcli.graph.domain import REAL, Closed
from gradcli.graph.exact import rational
from gradcli.graph.node import CONSTANT
from gradcli.graph.primitive import Primitive, elementwise, linear

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from gradcli.graph.node import Node

# --- local rules for derivative programs: 0 and 1, doubled and factored-out signs ---------------------


def _negated(x: Node) -> Node | None:
    """The node y where x = -y, or None."""
    return x.args[0] if x.primitive is neg else None


def _is(x: Node, number: int) -> bool:
    """Whether a node is this constant."""
    return x.primitive is CONSTANT and bool(x.params["value"] == number)


def _add_rewrite(x: Node, y: Node) -> Node | None:
    left, right = x.primitive, y.primitive
    if right is neg:
        return x - y.args[0]
    if left is neg:
        return y - x.args[0]
    if left is div and right is div and x.args[1] is y.args[1]:  # the two partials of one quotient
        return (x.args[0] + y.args[0]) / x.args[1]
    return None


def _sub_rewrite(x: Node, y: Node) -> Node | None:
    left, right = x.primitive, y.primitive
    if right is CONSTANT and y.params["value"] == 0:
        return x
    if left is CONSTANT and x.params["value"] == 0:
        return -y
    if right is neg:
        return x + y.args[0]
    if left is neg:
        return -(x.args[0] + y)
    if left is div and right is div and x.args[1] is y.args[1]:
        return (x.args[0] - y.args[0]) / x.args[1]
    return None


def _mul_rewrite(x: Node, y: Node) -> Node | None:
    kind = x.primitive
    if kind is neg:
        return -(x.args[0] * y)
    if kind is div and _is(x.args[0], 1):
        return y / x.args[1]
    if kind is CONSTANT and x.params["value"] == -1:
        return -y
    kind = y.primitive
    if kind is neg:
        return -(x * y.args[0])
    if kind is div and _is(y.args[0], 1):
        return x / y.args[1]
    return -x if kind is CONSTANT and y.params["value"] == -1 else None


def _div_rewrite(x: Node, y: Node) -> Node | None:
    if _is(y, 1) or _is(x, 0):
        return x
    if _is(y, -1):
        return -x
    if (minus := _negated(x)) is not None:
        return -(minus / y)
    if (minus := _negated(y)) is not None:
        return -(x / minus)
    return None


def _neg_rewrite(x: Node) -> Node | None:
    kind = x.primitive
    if kind is neg:
        return x.args[0]
    if kind is sub:
        return x.args[1] - x.args[0]
    return x if kind is CONSTANT and x.params["value"] == 0 else None


def _power_rewrite(x: Node, *, n: int) -> Node | None:
    if n == 0:
        return x.builder.constant(1, x.shape)
    return x if n == 1 else None


def _exact_product(x: Any, y: Any) -> Any:
    product = x * y
    return product if product != 0 or (x >= 0 and y >= 0) else None  # -0.0 is not 0


def _exact_power(x: Any, *, n: int) -> Any:
    """Folded only where the result stays small: 9**9**9 must not be computed."""
    bits = max(abs(x.numerator).bit_length(), x.denominator.bit_length())
    if abs(n) * bits > 4096 or (x == 0 and n < 0):
        return None
    return x**n if n >= 0 else rational(1, x**-n)


def _power_value(xp: Any, x: Any, *, n: int) -> Any:
    """Products for small exponents: exact steps, the same in every namespace."""
    if n == 2:
        return x * x
    if n == 3:
        return x * x * x
    if n == 4:
        square = x * x
        return square * square
    return xp.power(x, float(n))


add = elementwise(
    "add",
    "Sum of two numbers.",
    impl=lambda xp, x, y: x + y,
    symbolic=lambda sp, x, y: sp.Add(x, y),
    ball=lambda fl, x, y: x + y,
    partials=lambda x, y, *, out: (1, 1),
    identity=0,
    commutative=True,
    fold=lambda x, y: x + y,
    rewrite=_add_rewrite,
    sample=[Closed(-2, 2), Closed(-2, 2)],
    node="AddBackward0",
    formula="x + y",
    examples=[("2 + 3", 5)],
    domain=[REAL, REAL],
    names="numpy. torch.",
    traits="keeps_whole",
)

sub = elementwise(
    "sub",
    "Difference of two numbers.",
    impl=lambda xp, x, y: x - y,
    symbolic=lambda sp, x, y: sp.Add(x, sp.Mul(-1, y)),
    ball=lambda fl, x, y: x - y,
    partials=lambda x, y, *, out: (1, -1),
    fold=lambda x, y: x - y,
    rewrite=_sub_rewrite,
    aliases=("subtract",),
    sample=[Closed(-2, 2), Closed(-2, 2)],
    node="SubBackward0",
    formula="x - y",
    examples=[("2 - 3", -1)],
    domain=[REAL, REAL],
    names="numpy.subtract torch.",
    traits="keeps_whole",
)

mul = elementwise(
    "mul",
    "Product of two numbers.",
    impl=lambda xp, x, y: x * y,
    symbolic=lambda sp, x, y: sp.Mul(x, y),
    ball=lambda fl, x, y: x * y,
    partials=lambda x, y, *, out: (y, x),
    identity=1,
    annihilator=0,
    commutative=True,
    fold=_exact_product,
    rewrite=_mul_rewrite,
    aliases=("multiply",),
    sample=[Closed(-2, 2), Closed(-2, 2)],
    node="MulBackward0",
    formula="x*y",
    examples=[("2 * 3", 6)],
    domain=[REAL, REAL],
    names="numpy.multiply torch.",
    traits="keeps_whole",
)

div = elementwise(
    "div",
    "Quotient of two numbers.",
    impl=lambda xp, x, y: x / y,
    symbolic=lambda sp, x, y: sp.Mul(x, sp.Pow(y, -1)),
    ball=lambda fl, x, y: x / y,
    partials=lambda x, y, *, out: (1 / y, -(out / y)),
    fold=lambda x, y: None if y == 0 or (x == 0 and y < 0) else rational(x, y),
    rewrite=_div_rewrite,
    aliases=("divide", "true_divide"),
    sample=[Closed(-2, 2), Closed(0.5, 2)],
    node="DivBackward0",
    formula="x/y",
    examples=[("3 / 2", 1.5)],
    domain=[REAL, REAL],
    names="numpy.divide torch.",
)

neg = elementwise(
    "neg",
    "The negative of a number.",
    impl=lambda xp, x: -x,
    symbolic=lambda sp, x: sp.Mul(-1, x),
    ball=lambda fl, x: -x,
    partials=lambda x, *, out: (-1,),
    fold=lambda x: -x if x != 0 else None,
    rewrite=_neg_rewrite,
    aliases=("negative",),
    sample=[Closed(-2, 2)],
    node="NegBackward0",
    formula="-x",
    examples=[("neg(2)", -2)],
    domain=[REAL],
    names="numpy.negative torch.",
    traits="keeps_whole",
)

power = elementwise(
    "power",
    "An integer power, defined for every base.",
    impl=_power_value,
    symbolic=lambda sp, x, *, n: sp.Pow(x, n),
    ball=lambda fl, x, *, n: fl.whole_power(x, n) if n >= 0 else 1 / fl.whole_power(x, -n),
    partials=lambda x, *, out, n: (0 if n == 0 else n * x ** (n - 1),),
    arity=1,
    fold=_exact_power,
    rewrite=_power_rewrite,
    internal=True,
    sample=[Closed(0.5, 2)],
    node="PowBackward0",
    formula="x**n",
    examples=[("(-2)**3", -8)],
    domain=[REAL],
    traits="keeps_whole",
)

# --- complex numbers ------------------------------------------------------------------------------------------

real_part: Primitive = linear(
    "real_part",
    "The real part, also of a cotangent: what a real value passes on.",
    impl=lambda xp, x: xp.cast(x.real, "float"),
    ball=lambda fl, x: x.x,
    transpose={0: lambda ct, x: real_part(ct)},
    rewrite=lambda x: x if x.primitive in (real_part, CONSTANT) else None,
    pointwise=True,
    arity=1,
    internal=True,
    domain=[REAL],
    formula="Re(x)",
)

times_i: Primitive = linear(
    "times_i",
    "The imaginary unit times x; in programs on complex numbers only.",
    impl=lambda xp, x: x * 1j,
    ball=lambda fl, x: x.turned(),
    transpose={0: lambda ct, x: times_i(ct)},
    pointwise=True,
    arity=1,
    internal=True,
    domain=[REAL],
    formula="i*x",
)


def parts(z: Any) -> tuple[Any, Any]:
    """The real and the imaginary part of complex numbers."""
    return real_part(z), real_part(-times_i(z))
