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


def make(dtype: str) -> MathNamespace:
    """The namespace; Python has floats of one width only."""
    if dtype != "float64":
        raise Unavailable(f"math has no {dtype}")
    return MathNamespace(TABLE)


def cast(x: Any, kind: str) -> Any:
    if kind == "float":
        return float(x)
    if kind == "bool":
        return bool(x)
    raise Unavailable("positions need an array")


def logaddexp(x: float, y: float) -> float:
    if x == y:
        return x + math.log(2.0)
    high, low = (x, y) if x > y else (y, x)
    return high + math.log1p(math.exp(low - high))


def logit(x: float) -> float:
    if 0.3 <= x <= 0.65:  # the quotient is near 1 there
        return math.log1p(2.0 * x - 1.0) - math.log1p(1.0 - 2.0 * x)
    return math.log(x / (1.0 - x))


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
TABLE: dict[str, Any] = {
    **{name: getattr(math, name) for name in SAME},
    "cast": cast, "logaddexp": logaddexp, "logit": logit,
    "where": lambda condition, x, y: x if condition else y,
    "logical_and": lambda x, y: bool(x and y),
    "logical_or": lambda x, y: bool(x or y),
    "sign": lambda x: 1.0 if x > 0 else -1.0 if x < 0 else 0.0 if x == 0 else nan,
    "maximum": lambda x, y: x if x >= y or x != x else y,
    "minimum": lambda x, y: x if x <= y or x != x else y,
    "heaviside": lambda x, at_zero: 1.0 if x > 0 else 0.0 if x < 0 else at_zero if x == 0 else nan,
    "floor": lambda x: math.copysign(math.floor(x), x),  # as floats with the sign of their argument
    "ceil": lambda x: math.copysign(math.ceil(x), x),
    "trunc": lambda x: math.copysign(math.trunc(x), x),
    "rint": lambda x: math.copysign(round(x), x),
    "square": lambda x: x * x,
    "mod": lambda x, y: x % y,
    "zeros_like": lambda x: 0.0, "ones_like": lambda x: 1.0,
    "add": operator.add, "subtract": operator.sub, "multiply": operator.mul, "divide": operator.truediv,
    "floor_divide": operator.floordiv, "negative": operator.neg, "positive": operator.pos,
    "equal": operator.eq, "not_equal": operator.ne, "less": operator.lt, "less_equal": operator.le,
    "greater": operator.gt, "greater_equal": operator.ge, "logical_not": operator.not_,
}  # fmt: skip
TABLE.update({name: TABLE[other] for name, other in ALIASES.items()})
