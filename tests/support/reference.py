"""Values of functions to 80 digits, by mpmath and NumPy's own shapes: a table of names that reads no declaration.

`CALLS` holds the functions of a script, with the arguments that a script gives them; `STEPS` the operations of a graph,
with their static parameters. `value` walks a graph with `STEPS`. Arrays are NumPy arrays of mpmath numbers. What
the tables lack raises `Missing`: then this oracle has nothing to say.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

import mpmath
import numpy as np

from gradcli.graph.arrays import ArrayData
from gradcli.graph.node import CONSTANT, DATA, LEAF, Node, reachable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

mp: Any = mpmath.mp.clone()
mp.dps = 80
half = mp.mpf("0.5")
STEP = mp.mpf(10) ** -16  # a difference of order n then has 32 digits, and cancellation leaves as many of the 80


class Missing(Exception):
    """The tables have no row for a name, or its row no value at a point."""


def number(x: Any) -> Any:
    """Any real number as an mpmath number, exactly."""
    if isinstance(x, Fraction):
        return mp.mpf(x.numerator) / x.denominator
    if isinstance(x, str):
        return {"pi": mp.pi, "e": mp.e, "inf": mp.inf, "-inf": -mp.inf, "nan": mp.nan}[x] * mp.one
    return mp.mpf(int(x)) if isinstance(x, (int, bool, np.bool_, np.integer)) else mp.mpf(x)


def exact(values: Any) -> Any:
    """Numbers as an array of mpmath numbers; truth values and positions stay what they are."""
    array = values if isinstance(values, np.ndarray) else np.array(values, dtype=object)
    if array.dtype.kind in "bi" or (array.dtype == object and all(type(entry) is mp.mpf for entry in array.flat)):
        return array
    made = np.empty(array.shape, dtype=object)
    for place, entry in np.ndenumerate(array):
        made[place] = entry if isinstance(entry, (mp.mpf, mp.mpc)) else number(entry)
    return made


# --- functions of numbers ------------------------------------------------------------------------------


def sign(x: Any) -> Any:
    return mp.mpf((x > 0) - (x < 0))


def real_power(x: Any, y: Any) -> Any:
    if x < 0 and y != mp.floor(y):
        return mp.nan
    if x == 0:
        return mp.one if y == 0 else mp.zero if y > 0 else mp.inf
    if x < 0:
        size = mp.exp(y * mp.log(-x))
        return size if mp.floor(y / 2) * 2 == y else -size
    return mp.exp(y * mp.log(x))


def pow_derivative(x: Any, y: Any, k: int, m: int) -> Any:
    if x <= 0:
        raise Missing("a derivative of x**y at x <= 0")
    return mp.diff(lambda a, b: mp.exp(b * mp.log(a)), (x, y), (k, m))


def cbrt(x: Any) -> Any:
    return sign(x) * mp.exp(mp.log(abs(x)) / 3) if x else mp.zero


def erfinv(x: Any) -> Any:
    return mp.erfinv(x)


def lgamma(x: Any) -> Any:
    return mp.log(abs(mp.gamma(x)))


def xlogy(x: Any, y: Any) -> Any:
    return mp.zero if x == 0 else x * mp.log(y)


def tail(x: Any) -> Any:
    """log(1 + exp(x))."""
    return mp.log(1 + mp.exp(x))


def logistic(x: Any) -> Any:
    return 1 / (1 + mp.exp(-x))


def rint(x: Any) -> Any:
    low = mp.floor(x)
    side = x - low - half
    up = side > 0 or (side == 0 and int(low) % 2 == 1)
    return low + up


def trunc(x: Any) -> Any:
    return mp.floor(x) if x >= 0 else mp.ceil(x)


def normal(x: Any) -> Any:
    """The distribution function of the normal distribution."""
    return mp.erfc(-x / mp.sqrt(2)) / 2


def gelu(x: Any, approximate: str = "none") -> Any:
    if approximate == "none":
        return x * normal(x)
    inner = mp.sqrt(2 / mp.pi) * (x + mp.mpf("0.044715") * x**3)
    return x * (1 + mp.tanh(inner)) / 2


def elu(x: Any, alpha: Any = 1) -> Any:
    return x if x > 0 else alpha * (mp.exp(x) - 1)


SELU_ALPHA = mp.mpf("1.6732632423543772848170429916717")
SELU_SCALE = mp.mpf("1.0507009873554804934193349852946")


def div_no_nan(x: Any, y: Any) -> Any:
    return x / y if y else mp.zero


def heaviside(x: Any, y: Any) -> Any:
    return y if x == 0 else mp.mpf(int(x > 0))


def student(x: Any, df: Any, loc: Any = 0, scale: Any = 1) -> Any:
    z = (x - loc) / scale
    front = mp.gamma((df + 1) / 2) / (mp.gamma(df / 2) * mp.sqrt(df * mp.pi) * scale)
    return mp.log(front * (1 + z * z / df) ** (-(df + 1) / 2))


def gamma_density(x: Any, a: Any, loc: Any = 0, scale: Any = 1) -> Any:
    z = (x - loc) / scale
    return z ** (a - 1) * mp.exp(-z) / (mp.gamma(a) * scale)


def beta_density(x: Any, a: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Any:
    z = (x - loc) / scale
    return z ** (a - 1) * (1 - z) ** (b - 1) / (mp.beta(a, b) * scale)


# Functions of one or several numbers, under the names that scripts and graphs use for them.
NUMBERS: dict[str, Callable[..., Any]] = {
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "mul": lambda x, y: x * y,
    "div": lambda x, y: x / y if y else mp.nan if not x else sign(x) * mp.inf,
    "neg": lambda x: -x,
    "pow": real_power,
    "sqrt": lambda x: mp.sqrt(x) if x >= 0 else mp.nan,
    "rsqrt": lambda x: 1 / mp.sqrt(x),
    "cbrt": cbrt,
    "square": lambda x: x * x,
    "hypot": lambda x, y: mp.sqrt(x * x + y * y),
    "exp": mp.exp,
    "exp2": lambda x: mp.mpf(2) ** x,
    "expm1": lambda x: mp.exp(x) - 1,
    "log": mp.log,
    "log2": lambda x: mp.log(x) / mp.log(2),
    "log10": lambda x: mp.log(x) / mp.log(10),
    "log1p": lambda x: mp.log(1 + x),
    "sin": mp.sin,
    "cos": mp.cos,
    "tan": mp.tan,
    "asin": mp.asin,
    "acos": mp.acos,
    "atan": mp.atan,
    "atan2": lambda y, x: mp.atan2(y, x),
    "sinh": mp.sinh,
    "cosh": mp.cosh,
    "tanh": mp.tanh,
    "asinh": mp.asinh,
    "acosh": mp.acosh,
    "atanh": mp.atanh,
    "erf": mp.erf,
    "erfc": mp.erfc,
    "erfinv": erfinv,
    "erfcinv": lambda x: mp.erfinv(1 - x),
    "j0": mp.j0,
    "j1": mp.j1,
    "i0": lambda x: mp.besseli(0, x),
    "i1": lambda x: mp.besseli(1, x),
    "jn": mp.besselj,
    "yn": mp.bessely,
    "iv": lambda v, x: mp.re(mp.besseli(v, x)),
    "kv": mp.besselk,
    "y0": lambda x: mp.bessely(0, x),
    "y1": lambda x: mp.bessely(1, x),
    "k0": lambda x: mp.besselk(0, x),
    "k1": lambda x: mp.besselk(1, x),
    "i0e": lambda x: mp.besseli(0, x) * mp.exp(-abs(x)),
    "i1e": lambda x: mp.besseli(1, x) * mp.exp(-abs(x)),
    "ive": lambda v, x: mp.besseli(v, x) * mp.exp(-abs(x)),
    "gammainc": lambda a, x: mp.gammainc(a, 0, x, regularized=True),
    "gammaincc": lambda a, x: mp.gammainc(a, x, mp.inf, regularized=True),
    "betainc": lambda a, b, x: mp.betainc(a, b, 0, x, regularized=True),
    "erfcx": lambda x: mp.exp(x * x) * mp.erfc(x),
    "erfi": mp.erfi,
    "dawsn": lambda x: mp.exp(-x * x) * mp.erfi(x) * mp.sqrt(mp.pi) / 2,
    "log_ndtr": lambda x: mp.log(normal(x)),
    "expi": mp.ei,
    "exp1": lambda x: mp.expint(1, x),
    "ellipk": mp.ellipk,
    "ellipe": mp.ellipe,
    "fresnels": mp.fresnels,
    "fresnelc": mp.fresnelc,
    "hyp0f1": mp.hyp0f1,
    "hyp1f1": mp.hyp1f1,
    "hyp2f1": mp.hyp2f1,
    "exprel": lambda x: mp.expm1(x) / x if x else mp.one,
    "boxcox": lambda x, power: (x**power - 1) / power if power else mp.log(x),
    "boxcox1p": lambda x, power: ((1 + x) ** power - 1) / power if power else mp.log(1 + x),
    "inv_boxcox": lambda y, power: (power * y + 1) ** (1 / power) if power else mp.exp(y),
    "zeta": lambda x, q=1: mp.zeta(x, q),
    "loggamma": mp.loggamma,
    "trigamma": lambda x: mp.polygamma(1, x),
    "xlog1py": lambda x, y: x * mp.log(1 + y) if x else mp.zero,
    "entr": lambda x: -x * mp.log(x) if x else mp.zero,
    "rel_entr": lambda x, y: x * mp.log(x / y) if x else mp.zero,
    "reciprocal": lambda x: 1 / x,
    "radians": lambda x: x * mp.pi / 180,
    "degrees": lambda x: x * 180 / mp.pi,
    "factorial": lambda x: mp.gamma(x + 1),
    "logit": lambda x: mp.log(x / (1 - x)),
    "betaln": lambda x, y: mp.log(abs(mp.beta(x, y))),
    "gamma": mp.gamma,
    "lgamma": lgamma,
    "digamma": mp.digamma,
    "beta": mp.beta,
    "sinc": lambda x: mp.sin(mp.pi * x) / (mp.pi * x) if x else mp.one,
    "abs": abs,
    "sign": sign,
    "heaviside": heaviside,
    "maximum": lambda x, y: x if x >= y else y,
    "minimum": lambda x, y: x if x <= y else y,
    "clamp": lambda x, low=-mp.inf, high=mp.inf: min(max(x, low), high),
    "norm_pdf": lambda x, loc=0, scale=1: mp.npdf(x, loc, scale),
    "norm_cdf": lambda x, loc=0, scale=1: normal((x - loc) / scale),
    "norm_ppf": lambda q, loc=0, scale=1: loc + scale * mp.sqrt(2) * mp.erfinv(2 * q - 1),
    "norm_logpdf": lambda x, loc=0, scale=1: mp.log(mp.npdf(x, loc, scale)),
    "t_logpdf": student,
    "gamma_logpdf": lambda x, a, loc=0, scale=1: mp.log(gamma_density(x, a, loc, scale)),
    "beta_logpdf": lambda x, a, b, loc=0, scale=1: mp.log(beta_density(x, a, b, loc, scale)),
    "chi2_logpdf": lambda x, df, loc=0, scale=1: mp.log(gamma_density(x, df / 2, loc, 2 * scale)),
    "poisson_logpmf": lambda k, mu, loc=0: mp.log(mu ** (k - loc) * mp.exp(-mu) / mp.gamma(k - loc + 1)),
    "floor": mp.floor,
    "ceil": mp.ceil,
    "round": rint,
    "trunc": trunc,
    "mod": lambda x, y: x - y * mp.floor(x / y),
    "sigmoid": logistic,
    "logsigmoid": lambda x: -tail(-x),
    "softplus": tail,
    "logaddexp": lambda x, y: mp.log(mp.exp(x) + mp.exp(y)),
    "xlogy": xlogy,
    "relu": lambda x: max(x, mp.zero),
    "leaky_relu": lambda x, slope=mp.mpf("0.01"): x if x > 0 else slope * x,
    "elu": elu,
    "selu": lambda x: SELU_SCALE * elu(x, SELU_ALPHA),
    "hardtanh": lambda x: min(max(x, -mp.one), mp.one),
    "hardsigmoid": lambda x: min(max(x + 3, mp.zero), mp.mpf(6)) / 6,
    "silu": lambda x: x * logistic(x),
    "mish": lambda x: x * mp.tanh(tail(x)),
    "detach": lambda x: x,
    "ste": lambda value, surrogate: surrogate,
}

# Operations that only graphs have, with their parameters.
INNER: dict[str, Callable[..., Any]] = {
    "power": lambda x, n: x**n,
    "pow_derivative": pow_derivative,
    "polygamma": lambda x, n: mp.polygamma(n, x),
    "gamma_density": lambda a, x: x ** (a - 1) * mp.exp(-x) * mp.rgamma(a),
    "beta_density": lambda a, b, x: x ** (a - 1) * (1 - x) ** (b - 1) / mp.beta(a, b),
    "lambertw": lambda x, k: mp.lambertw(x, k),
    "erf_derivative": lambda x: 2 * mp.exp(-x * x) / mp.sqrt(mp.pi),
    "sinc_derivative": lambda x, n: mp.diff(NUMBERS["sinc"], x, n),
    "div_no_nan": div_no_nan,
    "direction_cosine": lambda x, y: div_no_nan(x, mp.sqrt(x * x + y * y)),
    "step": lambda x: mp.mpf(int(x > 0)),
    "tie_step": lambda x, y: (sign(x - y) + 1) / 2,
    "named": lambda x, id: x,
    "less": lambda x, y: x < y,
    "less_equal": lambda x, y: x <= y,
    "greater": lambda x, y: x > y,
    "greater_equal": lambda x, y: x >= y,
    "equal": lambda x, y: x == y,
    "not_equal": lambda x, y: x != y,
    "and": lambda x, y: bool(x and y),
    "or": lambda x, y: bool(x or y),
    "not": lambda x: not x,
    "where": lambda condition, x, y: x if condition else y,
}


def entry_by_entry(function: Callable[..., Any], *xs: Any, **params: Any) -> Any:
    """A function of numbers on arrays, with NumPy's broadcasting; no value at a pole is NaN."""

    def one(*entries: Any) -> Any:
        try:
            found = function(*entries, **params)
        except (ValueError, ZeroDivisionError, OverflowError):
            return mp.nan
        if isinstance(found, mp.mpc):
            return found.real if found.imag == 0 else mp.nan
        return found

    arrays = np.broadcast_arrays(*xs) if len(xs) > 1 else [np.asarray(xs[0])]
    made = np.empty(arrays[0].shape, dtype=object)
    for place in np.ndindex(*made.shape):
        made[place] = one(*(array[place] for array in arrays))
    return made


# --- the walk --------------------------------------------------------------------------------------------


def value(output: Node, point: Mapping[str, Any]) -> Any:
    """The entries of a node at a point; raises Missing for an operation without a row."""
    from tests.support.reference_arrays import STEPS

    known: dict[Node, Any] = {}
    for node in reachable([output]):
        primitive = node.primitive
        if primitive is LEAF:
            known[node] = exact(point[node.params["name"]])
        elif primitive is CONSTANT:
            constant = node.params["value"]
            entry = bool(constant) if node.type.kind == "bool" else number(constant)
            made = np.empty(node.type.shape, dtype=object)
            made.fill(entry)
            known[node] = made
        elif primitive is DATA:
            data = node.builder.data[node.params["digest"]]
            flat = np.array(data.flat, dtype=object) if isinstance(data, ArrayData) else data
            known[node] = exact(flat.reshape(node.type.shape))
        else:
            xs = [known[arg] for arg in node.args]
            if primitive.name in STEPS:
                known[node] = np.asarray(STEPS[primitive.name](*xs, **node.params), dtype=object)
            elif primitive.name in INNER or primitive.name in NUMBERS:
                function = INNER.get(primitive.name) or NUMBERS[primitive.name]
                known[node] = entry_by_entry(function, *xs, **node.params)
            else:
                raise Missing(primitive.name)
    return known[output]


# --- derivatives of a value, by its own differences --------------------------------------------------------


def along(function: Callable[[Any], Any], *orders: int) -> Any:
    """The mixed derivative of `function(t1, t2, ...)` at 0 by central differences of order 1 or 2 in each."""
    stencils = {1: ((-1, -half), (1, half)), 2: ((-1, 1), (0, -2), (1, 1))}
    terms = [((), mp.one)]
    for order in orders:
        terms = [((*at, i), w * share) for at, w in terms for i, share in stencils[order]]
    total = mp.zero
    for at, weight in terms:
        total += weight * function([i * STEP for i in at])
    return total / STEP ** sum(orders)


def moved(point: Mapping[str, Any], directions: Sequence[Mapping[str, Any]], by: Sequence[Any]) -> dict[str, Any]:
    """The point, moved by some amounts along some directions; a direction names the leaves that move."""
    return moving(point, directions)(by)


def moving(
    point: Mapping[str, Any], directions: Sequence[Mapping[str, Any]]
) -> Callable[[Sequence[Any]], dict[str, Any]]:
    """`moved` as a function of the amounts; the point and the directions become mpmath numbers once."""
    start = {name: exact(values) for name, values in point.items()}
    ways = [{name: exact(way) for name, way in direction.items()} for direction in directions]

    def by_amounts(by: Sequence[Any]) -> dict[str, Any]:
        found = dict(start)
        for direction, amount in zip(ways, by, strict=True):
            for name, way in direction.items():
                found[name] = np.asarray(found[name] + way * amount, dtype=object)
        return found

    return by_amounts
