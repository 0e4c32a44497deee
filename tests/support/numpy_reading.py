"""A parsed expression and a table of functions go in, its value by NumPy's own rules comes out; no graph is made.

The tree is read call by call (never by Python's `eval`), so what comes out is what a NumPy user would have got from the same
text: broadcasting, indexing, axes, defaults. With `reference_arrays.CALLS` as the table it computes to 60 digits.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.special
import scipy.stats

from gradcli.language import syntax as s
from gradcli.language.parser import parse
from gradcli.primitives import functions

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

NAMES = {"pi": np.pi, "e": np.e, "inf": np.inf, "nan": np.nan}

# NumPy and SciPy under our names, where they have another one or none.
ELSEWHERE: dict[str, Callable[..., Any]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "neg": np.negative,
    "pow": np.power,
    "atan2": np.arctan2,
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
    "i0": scipy.special.i0,
    "jn": scipy.special.jv,
    "yn": scipy.special.yv,
    "lambertw": lambda x, k=0: _real(scipy.special.lambertw(x, k)),
    "lgamma": scipy.special.gammaln,
    "sigmoid": scipy.special.expit,
    "logsigmoid": scipy.special.log_expit,
    "softplus": lambda x: np.logaddexp(0, x),
    "relu": lambda x: np.maximum(x, 0),
    "clamp": np.clip,
    "flatten": np.ravel,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "cummax": lambda x, axis=-1: np.maximum.accumulate(x, axis),
    "cummin": lambda x, axis=-1: np.minimum.accumulate(x, axis),
    "interp": lambda x, xp, fp: np.interp(x, xp, fp) if np.all(np.diff(xp) > 0) else fp[0] + np.sum(
        np.diff(fp) / np.diff(xp) * (np.minimum(np.maximum(np.expand_dims(x, -1), xp[:-1]), xp[1:]) - xp[:-1]), -1),
    "max": lambda *xs, **kw: np.max(xs[0], **kw) if len(xs) == 1 else np.max(np.broadcast_arrays(*xs), axis=0),
    "min": lambda *xs, **kw: np.min(xs[0], **kw) if len(xs) == 1 else np.min(np.broadcast_arrays(*xs), axis=0),
    "reshape": lambda x, shape, *more: np.reshape(x, (shape, *more) if more else shape),
    "transpose": lambda x, axes=None, *more: np.transpose(x, (axes, *more) if more else axes),
    "split": lambda x, sections, axis=0: tuple(np.split(x, sections, axis)),
    "array_split": lambda x, sections, axis=0: tuple(np.array_split(x, sections, axis)),
    "vsplit": lambda x, sections: tuple(np.vsplit(x, sections)),
    "hsplit": lambda x, sections: tuple(np.hsplit(x, sections)),
    "dsplit": lambda x, sections: tuple(np.dsplit(x, sections)),
    "tensordot": lambda x, y, axes=2: np.tensordot(
        x, y, axes if isinstance(axes, int) else [[int(one) for one in each] for each in axes]
    ),
    "take": lambda x, indices, axis=None: np.take(x, np.asarray(indices, dtype=int), axis),
    "gather": lambda x, indices, axis: np.take_along_axis(x, np.asarray(indices, dtype=int), axis),
    "detach": lambda x: x,
    "ste": lambda value, surrogate: value,
    "len": len,
    "shape": np.shape,
    "norm": np.linalg.norm,
    "det": np.linalg.det,
    "logdet": lambda x: np.log(np.linalg.det(x)),
    "slogdet": lambda x: tuple(np.linalg.slogdet(x)),
    "inv": np.linalg.inv,
    "solve": np.linalg.solve,
    "qr": lambda x, mode="reduced": np.linalg.qr(x, mode) if mode == "r" else tuple(np.linalg.qr(x, mode)),
    "cholesky": lambda x: np.linalg.cholesky((x + np.swapaxes(x, -1, -2)) / 2),
    "eigvalsh": lambda x: np.linalg.eigvalsh((x + np.swapaxes(x, -1, -2)) / 2),
    "svdvals": lambda x: np.linalg.svd(x, compute_uv=False),
    "pinv": np.linalg.pinv,
    **{name: getattr(np.fft, name)
       for name in ("fft", "ifft", "rfft", "irfft", "fft2", "fftshift", "fftfreq", "rfftfreq")},
    "eigh": lambda x: _canonical(*np.linalg.eigh((x + np.swapaxes(x, -1, -2)) / 2)),
    "svd": lambda x, full_matrices=True, compute_uv=True: (
        _canonical_svd(*np.linalg.svd(x, False)) if compute_uv else np.linalg.svd(x, compute_uv=False)
    ),
    "matrix_power": np.linalg.matrix_power,
    "expm": lambda x: scipy.linalg.expm(x),
    "cross": lambda x, y, axis=-1: np.cross(x, y, axis=axis),
    "softmax": lambda x, axis=-1: scipy.special.softmax(x, axis),
    "log_softmax": lambda x, axis=-1: scipy.special.log_softmax(x, axis),
    "logsumexp": lambda x, axis=None, keepdims=False: np.log(np.sum(np.exp(x), axis=axis, keepdims=keepdims)),
    "gelu": lambda x, approximate="none": (
        x * scipy.special.ndtr(x)
        if approximate == "none"
        else 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))
    ),
    "silu": lambda x: x * scipy.special.expit(x),
    "mish": lambda x: x * np.tanh(np.log1p(np.exp(x))),
    "elu": lambda x, alpha=1: np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0))),
    "selu": lambda x: 1.0507009873554804934193349852946 * np.where(
        x > 0, x, 1.6732632423543772848170429916717 * np.expm1(np.minimum(x, 0))
    ),
    "leaky_relu": lambda x, slope=0.01: np.where(x > 0, x, slope * np.asarray(x)),
    "hardtanh": lambda x: np.clip(x, -1, 1),
    "hardsigmoid": lambda x: np.clip(np.asarray(x) + 3, 0, 6) / 6,
    "zeros": lambda shape, *more: np.zeros((shape, *more) if more else shape),
    "ones": lambda shape, *more: np.ones((shape, *more) if more else shape),
    "mse_loss": lambda x, y: np.mean((x - y) ** 2),
    "l1_loss": lambda x, y: np.mean(np.abs(x - y)),
    "huber_loss": lambda x, y: np.mean(scipy.special.huber(1, x - y)),
    "binary_cross_entropy": lambda x, y: -np.mean(scipy.special.xlogy(y, x) + scipy.special.xlog1py(1 - y, -x)),
    "binary_cross_entropy_with_logits": lambda x, y: np.mean(np.logaddexp(0, x) - x * y),
    "cross_entropy": lambda x, y: _chosen(scipy.special.log_softmax(x, -1), y),
    "nll_loss": lambda x, y: _chosen(x, y),
    "kl_div": lambda x, y: np.mean(scipy.special.rel_entr(y, np.exp(x))),
    **{
        f"{name}_{method}": getattr(getattr(scipy.stats, name), method)
        for name in ("norm", "t", "gamma", "beta", "chi2")
        for method in ("logpdf", "pdf", "cdf", "ppf")
    },
    "poisson_logpmf": lambda k, mu, loc=0: (
        scipy.special.xlogy(k - loc, mu) - scipy.special.gammaln(k - loc + 1) - mu
    ),
    "dirichlet_logpdf": lambda x, alpha: (
        np.sum(scipy.special.xlogy(alpha - 1, x.T).T, axis=0)
        + scipy.special.gammaln(np.sum(alpha)) - np.sum(scipy.special.gammaln(alpha))
    ),
    "multivariate_normal_logpdf": scipy.stats.multivariate_normal.logpdf,
    "cosine_similarity": lambda x, y, axis=-1: np.sum(x * y, axis)
    / (np.linalg.norm(x, axis=axis) * np.linalg.norm(y, axis=axis)),
}  # fmt: skip


def _real(values: Any) -> Any:
    """The real numbers among complex ones."""
    return np.where(np.imag(values) == 0, np.real(values), np.nan)


def _signs(vectors: Any) -> Any:
    """The sign of the product of each column with falling weights: which of v and -v a script gets."""
    return np.where(0.618 ** np.arange(vectors.shape[-2]) @ vectors < 0, -1, 1)


def _canonical(values: Any, vectors: Any) -> Any:
    return values, vectors * _signs(vectors)


def _canonical_svd(u: Any, s: Any, vh: Any) -> Any:
    return u * _signs(u), s, _signs(u)[:, None] * vh


def _chosen(logs: Any, target: Any) -> Any:
    """Minus the average log-probability of labels, or under probabilities of the same shape."""
    target = np.asarray(target)
    if target.shape == logs.shape:
        return -np.mean(np.sum(target * logs, axis=-1))
    return -np.mean(np.take_along_axis(logs, target.astype(int)[..., None], -1))


def numpy_function(name: str) -> Callable[..., Any] | None:
    """What NumPy or SciPy have for a function of ours; None where they have nothing."""
    for module in (np, scipy.special):
        found = ELSEWHERE.get(name) or getattr(module, name, None)
        if callable(found):
            return found  # type: ignore[no-any-return]
    return None


class NumpyTable(dict[str, Any]):
    """Functions by our names, looked up when they are first asked for."""

    def __missing__(self, name: str) -> Any:
        found = numpy_function(name)
        if found is None:
            raise KeyError(name)
        self[name] = found
        return found


FLOATS: Mapping[str, Any] = NumpyTable()


class Numpy:
    """How arrays are made and combined; a peer with arrays of its own has another one."""

    add, sub, mul, div, pow, matmul = np.add, np.subtract, np.multiply, np.divide, np.power, np.matmul
    less, less_equal, greater, greater_equal = np.less, np.less_equal, np.greater, np.greater_equal
    equal, not_equal = np.equal, np.not_equal
    logical_and, logical_or, logical_not = np.logical_and, np.logical_or, np.logical_not
    transpose, stack, asarray = np.transpose, np.stack, np.asarray


parsed = cache(parse)  # differences read one text at many points


def read(
    text: str,
    point: Mapping[str, Any],
    table: Mapping[str, Any] = FLOATS,
    number: Any = np.float64,
    arrays: Any = Numpy,
) -> Any:
    """The value of a script's last expression; raises KeyError for a function that the table lacks.

    `number` makes the table's numbers from exact ones; integers stay Python's until arithmetic meets them. `arrays`
    says how arrays are combined.
    """
    scope: dict[str, Any] = {
        name: number(value) if number is not np.float64 else value for name, value in NAMES.items()
    }
    scope.update(point)
    reader = _Reader(scope, table, number, arrays)
    result: Any = None
    for statement in parsed(text).statements:
        if isinstance(statement, s.Assign):
            value = reader.read(statement.value)
            targets = [target.id for target in statement.targets]
            scope.update(zip(targets, value if len(targets) > 1 else [value], strict=True))
            result = value
        elif isinstance(statement, s.ExpressionStatement):
            result = reader.read(statement.value)
        else:
            raise TypeError(f"this reader knows no {type(statement).__name__}")
    return result


class _Reader:
    def __init__(self, scope: dict[str, Any], table: Mapping[str, Any], number: Any, arrays: Any) -> None:
        self.scope = scope
        self.table = table
        self.number = number
        self.arrays = arrays
        self.exact = arrays is Numpy and number is not np.float64
        self.names = functions()

    def read(self, node: Any) -> Any:
        found: Any = getattr(self, f"read_{type(node).__name__.lower()}")(node)
        return found

    def value(self, x: Any) -> Any:
        """An operand of arithmetic: every number is a float."""
        if isinstance(x, (int, Fraction)) and not isinstance(x, np.generic):
            return self.number(Fraction(x))
        return x.astype(np.float64) if isinstance(x, (np.ndarray, np.generic)) and x.dtype.kind in "bi" else x

    def read_name(self, node: s.Name) -> Any:
        return None if node.id == "None" else self.scope[node.id]

    def read_string(self, node: s.String) -> str:
        return node.text

    def read_unary(self, node: s.Unary) -> Any:
        x = self.read(node.operand)
        if node.op == "not":
            return self.arrays.logical_not(self.value(x) != 0)
        return -x if node.op == "-" else x

    def read_binary(self, node: s.Binary) -> Any:
        x, y = self.value(self.read(node.left)), self.value(self.read(node.right))
        arrays = self.arrays
        if node.op in ("and", "or"):
            return (arrays.logical_and if node.op == "and" else arrays.logical_or)(x != 0, y != 0)
        if self.exact and node.op in ("**", "/"):
            return self.table["pow" if node.op == "**" else "div"](x, y)
        signs = {
            "+": arrays.add,
            "-": arrays.sub,
            "*": arrays.mul,
            "/": arrays.div,
            "**": arrays.pow,
            "@": arrays.matmul,
        }
        return signs[node.op](x, y)

    def read_compare(self, node: s.Compare) -> Any:
        values = [self.value(self.read(operand)) for operand in node.operands]
        arrays = self.arrays
        signs = {
            "<": arrays.less,
            "<=": arrays.less_equal,
            ">": arrays.greater,
            ">=": arrays.greater_equal,
            "==": arrays.equal,
            "!=": arrays.not_equal,
        }
        links = [signs[op](left, right) for op, left, right in zip(node.ops, values, values[1:], strict=False)]
        result = links[0]
        for link in links[1:]:
            result = arrays.logical_and(result, link)
        return result

    def read_call(self, node: s.Call) -> Any:
        function = self.table[self.names[node.function.id].name]
        args = [self._operand(self.read(arg)) for arg in node.args]
        keywords = {keyword.name: self.read(keyword.value) for keyword in node.keywords}
        return function(*args, **keywords)

    def _operand(self, x: Any) -> Any:
        """NumPy computes with truth values in half precision; in the language they are numbers."""
        return x.astype(np.float64) if isinstance(x, (np.ndarray, np.generic)) and x.dtype == bool else x

    def read_subscript(self, node: s.Subscript) -> Any:
        value = self.read(node.value)
        items = tuple(self._item(item) for item in node.items)
        if isinstance(value, tuple):
            return value[items[0]]
        return (np.asarray(value) if self.arrays is Numpy else value)[items]

    def _item(self, item: Any) -> Any:
        if isinstance(item, s.Slice):
            parts = (item.lower, item.upper, item.step)
            return slice(*(None if part is None else int(self.read(part)) for part in parts))
        if isinstance(item, s.NewAxis):
            return None
        found = self.read(item)
        return None if found is None else int(found) if np.ndim(found) == 0 else np.asarray(found).astype(int)

    def read_transpose(self, node: s.Transpose) -> Any:
        return self.arrays.transpose(self.read(node.value))

    def read_list(self, node: s.List) -> Any:
        entries = [self.arrays.asarray(self.value(self.read(item))) for item in node.items]
        return self.arrays.stack(entries) if entries else np.zeros(0)

    def read_tuple(self, node: s.Tuple) -> Any:
        return tuple(self.read(item) for item in node.items)

    def read_number(self, node: s.Number) -> Any:
        return node.value.numerator if node.value.denominator == 1 else self.number(node.value)
