"""NumPy's functions on single Python floats, with the standard library alone, for scalar programs.

Where IEEE arithmetic gives inf or nan, Python raises ValueError, OverflowError or ZeroDivisionError; these
pass through, and the evaluator computes the program again with NumPy. What `math` lacks, or has with much less
precision than SciPy (gamma), raises `Unavailable`.
"""

from __future__ import annotations

import math

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


def logical_not(x: bool) -> bool:
    return not x


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


def add(x: float, y: float) -> float:
    return x + y


def subtract(x: float, y: float) -> float:
    return x - y


def multiply(x: float, y: float) -> float:
    return x * y


def divide(x: float, y: float) -> float:
    return x / y


def negative(x: float) -> float:
    return -x


def positive(x: float) -> float:
    return x


def reciprocal(x: float) -> float:
    return 1.0 / x


def square(x: float) -> float:
    return x * x


def mod(x: float, y: float) -> float:
    return x % y


def floor_divide(x: float, y: float) -> float:
    return x // y


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


def zeros_like(x: float) -> float:
    return 0.0


def ones_like(x: float) -> float:
    return 1.0


def full_like(x: float, value: float) -> float:
    return float(value)


TABLE: dict[str, Any] = {
    "pi": math.pi,
    "e": math.e,
    "inf": math.inf,
    "nan": math.nan,
    "sin": math.sin,
    "cos": math.cos,
    "tan": math.tan,
    "arcsin": math.asin,
    "arccos": math.acos,
    "arctan": math.atan,
    "arctan2": math.atan2,
    "sinh": math.sinh,
    "cosh": math.cosh,
    "tanh": math.tanh,
    "arcsinh": math.asinh,
    "arccosh": math.acosh,
    "arctanh": math.atanh,
    "asin": math.asin,
    "acos": math.acos,
    "atan": math.atan,
    "atan2": math.atan2,
    "asinh": math.asinh,
    "acosh": math.acosh,
    "atanh": math.atanh,
    "exp": math.exp,
    "exp2": math.exp2,
    "expm1": math.expm1,
    "log": math.log,
    "log2": math.log2,
    "log10": math.log10,
    "log1p": math.log1p,
    "sqrt": math.sqrt,
    "cbrt": math.cbrt,
    "power": math.pow,
    "pow": math.pow,
    "float_power": math.pow,
    "hypot": math.hypot,
    "fmod": math.fmod,
    "copysign": math.copysign,
    "nextafter": math.nextafter,
    "radians": math.radians,
    "deg2rad": math.radians,
    "degrees": math.degrees,
    "rad2deg": math.degrees,
    "abs": math.fabs,
    "absolute": math.fabs,
    "fabs": math.fabs,
    "isnan": math.isnan,
    "isinf": math.isinf,
    "isfinite": math.isfinite,
    "signbit": lambda x: math.copysign(1.0, x) < 0,
    "erf": math.erf,
    "erfc": math.erfc,
    "equal": lambda x, y: x == y,
    "not_equal": lambda x, y: x != y,
    "less": lambda x, y: x < y,
    "less_equal": lambda x, y: x <= y,
    "greater": lambda x, y: x > y,
    "greater_equal": lambda x, y: x >= y,
    "remainder": mod,
    "round": rint,
    "true_divide": divide,
}
# fmt: off
TABLE.update({
    function.__name__: function
    for function in (
        where, cast, logical_and, logical_or, logical_xor, logical_not, sign, maximum, minimum, fmax,
        fmin, clip, heaviside, floor, ceil, trunc, rint, add, subtract, multiply, divide, negative,
        positive, reciprocal, square, mod, floor_divide, sinc, logaddexp, expit, log_expit,
        logit, xlogy, xlog1py, zeros_like, ones_like, full_like,
    )
})
# fmt: on
