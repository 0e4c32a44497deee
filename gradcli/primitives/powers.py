"""Powers and roots: x**y with a varying exponent, square and cube roots, lengths; exact where a zero hides a limit."""

from __future__ import annotations

from fractions import Fraction
from math import comb, factorial

from gradcli.graph.domain import NONNEGATIVE, POSITIVE, REAL, Closed
from gradcli.graph.primitive import Kink, Primitive, composite, elementwise
from gradcli.primitives.exponential import log
from gradcli.primitives.rounding import floor_at_point

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from gradcli.graph.node import Node

# --- roots ------------------------------------------------------------------------------------------------

sqrt = elementwise(
    "sqrt",
    "Square root.",
    impl=lambda xp, x: xp.sqrt(x),
    symbolic=lambda sp, x: sp.sqrt(x),
    ball=lambda fl, x: x.sqrt(),
    partials=lambda x, *, out: (1 / (2 * out),),
    domain=[NONNEGATIVE],
    sample=[Closed(0.2, 3)],
    examples=[("sqrt(2)", 1.4142135623730951), ("sqrt(0)", 0)],
    node="SqrtBackward0",
    formula="√x",
    names="c. numpy. torch.",
)

rsqrt = elementwise(
    "rsqrt",
    "One over the square root.",
    impl=lambda xp, x: 1.0 / xp.sqrt(x),
    symbolic=lambda sp, x: sp.Pow(x, sp.Rational(-1, 2)),
    ball=lambda fl, x: 1 / x.sqrt(),
    partials=lambda x, *, out: (-(out / (2 * x)),),
    domain=[POSITIVE],
    sample=[Closed(0.2, 3)],
    examples=[("rsqrt(4)", 0.5), ("rsqrt(2)", 0.7071067811865476)],
    node="RsqrtBackward0",
    formula="1/√x",
    names="torch.",
    steady="1/sqrt(x)",
)

reciprocal = composite(
    "reciprocal",
    "One over x.",
    definition=lambda x: 1 / x,
    pointwise=True,
    arity=1,
    domain=[REAL],
    sample=[Closed(0.2, 3)],
    examples=[("reciprocal(4)", 0.25)],
    node="ReciprocalBackward0",
    formula="1/x",
    names="numpy. torch.",
)


def _cbrt_symbolic(sp: Any, x: Any) -> Any:
    side = sp.sign_at_point(x)
    return side * sp.Pow(side * x, sp.Rational(1, 3))


def _cbrt_ball(fl: Any, x: Any) -> Any:
    side = fl.sign(x)
    return side * fl.cube_root(side * x) if side else fl.integer(0)


cbrt = elementwise(
    "cbrt",
    "Cube root, of negative numbers too.",
    impl=lambda xp, x: xp.cbrt(x),
    symbolic=_cbrt_symbolic,
    ball=_cbrt_ball,
    partials=lambda x, *, out: (1 / (3 * out**2),),
    domain=[REAL],
    kinks=[Kink(lambda x: x, "x = 0", "inf")],
    sample=[Closed(-3, -0.2)],
    examples=[("cbrt(-8)", -2), ("cbrt(2)", 1.2599210498948732)],
    formula="∛x",
    names="c. numpy.",
    steady="sign(x)*abs(x)**(1/3)",
    traits="real_only",
)

square = composite(
    "square",
    "The square of a number.",
    definition=lambda x: x**2,
    pointwise=True,
    arity=1,
    domain=[REAL],
    sample=[Closed(-2, 2)],
    examples=[("square(-3)", 9)],
    node="PowBackward0",
    formula="x**2",
    names="numpy. torch.",
    steady="x*x",
)

# --- x**y -------------------------------------------------------------------------------------------------


def _pow_symbolic(sp: Any, x: Any, y: Any) -> Any:
    if sp.sign_at_point(x) < 0 and sp.sign_at_point(y - floor_at_point(sp, y)):
        return sp.nan
    return sp.Pow(x, y)


def pow_ball(fl: Any, x: Any, y: Any) -> Any:
    if y.is_integer():
        exponent = int(y.unique_fmpz())
        if exponent < 0 and fl.sign(x) == 0:
            fl.undefined("a negative power of 0")
        if -64 <= exponent <= 64:
            return fl.whole_power(x, exponent) if exponent >= 0 else 1 / fl.whole_power(x, -exponent)
    side = fl.sign(x)
    if side > 0:
        return fl.positive_power(x, y)
    if side < 0:
        if not y.is_integer():
            near = fl.at_point(y)
            if near.is_integer():
                fl.sign(y - near)  # where y moves only both sides tell
            fl.undefined("a power of a negative number whose exponent is not whole")
        value = fl.positive_power(-x, y)
        return value if (y / 2).is_integer() else -value
    if fl.sign(y) < 0:
        fl.undefined("a negative power of 0")
    return fl.integer(0)


_POW_AT_ZERO = "y*x**(y - 1) in the base, but 0 for y = 0; in the exponent 0 for y >= 0, else -inf"

pow_ = elementwise(
    "pow",
    "x to the power y, where y may be a variable too.",
    impl=lambda xp, x, y: xp.power(x, y),
    symbolic=_pow_symbolic,
    ball=pow_ball,
    partials=lambda x, y, *, out: (pow_derivative(x, y, k=1, m=0), pow_derivative(x, y, k=0, m=1)),
    aliases=("power", "float_power"),
    rewrite=lambda x, y: x**y.constant if isinstance(y.constant, int) else None,
    domain=[NONNEGATIVE, REAL],
    kinks=[Kink(lambda x, y: x, "x = 0", _POW_AT_ZERO)],
    sample=[Closed(0.2, 3), Closed(-2, 2)],
    examples=[("pow(2, 0.5)", 1.4142135623730951), ("4**1.5", 8), ("pow(0, 0)", 1)],
    node="PowBackward1",
    formula="x**y",
    names="c. numpy.power torch.",
)


def _pow_derivative_value(xp: Any, x: Any, y: Any, *, k: int, m: int) -> Any:
    """By Leibniz: x**(y-k) * sum over j of m!/(m-j)! c_j log(x)**(m-j), with c_j from y(y-1)...(y-k+1)."""
    c = _falling(y, k, m)
    if m == 0:
        return xp.where(c[0] == 0, 0.0, c[0] * xp.power(x, y - k))
    zero = x == 0
    logarithm = xp.log(xp.where(zero, 1e-300, x))
    total = c[0]
    for j in range(1, m + 1):
        total = total * logarithm + c[j] * float(factorial(m) // factorial(m - j))
    # at x = 0 the logarithm is -inf: it decides unless a positive power of x does
    vanishes = y > k if k else y >= 0
    at_zero = xp.where(vanishes, 0.0, total * float("inf"))
    return xp.where(zero, at_zero, total * xp.power(xp.where(zero, 1.0, x), y - k))


def _falling(y: Any, k: int, m: int) -> list[Any]:
    """The coefficients of d**0 ... d**m in (y + d)(y + d - 1)...(y + d - k + 1)."""
    c: list[Any] = [1.0] + [0.0] * m
    for i in range(k):
        c = [c[0] * (y - i)] + [c[j] * (y - i) + c[j - 1] for j in range(1, m + 1)]
    return c


def _pow_derivative_symbolic(sp: Any, x: Any, y: Any, *, k: int, m: int) -> Any:
    if m == 0 and any(sp.sign_at_point(y - i) == 0 for i in range(k)):
        return sp.Integer(0)
    if m == 0:
        return sp.ff(y, k) * _pow_symbolic(sp, x, y - k)
    if sp.sign_at_point(x) == 0 and sp.sign_at_point(y - k) >= (1 if k else 0):
        return sp.Integer(0)
    # by Leibniz: x**(y - k) * sum over j of (m over j) * (d/dy)**j y(y - 1)...(y - k + 1) * log(x)**(m - j)
    slopes: list[Any] = [sp.Integer(1)] + [sp.Integer(0)] * m
    for i in range(k):
        slopes = [sp.Add((y - i) * slopes[j], j * slopes[j - 1] if j else 0) for j in range(m + 1)]
    logarithm = sp.log(x)
    terms = [comb(m, j) * slopes[j] * sp.Pow(logarithm, m - j) for j in range(m + 1)]
    return sp.Mul(sp.Pow(x, y - k), sp.Add(*terms))


def _pow_derivative_ball(fl: Any, x: Any, y: Any, *, k: int, m: int) -> Any:
    """From x*D(k+1, m) = (y - k)*D(k, m) + m*D(k, m-1), which is x*d/dx(x**y) = y*x**y differentiated."""
    if m == 0 and any((y - i).is_zero() for i in range(k)):
        return fl.integer(0)
    power = fl.rule(pow_)
    if fl.vanishes(x):
        if m == 0:
            factor = fl.integer(1)
            for i in range(k):
                factor = factor * (y - i)
            return factor * power(fl, x, y - k)
        if fl.sign(y - k) < (1 if k else 0):
            fl.undefined("an infinite derivative of x**y at x = 0")
        return fl.integer(0)
    row = [power(fl, x, y)]
    row += [row[0] * x.log() ** j for j in range(1, m + 1)]
    for i in range(k):
        row = [((y - i) * row[j] + (j * row[j - 1] if j else 0)) / x for j in range(m + 1)]
    return row[m]


def _pow_derivative_rewrite(x: Node, y: Node, *, k: int, m: int) -> Node | None:
    """With a constant exponent or base the textbook's formula is as good."""
    exponent, base = y.constant, x.constant
    if m == 0 and isinstance(exponent, int | Fraction):
        factor: Any = 1
        for i in range(k):
            factor *= exponent - i
        return factor * x ** (exponent - k) if factor else x.builder.constant(0, x.shape)
    if k == 0 and isinstance(base, int | Fraction) and base > 0:
        return pow_(x, y) * log(x) ** m
    return None


def _pow_derivative_formula(*, k: int, m: int) -> str:
    """The k-th derivative in x and m-th in y as people write it; longer mixed ones have no formula."""
    if m == 0:
        factors = "".join(f"(y - {i})*" if i else "y*" for i in range(k))
        return f"{factors}x**(y - {k})"
    if k == 0:
        return "x**y*log(x)" + (f"**{m}" if m > 1 else "")
    return "x**(y - 1)*(1 + y*log(x))" if k == m == 1 else ""


def _pow_derivative_closed(x: Any, y: Any, *, k: int, m: int) -> Any:
    """By Leibniz on x**y*log(x)**m, differentiated k times by x, for x > 0."""
    falling = [1]  # the coefficients of y*(y - 1)*..., by powers of y
    for i in range(k):
        falling = [low - i * high for low, high in zip([0, *falling], [*falling, 0], strict=True)]
    base, total = (x ** (y - k) if k else x**y), None
    for j in range(min(m, len(falling) - 1) + 1):
        factor: Any = falling[-1]
        for coefficient in reversed(falling[:-1]):
            factor = factor * y + coefficient
        power = log(x) ** (m - j) if m > j else 1
        part = comb(m, j) * factor * base * power
        total = part if total is None else total + part
        falling = [i * coefficient for i, coefficient in enumerate(falling)][1:]
    return total


pow_derivative: Primitive = elementwise(
    "pow_derivative",
    "The derivative of x**y, k times by x and m times by y, with its limit or convention at x = 0.",
    impl=_pow_derivative_value,
    symbolic=_pow_derivative_symbolic,
    ball=_pow_derivative_ball,
    partials=lambda x, y, *, out, k, m: (
        pow_derivative(x, y, k=k + 1, m=m),
        pow_derivative(x, y, k=k, m=m + 1),
    ),
    rewrite=_pow_derivative_rewrite,
    internal=True,
    domain=[NONNEGATIVE, REAL],
    sample=[Closed(0.2, 3), Closed(-2, 2)],
    formula=_pow_derivative_formula,
    closed=_pow_derivative_closed,
)

# --- lengths ------------------------------------------------------------------------------------------------


def _div_no_nan_value(xp: Any, x: Any, y: Any) -> Any:
    absent = y == 0
    return xp.where(absent, 0.0, x / xp.where(absent, 1.0, y))


div_no_nan: Primitive = elementwise(
    "div_no_nan",
    "x/y, and 0 where y is 0.",
    impl=_div_no_nan_value,
    symbolic=lambda sp, x, y: x / y if sp.sign_at_point(y) else sp.Integer(0),
    ball=lambda fl, x, y: fl.integer(0) if fl.vanishes(y) else x / y,
    partials=lambda x, y, *, out: (div_no_nan(1, y), -div_no_nan(out, y)),
    internal=True,
    domain=[REAL, REAL],
    kinks=[Kink(lambda x, y: y, "y = 0", "0", discontinuity=True)],
    sample=[Closed(-2, 2), Closed(0.2, 2)],
    formula="where(y != 0, x/y, 0)",
    closed=lambda x, y: x / y,
    elementary="x/y*(y != 0)",
)


def _direction_cosine_partials(x: Any, y: Any, *, out: Any) -> tuple[Any, Any]:
    sine = direction_cosine(y, x)
    turn = div_no_nan(sine, hypot(x, y))
    return sine * turn, -(out * turn)


direction_cosine: Primitive = elementwise(
    "direction_cosine",
    "x/hypot(x, y), and 0 at the origin: the cosine of the angle of (x, y).",
    impl=lambda xp, x, y: _div_no_nan_value(xp, x, xp.hypot(x, y)),
    symbolic=lambda sp, x, y: x / sp.sqrt(x * x + y * y) if sp.sign_at_point(x * x + y * y) else sp.Integer(0),
    ball=lambda fl, x, y: x / (x * x + y * y).sqrt() if fl.sign(x * x + y * y) else fl.integer(0),
    partials=_direction_cosine_partials,
    arity=2,
    internal=True,
    domain=[REAL, REAL],
    kinks=[Kink(lambda x, y: x * x + y * y, "x = 0 and y = 0", "0, 0", discontinuity=True)],
    sample=[Closed(0.2, 2), Closed(-2, 2)],
    formula="x/hypot(x, y)",
    closed=lambda x, y: x / hypot(x, y),
)

hypot: Primitive = elementwise(
    "hypot",
    "Length of the vector (x, y), without overflow in its squares.",
    impl=lambda xp, x, y: xp.hypot(x, y),
    symbolic=lambda sp, x, y: sp.sqrt(x * x + y * y),
    ball=lambda fl, x, y: (x * x + y * y).sqrt(),
    partials=lambda x, y, *, out: (direction_cosine(x, y), direction_cosine(y, x)),
    domain=[REAL, REAL],
    kinks=[Kink(lambda x, y: x * x + y * y, "x = 0 and y = 0", "0, 0")],
    sample=[Closed(0.2, 2), Closed(-2, 2)],
    examples=[("hypot(3, 4)", 5), ("hypot(3e200, 4e200)", 5e200)],
    node="HypotBackward0",
    formula="√(x² + y²)",
    names="c. numpy. torch.",
    elementary="(x**2 + y**2)**0.5",
)
