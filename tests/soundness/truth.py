"""What is true of a formula at a point, from its values alone: differences on each side with 200 digits, by mpmath.

Nothing of gradcli is imported. A formula is a text that Python reads too: its numbers are exact decimals, its functions
those of `FUNCTIONS`, arrays are NumPy arrays of mpmath's numbers.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any, NamedTuple

import mpmath
import numpy as np
from mpmath import mp

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

DIGITS = 200
STEP = mpmath.mpf(10) ** -60  # two points that differ by less are one point
SAME = mpmath.mpf(10) ** -40  # relative: two slopes that are nearer are equal
TINY = mpmath.mpf(10) ** -100  # relative: two values that are nearer are equal
ROUNDING = mpmath.mpf(10) ** -100  # a slope that is smaller beside the value comes from rounding
SMALL_LIMIT = mpmath.mpf(10) ** -20  # relative, of slopes that go to 0
ZERO = mpmath.mpf(10) ** -26  # a slope that is smaller, and shrinks with the step, is 0: that of abs(x)**1.5


def entrywise(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of numbers, of arrays too."""
    whole = np.vectorize(function, otypes=[object])

    def call(*xs: Any) -> Any:
        return whole(*xs) if any(isinstance(x, np.ndarray) for x in xs) else function(*xs)

    return call


def _sorted(x: Any) -> Any:
    return np.array(sorted(x), dtype=object)


def _median(x: Any) -> Any:
    ordered = sorted(x)
    half = len(ordered) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2


def _norm(x: Any) -> Any:
    return mp.sqrt(sum(entry * entry for entry in np.ravel(x)))


def _softmax(x: Any) -> Any:
    raised = entrywise(mp.exp)(x)
    return raised / raised.sum()


def _clamp(x: Any, low: Any, high: Any) -> Any:
    return low if x < low else high if x > high else x


def _log(x: Any) -> Any:
    if not x:
        raise ValueError("log(0)")
    return mp.log(x)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{name: entrywise(getattr(mp, name)) for name in
       ("sin", "cos", "tan", "exp", "sqrt", "tanh", "sinh", "cosh", "atan", "asinh", "erf", "expm1", "log1p", "acos",
        "asin", "floor", "hypot", "atan2")},
    "log": entrywise(_log),
    "cbrt": entrywise(lambda x: mp.sign(x) * mp.cbrt(abs(x))),
    "abs": entrywise(abs),
    "sign": entrywise(mp.sign),
    "relu": entrywise(lambda x: max(x, mp.mpf(0))),
    "elu": entrywise(lambda x: x if x > 0 else mp.expm1(x)),
    "leaky_relu": entrywise(lambda x: x if x > 0 else x / 100),
    "sigmoid": entrywise(lambda x: 1 / (1 + mp.exp(-x))),
    "softplus": entrywise(lambda x: mp.log1p(mp.exp(x))),
    "maximum": entrywise(max),
    "minimum": entrywise(min),
    "clamp": entrywise(_clamp),
    "sum": lambda x: np.sum(x),
    "mean": lambda x: np.sum(x) / x.size,
    "prod": lambda x: np.prod(x),
    "var": lambda x: np.sum((x - np.sum(x) / x.size) ** 2) / x.size,
    "max": lambda x: max(np.ravel(x)),
    "min": lambda x: min(np.ravel(x)),
    "sort": _sorted,
    "median": _median,
    "norm": _norm,
    "softmax": _softmax,
    "logsumexp": lambda x: mp.log(np.sum(entrywise(mp.exp)(x))),
    "cumsum": lambda x: np.cumsum(x),
    "len": lambda x: mp.mpf(len(x)),
}  # fmt: skip


class Entries(np.ndarray[Any, Any]):
    """An array of mpmath's numbers. A number times an array is slow without it: mpmath words an error, and drops it."""

    def __repr__(self) -> str:
        return "Entries"

    def __array_wrap__(self, array: Any, context: Any = None, return_scalar: bool = False) -> Any:
        return array[()] if return_scalar else array.view(Entries)


def exact(value: Any) -> Any:
    """A float, or an array of floats, as mpmath has it."""
    if isinstance(value, mp.mpf):
        return value
    if isinstance(value, (float, int)):
        return mp.mpf(value)
    flat = [mp.mpf(float(entry)) for entry in np.ravel(value)]
    return np.array(flat, dtype=object).reshape(np.shape(value)).view(Entries)


class Exactly(ast.NodeTransformer):
    """Makes numbers exact decimals, and evaluates of the branches of `where` only what is chosen."""

    def __init__(self, text: str) -> None:
        self.text = text

    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        written = ast.Constant(ast.get_source_segment(self.text, node))
        return ast.copy_location(ast.Call(ast.Name("N_", ast.Load()), [written], []), node)

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        node.value = self.visit(node.value)
        return node

    def visit_Call(self, node: ast.Call) -> ast.expr:
        self.generic_visit(node)
        if isinstance(node.func, ast.Name) and node.func.id == "where":
            none = ast.arguments([], [], None, [], [], None, [])
            node.args[1:] = [ast.Lambda(none, branch) for branch in node.args[1:]]
        return node


def where(condition: Any, x: Callable[[], Any], y: Callable[[], Any]) -> Any:
    if isinstance(condition, np.ndarray):
        return np.where(condition, x(), y())
    return x() if condition else y()


class Formula:
    """A formula that can be evaluated: `text` in the language of gradcli, or several lines that end in one."""

    def __init__(self, text: str) -> None:
        *lines, last = text.split("\n")
        code = "\n".join([*lines, f"result_ = {last}"])
        self.text = text
        self.code = compile(ast.fix_missing_locations(Exactly(code).visit(ast.parse(code))), "<formula>", "exec")

    def __call__(self, values: Mapping[str, Any]) -> Any:
        space = {**FUNCTIONS, **values, "N_": mp.mpf, "pi": mp.pi, "range": lambda n: range(int(n)), "where": where}
        exec(self.code, space)
        return space["result_"]


class Slopes(NamedTuple):
    """Of a function along a direction: limits of the value and slopes on both sides; None for a slope that is none."""

    left: Any
    right: Any
    jump: bool

    def equal(self) -> bool:
        """Whether the function has a derivative along the direction."""
        if self.jump or self.left is None or self.right is None:
            return False
        return near(self.left, self.right) or max(abs(self.left), abs(self.right)) < TINY**0.25


def near(x: Any, y: Any, tolerance: Any = SAME) -> bool:
    """Whether two numbers are equal up to rounding."""
    return bool(abs(x - y) <= tolerance * max(abs(x), abs(y)))


def one_side(f: Callable[[Any], Any], h: Any) -> tuple[Any, Any, Any]:
    """The limit of f at 0, how exact it is, and the slope on the side of h; None for one that depends on the step."""

    def seen(step: Any) -> tuple[Any, Any]:
        a, b, c, d = (f(k * step) for k in (1, 2, 3, 4))
        return 4 * a - 6 * b + 4 * c - d, (-26 * a + 57 * b - 42 * c + 11 * d) / (6 * step)

    (_, first), (limit, second) = seen(h), seen(h / 64)
    if near(first, second) or abs(first - second) < TINY**0.5:
        return limit, TINY, second if near(first, second) else mp.mpf(0)
    last = seen(h / 4096)[1]
    change, rest = first - second, second - last
    if abs(rest) < abs(change) / 2 and abs(change) < ZERO:  # as of abs(x)**1.5, whose slopes go to 0 with the step
        slope = last - rest**2 / (change - rest)
        return limit, mpmath.mpf(10) ** -50, mp.mpf(0) if abs(slope) < SMALL_LIMIT * abs(rest) else slope
    return limit, mpmath.mpf(10) ** -6, None


def along(f: Formula, values: Mapping[str, Any], direction: Mapping[str, Any]) -> Slopes | None:
    """The slopes of a formula of one number along a direction; None where it has no real value beside the point."""

    def moved(t: Any) -> Any:
        value = f({**values, **{name: values[name] + t * way for name, way in direction.items()}})
        if not isinstance(value, mp.mpf):
            raise ValueError("not real")
        return value

    try:
        center = moved(mp.mpf(0))
        (low, below, left), (high, above, right) = (one_side(moved, side * STEP) for side in (-1, 1))
    except (ValueError, ZeroDivisionError, TypeError):
        return None
    size = 1 + max(abs(center), abs(low), abs(high))
    left, right = (
        mp.mpf(0) if slope is not None and abs(slope) < ROUNDING * abs(center) else slope for slope in (left, right)
    )
    return Slopes(left, right, bool(abs(low - center) > below * size or abs(high - center) > above * size))


class Truth(NamedTuple):
    """The gradient of a formula by one name: an array, or None where there is no derivative; both sides' slopes."""

    gradient: Any
    slopes: list[Slopes | None]


def truth(f: Formula, values: Mapping[str, Any], names: tuple[str, ...], turns: int = 2) -> Truth:
    """The gradient by some names together, flat; random directions show whether it is one."""
    with mp.workdps(DIGITS):
        values = {name: exact(value) for name, value in values.items()}
        entries = [(name, place) for name in names for place in np.ndindex(np.shape(values[name]))]
        slopes, gradient = [], []
        for name, place in entries:
            unit = np.full(np.shape(values[name]), mp.mpf(0), dtype=object)
            unit[place] = mp.mpf(1)
            slope = along(f, values, {name: unit if np.shape(values[name]) else mp.mpf(1)})
            slopes.append(slope)
            if slope is None or not slope.equal():
                return Truth(None, slopes)
            gradient.append((slope.left + slope.right) / 2)
        random = np.random.default_rng(len(entries))
        for _ in range(turns if len(entries) > 1 else 0):
            way = {name: exact(random.integers(-8, 9, np.shape(values[name])) + 0.5) for name in names}
            slope = along(f, values, way)
            if slope is None or not slope.equal():
                return Truth(None, [slope])
            flat = [step for name in names for step in np.ravel(way[name])]
            total = sum(a * b for a, b in zip(gradient, flat, strict=True))
            if not near(total, slope.right) and abs(total - slope.right) > ZERO:
                return Truth(None, [slope])
        return Truth(np.array(gradient, dtype=object), slopes)
