"""CUDA C for the functions and numbers of NumPy.

Additions, products, quotients and roots round as NumPy's do, because kernels are compiled without contraction. The
rest is CUDA's library: its documented errors are at most 2 ulp, 10 for the gamma function, 6 for its logarithm.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.execution.plans.emit_numba import OPERATORS

if TYPE_CHECKING:
    from collections.abc import Sequence

OPTIONS = ("--fmad=false",)  # of the compiler: a product and a sum are two roundings
SAME = (
    np.add, np.subtract, np.multiply, np.true_divide, np.negative, np.positive, np.square, np.sqrt, np.copysign,
    np.less, np.less_equal, np.greater, np.greater_equal, np.equal, np.not_equal,
)  # fmt: skip
FORMS: dict[Any, str] = {
    **{ufunc: OPERATORS[ufunc] for ufunc in SAME},  # these are spelt alike in Python and in C
    np.absolute: "fabs({})", np.reciprocal: "(1 / {})",
    np.logical_and: "({} && {})", np.logical_or: "({} || {})", np.logical_not: "(!{})",
    np.bitwise_and: "({} && {})", np.bitwise_or: "({} || {})", np.invert: "(!{})", np.bitwise_xor: "({} != {})",
    np.maximum: "larger_({}, {})", np.minimum: "smaller_({}, {})",
    np.exp: "exp({})", np.exp2: "exp2({})", np.expm1: "expm1({})", np.log: "log({})", np.log2: "log2({})",
    np.log10: "log10({})", np.log1p: "log1p({})", np.sin: "sin({})", np.cos: "cos({})", np.tan: "tan({})",
    np.sinh: "sinh({})", np.cosh: "cosh({})", np.tanh: "tanh({})", np.arcsin: "asin({})", np.arccos: "acos({})",
    np.arctan: "atan({})", np.arcsinh: "asinh({})", np.arccosh: "acosh({})", np.arctanh: "atanh({})",
    np.arctan2: "atan2({}, {})", np.hypot: "hypot({}, {})", np.cbrt: "cbrt({})", np.power: "pow({}, {})",
    np.floor: "floor({})", np.ceil: "ceil({})", np.trunc: "trunc({})", np.rint: "rint({})", np.sign: "sign_({})",
    np.heaviside: "heaviside_({}, {})", np.remainder: "remain_({}, {})", np.logaddexp: "logaddexp_({}, {})",
    np.isfinite: "isfinite({})", np.isnan: "isnan({})",
    np.spacing: "(nextafter({0}, 2 * {0}) - {0})",  # of positive numbers: no others are requested
}  # fmt: skip
SPECIAL = {  # those of SciPy, by name: SciPy itself is not imported
    "erf": "erf({})", "erfc": "erfc({})", "erfinv": "erfinv({})", "gamma": "tgamma({})", "gammaln": "lgamma({})",
}  # fmt: skip
HEAVY, MEDIUM, LIGHT = 20, 6, 1  # what a function costs beside an addition
CHEAP = frozenset(
    (*SAME, np.absolute, np.logical_and, np.logical_or, np.logical_not, np.bitwise_and, np.bitwise_or, np.invert)
    + (np.maximum, np.minimum, np.sign, np.floor, np.ceil, np.trunc, np.rint, np.isfinite, np.isnan)
)
TYPES = {"float64": "double", "float32": "float", "bool": "bool", "int64": "long long"}

# What CUDA has no word for, in the type T of the program's numbers. Names that no library has.
FUNCTIONS = """
__device__ __forceinline__ T larger_(T x, T y) { return x > y || x != x ? x : y; }
__device__ __forceinline__ T smaller_(T x, T y) { return x < y || x != x ? x : y; }
__device__ __forceinline__ T sign_(T x) { return x != x ? x : (T)((x > 0) - (x < 0)); }
__device__ __forceinline__ T heaviside_(T x, T y) { return x != x ? x : x < 0 ? (T)0 : x > 0 ? (T)1 : y; }
__device__ __forceinline__ T remain_(T x, T y) {
    const T r = fmod(x, y);
    return r == 0 ? (y == 0 ? r : copysign(r, y)) : (y < 0) != (r < 0) ? r + y : r;
}
__device__ __forceinline__ T logaddexp_(T x, T y) {
    const T d = x - y;
    return x == y ? x + log((T)2) : d > 0 ? x + log1p(exp(-d)) : d <= 0 ? y + log1p(exp(d)) : d;
}
"""


def functions(dtype: Any) -> str:
    """The text that stands before a kernel: its type of numbers, and functions in it."""
    text = FUNCTIONS.replace("T ", f"{TYPES[dtype.name]} ")
    return text.replace("(T)", f"({TYPES[dtype.name]})")


def form(ufunc: Any, operands: Sequence[Any], result: Any) -> str | None:
    """The word of a ufunc for operands of these types; None where there is none."""
    if any(dtype.kind not in "fb" for dtype in (*operands, result)):
        return None
    if ufunc in LOGICAL and any(dtype.kind != "b" for dtype in operands):
        return None
    if ufunc not in LOGICAL and ufunc not in COMPARISONS and any(dtype.kind != "f" for dtype in operands):
        return None
    return FORMS.get(ufunc) or SPECIAL.get(ufunc.__name__)


LOGICAL = {
    np.logical_and, np.logical_or, np.logical_not, np.bitwise_and, np.bitwise_or, np.invert, np.bitwise_xor,
}  # fmt: skip
COMPARISONS = {np.less, np.less_equal, np.greater, np.greater_equal, np.equal, np.not_equal}


def number(value: Any) -> str:
    """A number of NumPy as a literal of C, to the last bit.

    >>> import numpy as np
    >>> number(np.float64(0.1)), number(np.float32(0.1)), number(np.bool_(True))
    ('0.1', '1.0e-01f', 'true')
    """
    if value.dtype.kind == "b":
        return "true" if value else "false"
    if value.dtype.kind in "iu":
        return f"{value.item()}ll" if value >= 0 else f"({value.item()}ll)"
    single = value.dtype.itemsize == np.dtype(np.float32).itemsize
    if not np.isfinite(value):
        bits = value.view(np.uint32 if single else np.uint64).item()
        return f"__int_as_float({bits:#x})" if single else f"__longlong_as_double({bits:#x}ll)"
    text = (np.format_float_scientific(value, trim="0") if single else repr(value.item())) + "f" * single
    return f"({text})" if text.startswith("-") else text


def cast(word: str, source: Any, target: Any) -> str:
    """A word of one type in another one."""
    if source == target:
        return word
    return f"({word} != 0)" if target.kind == "b" else f"({TYPES[target.name]}){word}"
