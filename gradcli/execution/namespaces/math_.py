"""NumPy's functions on single Python floats, with the standard library alone, for scalar programs.

Where IEEE arithmetic gives inf or nan, Python raises ValueError, OverflowError or ZeroDivisionError; these
pass through, and the evaluator computes the program again with NumPy. What `math` lacks, or has with much less
precision than SciPy (gamma), raises `Unavailable`.
"""

from __future__ import annotations

import math
import operator

from gradcli.execution.namespaces import Unavailable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

nan = math.nan


class MathNamespace:
    """The functions as attributes; any other name raises `Unavailable`."""

    name = "math"
    dtype = "float64"

    def __init__(self, table: dict[str, Any]) -> None:
        self.__dict__.update(table)

    def __getattr__(self, name: str) -> Any:
        raise Unavailable(f"math has no {name}")

    def __repr__(self) -> str:
        return "<namespace math>"


def make(dtype: str) -> MathNamespace:
    """The namespace; Python has floats of one width only."""
    if dtype != "float64":
        raise Unavailable(f"math has no {dtype}")
    return MathNamespace(TABLE)


# --- choice, truth and conversion -------------------------------------------------------------------


def where(condition: bool, x: float, y: float) -> float:
    return x if condition else y


def cast(x: Any, kind: str) -> Any:
    if kind == "float":
        return float(x)
    if kind == "bool":
        return bool(x)
    raise Unavailable("positions need an array")


def logical_and(x: bool, y: bool) -> bool:
    return bool(x and y)


def logical_or(x: bool, y: bool) -> bool:
    return bool(x or y)


def logical_xor(x: bool, y: bool) -> bool:
    return bool(x) != bool(y)


def sign(x: float) -> float:
    return 1.0 if x > 0 else -1.0 if x < 0 else 0.0 if x == 0 else nan


def maximum(x: float, y: float) -> float:
    return x if x >= y or x != x else y


def minimum(x: float, y: float) -> float:
    return x if x <= y or x != x else y


def fmax(x: float, y: float) -> float:
    return x if x >= y or y != y else y


def fmin(x: float, y: float) -> float:
    return x if x <= y or y != y else y


def clip(x: float, low: float, high: float) -> float:
    return minimum(maximum(x, low), high)


def heaviside(x: float, at_zero: float) -> float:
    return 1.0 if x > 0 else 0.0 if x < 0 else at_zero if x == 0 else nan


# --- steps, as floats with the sign of their argument --------------------------------------------------


def floor(x: float) -> float:
    return math.copysign(math.floor(x), x)


def ceil(x: float) -> float:
    return math.copysign(math.ceil(x), x)


def trunc(x: float) -> float:
    return math.copysign(math.trunc(x), x)


def rint(x: float) -> float:
    return math.copysign(round(x), x)


# --- arithmetic and elementary functions --------------------------------------------------------------


def reciprocal(x: float) -> float:
    return 1.0 / x


def square(x: float) -> float:
    return x * x


def mod(x: float, y: float) -> float:
    return x % y


def sinc(x: float) -> float:
    if x == 0:
        return 1.0
    angle = math.pi * x
    return math.sin(angle) / angle


def logaddexp(x: float, y: float) -> float:
    if x == y:
        return x + math.log(2.0)
    high, low = (x, y) if x > y else (y, x)
    return high + math.log1p(math.exp(low - high))


def expit(x: float) -> float:
    if x >= 0:
        return 1.0 / (1.0 + math.exp(-x))
    tail = math.exp(x)
    return tail / (1.0 + tail)


def log_expit(x: float) -> float:
    return -math.log1p(math.exp(-x)) if x >= 0 else x - math.log1p(math.exp(x))


def logit(x: float) -> float:
    if 0.3 <= x <= 0.65:  # the quotient is near 1 there
        return math.log1p(2.0 * x - 1.0) - math.log1p(1.0 - 2.0 * x)
    return math.log(x / (1.0 - x))


def xlogy(x: float, y: float) -> float:
    return 0.0 if x == 0 and y == y else x * math.log(y)


def xlog1py(x: float, y: float) -> float:
    return 0.0 if x == 0 and y == y else x * math.log1p(y)


def full_like(x: float, value: float) -> float:
    return float(value)


# of the standard library under one name, and under further names of NumPy
SAME = (
    *("pi", "e", "inf", "nan", "sin", "cos", "tan", "asin", "acos", "atan", "atan2", "sinh", "cosh", "tanh", "asinh"),
    *("acosh", "atanh", "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt", "cbrt", "pow", "hypot"),
    *("fmod", "copysign", "nextafter", "radians", "degrees", "fabs", "isnan", "isinf", "isfinite", "erf", "erfc"),
)
ALIASES = {
    "arcsin": "asin", "arccos": "acos", "arctan": "atan", "arctan2": "atan2", "arcsinh": "asinh", "arccosh": "acosh",
    "arctanh": "atanh", "power": "pow", "float_power": "pow", "abs": "fabs", "absolute": "fabs", "deg2rad": "radians",
    "rad2deg": "degrees", "remainder": "mod", "round": "rint", "true_divide": "divide",
}  # fmt: skip
OWN = (
    where, cast, logical_and, logical_or, logical_xor, sign, maximum, minimum, fmax, fmin, clip, heaviside, floor, ceil,
    trunc, rint, reciprocal, square, mod, sinc, logaddexp, expit, log_expit, logit, xlogy, xlog1py, full_like,
)  # fmt: skip
TABLE: dict[str, Any] = {
    **{name: getattr(math, name) for name in SAME},
    **{function.__name__: function for function in OWN},
    "add": operator.add, "subtract": operator.sub, "multiply": operator.mul, "divide": operator.truediv,
    "floor_divide": operator.floordiv, "negative": operator.neg, "positive": operator.pos,
    "equal": operator.eq, "not_equal": operator.ne, "less": operator.lt, "less_equal": operator.le,
    "greater": operator.gt, "greater_equal": operator.ge, "logical_not": operator.not_,
    "signbit": lambda x: math.copysign(1.0, x) < 0,
    "zeros_like": lambda x: 0.0, "ones_like": lambda x: 1.0,
}  # fmt: skip
TABLE.update({name: TABLE[other] for name, other in ALIASES.items()})
