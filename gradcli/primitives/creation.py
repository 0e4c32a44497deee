"""Arrays made from sizes and numbers: zeros, ones, full, eye, arange, linspace, rand, randn.

There is no operand to start from, so a call returns a description that lowering turns into a node: a `Closed` value
(repeated constants), exact `ArrayData`, or a `Recipe` for an array too large or too random to write down. Sizes are
checked before anything is made.
"""

from __future__ import annotations

from fractions import Fraction
from math import ceil, inf
from typing import TYPE_CHECKING, Any

from gradcli.base.diagnostics import error
from gradcli.graph.arrays import ArrayData
from gradcli.graph.domain import REAL
from gradcli.graph.primitive import Closed as ClosedValue
from gradcli.graph.primitive import Operand, composite
from gradcli.primitives.axes import filled
from gradcli.primitives.broadcasting import stretch
from gradcli.primitives.movement import broadcast, reshape, unslice
from gradcli.primitives.size_arguments import bounded, whole_number, whole_numbers

if TYPE_CHECKING:
    from collections.abc import Callable

    from gradcli.graph.types import Shape

    Size = int | tuple[int, ...]
    Number = int | float | Fraction

WRITTEN_OUT = 100_000  # entries; a longer range becomes a recipe
UNSEEDED = 20_260_000  # with the position of the call, the seed of a random array that names none


class Recipe:
    """An array of floats still to be made: `make(np)` makes it, `key` names its content, so equal keys are equal."""

    __slots__ = ("key", "make", "shape")

    def __init__(self, key: str, shape: Shape, make: Callable[[Any], Any]) -> None:
        self.key = key
        self.shape = shape
        self.make = make

    def __repr__(self) -> str:
        return f"<recipe {self.key}>"


def _sizes(shape: Size, more: tuple[int, ...], function: str) -> Shape:
    """NumPy's one shape, or several sizes; raises GradcliError GC306 for what is no size, GC508 for too many."""
    what = f"a size of {function}"
    return bounded((*whole_numbers(shape, what, 0), *whole_numbers(more, what, 0)))


def constant_array(value: Number, shape: Shape) -> ClosedValue:
    """A number repeated over a shape."""
    entry = ClosedValue(reshape, (value,), {"shape": (1,) * len(shape)})
    return ClosedValue(broadcast, (entry,), {"shape": shape}) if shape else entry


def _zeros(shape: Size, *more: int) -> ClosedValue:
    return constant_array(0, _sizes(shape, more, "zeros"))


def _ones(shape: Size, *more: int) -> ClosedValue:
    return constant_array(1, _sizes(shape, more, "ones"))


def _full(shape: Size, fill_value: Any) -> Any:
    sizes = _sizes(shape, (), "full")
    return stretch(fill_value, sizes) if isinstance(fill_value, Operand) else constant_array(fill_value, sizes)


def _eye(n: int, m: int | None = None, k: int = 0) -> ClosedValue:
    rows, columns = _sizes((n, n if m is None else m), (), "eye")
    whole_number(k, "k")
    count = max(min(rows, columns - k) if k >= 0 else min(rows + k, columns), 0)
    if not count:
        return constant_array(0, (rows, columns))
    ones = constant_array(1, (count,))
    place = {"shape": (rows * columns,), "start": (k if k >= 0 else -k * columns,), "step": (columns + 1,)}
    return ClosedValue(reshape, (ClosedValue(unslice, (ones,), place),), {"shape": (rows, columns)})


def _evenly(start: Number, step: Number, count: int, recipe: Recipe) -> ArrayData | Recipe:
    """Exact numbers where they are few enough to write down."""
    if count > WRITTEN_OUT:
        return recipe
    return ArrayData((count,), [start + i * step for i in range(count)])


def _real(value: Any, what: str) -> Any:
    """A real number, exact unless it is a float; raises GradcliError GC306 for anything else."""
    if isinstance(value, int):
        return Fraction(value)
    if not isinstance(value, (float, Fraction)):
        raise error("GC306", f"{what} must be a number, not {value}")
    return value


def _arange(start: Number, stop: Number | None = None, step: Number = 1) -> ArrayData | Recipe:
    first, last = (0, start) if stop is None else (start, stop)
    low, high, by = (_real(n, "a bound of arange") for n in (first, last, step))
    if by == 0:
        raise error("GC306", "the step of arange must not be 0")
    if inf in (abs(low), abs(high)):
        raise error("GC306", f"arange needs finite bounds, not {low} and {high}")
    count = max(ceil((high - low) / by), 0)
    recipe = Recipe(
        f"arange({low}, {high}, {by})",
        bounded((count,)),
        lambda np: float(low) + float(by) * np.arange(count, dtype="float64"),
    )
    return _evenly(low, by, count, recipe)


def _linspace(start: Number, stop: Number, num: int = 50) -> ArrayData | Recipe:
    low, high = _real(start, "a bound of linspace"), _real(stop, "a bound of linspace")
    count = whole_number(num, "the count of linspace", 0)
    if count < 2:
        return ArrayData((count,), [low] * count)
    recipe = Recipe(
        f"linspace({low}, {high}, {count})",
        bounded((count,)),
        lambda np: np.linspace(float(low), float(high), count),
    )
    points = _evenly(low, (high - low) / (count - 1), count, recipe)
    if isinstance(points, ArrayData):  # the last entry is the end itself, as in NumPy
        return ArrayData(points.shape, (*points.flat[:-1], high))
    return points


def _random(name: str, method: str) -> Callable[..., Recipe]:
    def made(*shape: Size, seed: int | None = None, position: int = 0) -> Recipe:
        sizes = _sizes(shape[0] if shape else (), shape[1:], name)  # type: ignore[arg-type]
        entropy = [UNSEEDED, position] if seed is None else whole_number(seed, f"the seed of {name}", 0)
        key = f"{name}({sizes}, {entropy})"

        def make(np: Any) -> Any:
            generator = np.random.Generator(np.random.PCG64(entropy))
            return np.asarray(getattr(generator, method)(sizes))

        return Recipe(key, sizes, make)

    return made


zeros = composite(
    "zeros",
    "An array of zeros.",
    definition=_zeros,
    static=("shape", "more"),
    formula="0, 0, ...",
    examples=[("zeros(2)", [0, 0]), ("zeros((1, 2))", [[0, 0]])],
    traits="every_size",
)
ones = composite(
    "ones",
    "An array of ones.",
    definition=_ones,
    static=("shape", "more"),
    formula="1, 1, ...",
    examples=[("ones(2)", [1, 1]), ("ones(1, 2)", [[1, 1]])],
    traits="every_size",
)
full = composite(
    "full",
    "An array of one number.",
    definition=_full,
    static=("shape",),
    domain=[REAL],
    formula="c, c, ...",
    examples=[("full((2, 1), 3)", [[3], [3]])],
)
zeros_like = composite(
    "zeros_like",
    "Zeros in the shape of an array.",
    definition=lambda x: filled(x, 0, x.shape),
    domain=[REAL],
    formula="0, 0, ...",
    examples=[("zeros_like([1, 2])", [0, 0])],
)
ones_like = composite(
    "ones_like",
    "Ones in the shape of an array.",
    definition=lambda x: filled(x, 1, x.shape),
    domain=[REAL],
    formula="1, 1, ...",
    examples=[("ones_like([1, 2])", [1, 1])],
)
eye = composite(
    "eye",
    "The identity matrix: ones on the k-th diagonal, zeros elsewhere.",
    definition=_eye,
    static=("n", "m", "k"),
    aliases=("identity",),
    formula="1 where i + k = j, else 0",
    examples=[("eye(2)", [[1, 0], [0, 1]]), ("eye(2, 3, 1)", [[0, 1, 0], [0, 0, 1]])],
    names="numpy. torch.",
    traits="every_size",
)
arange = composite(
    "arange",
    "Numbers from start in steps of step, up to but excluding stop.",
    definition=_arange,
    static=("start", "stop", "step"),
    formula="start, start + step, ...",
    examples=[("arange(3)", [0, 1, 2]), ("arange(1, 2, 0.25)", [1, 1.25, 1.5, 1.75])],
    names="numpy. torch.",
    traits="every_size",
)
linspace = composite(
    "linspace",
    "num evenly spaced values from start to stop, both included.",
    definition=_linspace,
    static=("start", "stop", "num"),
    formula="start, ..., stop",
    examples=[("linspace(0, 1, 3)", [0, 0.5, 1])],
)
rand = composite(
    "rand",
    "Random numbers, uniform between 0 and 1; equal seeds give equal arrays.",
    definition=_random("rand", "random"),
    static=("shape", "seed", "position"),
    formula="u ~ U(0, 1)",
    examples=[("shape(rand(2, 3, seed=1))[1]", 3)],
)
randn = composite(
    "randn",
    "Random numbers, normal with mean 0 and variance 1; equal seeds give equal arrays.",
    definition=_random("randn", "standard_normal"),
    static=("shape", "seed", "position"),
    formula="z ~ N(0, 1)",
    examples=[("shape(randn(2, 3, seed=1))[0]", 2)],
)
