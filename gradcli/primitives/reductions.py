"""Averages and truth over axes: mean, var, std, any, all; sum itself is the transpose of broadcast."""

from __future__ import annotations

from gradcli.graph.domain import REAL, Closed
from gradcli.graph.primitive import Kink, Primitive, composite, nondifferentiable
from gradcli.graph.types import Type, size_of
from gradcli.primitives.arithmetic import parts
from gradcli.primitives.axes import kept, lanes_of, stretched_back
from gradcli.primitives.comparison import equal, not_equal, where
from gradcli.primitives.movement import sum_
from gradcli.primitives.powers import sqrt
from gradcli.primitives.size_arguments import normalize_axes, reduced_shape, whole_number

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Axes = tuple[int, ...]

_SAMPLE = [(Closed(-2, 2), (3, 4))]


def average(x: Any, axes: Axes, less: int = 0) -> Any:
    """The sum over negative axes, divided by the number of entries less `less`."""
    count = size_of(tuple(x.shape[axis] for axis in axes)) - whole_number(less, "ddof")
    return (sum_(x, axis=axes) if axes else x) / count


def _mean(x: Any, axis: int | Axes | None = None, keepdims: bool = False) -> Any:
    axes = normalize_axes(axis, len(x.shape))
    return kept(average(x, axes), x.shape, axes, keepdims)


mean = composite(
    "mean",
    "The average of the entries, over all axes or some.",
    definition=_mean,
    static=("axis", "keepdims"),
    domain=[REAL],
    sample=_SAMPLE,
    formula="sum(x)/n",
    examples=[("mean([1, 2, 6])", 3), ("mean([[1, 2], [3, 4]], axis=1)", [1.5, 3.5])],
    node="MeanBackward0",
    names="numpy. torch.",
    traits="every_size",
)


def _squares(x: Any, axes: Axes, ddof: int) -> Any:
    """The average square of the distance from the mean."""
    away = x - stretched_back(average(x, axes), x.shape, axes)
    return average(away * away, axes, ddof)


def _both_parts(z: Any, function: Callable[[Any], Any]) -> Any:
    """The sum of a function of the real parts and of the imaginary parts."""
    x, y = parts(z)
    return function(x) + function(y)


def _var(x: Any, axis: int | Axes | None = None, ddof: int = 0, keepdims: bool = False) -> Any:
    axes = normalize_axes(axis, len(x.shape))
    return kept(_squares(x, axes, ddof), x.shape, axes, keepdims)


var = composite(
    "var",
    "The variance: the sum of squared distances from the mean, divided by n - ddof; ddof is 0 by default, as in NumPy.",
    definition=_var,
    static=("axis", "ddof", "keepdims"),
    domain=[REAL],
    sample=_SAMPLE,
    formula="mean((x - mean(x))**2)",
    examples=[("var([1, 2, 6])", 14 / 3), ("var([1, 2, 6], ddof=1)", 7)],
    plane=lambda z, *args, **options: _both_parts(z, lambda x: _var(x, *args, **options)),
    node="VarBackward0",
    names="numpy.",
    traits="every_size",
)


def root_or_zero(square: Any) -> Any:
    """The square root with derivative 0 at 0: a length, which has no gradient where it vanishes."""
    return where(equal(square, 0), 0, sqrt(square))


def _std_value(xp: Any, x: Any, *, ranks: Any, axis: Axes, ddof: int) -> Any:
    count = size_of(tuple(x.shape[i] for i in axis))
    away = xp.abs(x - xp.sum(x, axis=axis, keepdims=True) / count)
    return xp.sqrt(xp.sum(away * away, axis=axis) / (count - ddof))


def _std_call(x: Any, axis: int | Axes | None = None, ddof: int = 0, keepdims: bool = False) -> Any:
    axes = normalize_axes(axis, len(x.shape))
    whole_number(ddof, "ddof")
    return kept(std(x, axis=axes, ddof=ddof), x.shape, axes, keepdims)


std: Primitive = composite(
    "std",
    "The standard deviation: the square root of the variance.",
    definition=lambda x, *, axis, ddof: root_or_zero(_squares(x, axis, ddof)),
    impl=_std_value,
    type_rule=lambda x, *, axis, ddof: Type(x.kind, reduced_shape(x.shape, axis)),
    arity=1,
    call=_std_call,
    static=("axis", "ddof", "keepdims"),
    domain=[REAL],
    sample=_SAMPLE,
    kinks=[Kink(lambda x, *, axis, ddof: std(x, axis=axis, ddof=ddof), "where all entries are equal", "0")],
    formula="sqrt(var(x))",
    examples=[("std([1, 3])", 1)],
    plane=lambda z, *, axis, ddof: root_or_zero(_both_parts(z, lambda x: _squares(x, axis, ddof))),
    node="StdBackward0",
    names="numpy.",
    traits="every_size",
)


def _quantifier(name: str, summary: str, plain: Callable[..., bool], example: int) -> Primitive:
    def call(x: Any, axis: int | Axes | None = None, keepdims: bool = False) -> Any:
        axes = normalize_axes(axis, len(x.shape))
        truth = not_equal(x, 0)
        return kept(declared(truth, axis=axes) if axes else truth, x.shape, axes, keepdims)

    def entries(f: Any, x: Any, *, axis: Axes) -> Any:
        return f.array([plain(lane) for lane in lanes_of(f, x, axis)], reduced_shape(x.shape, axis))

    declared = nondifferentiable(
        name,
        summary,
        impl=lambda xp, x, *, ranks, axis: getattr(xp, name)(x, axis=axis),
        entries=entries,
        type_rule=lambda x, *, axis: Type("bool", reduced_shape(x.shape, axis)),
        arity=1,
        call=call,
        static=("axis", "keepdims"),
        domain=[REAL],
        sample=[None],
        formula=f"{name} entry is not 0",
        examples=[(f"{name}([0, 1])", example)],
    )
    return declared


any_ = _quantifier("any", "Whether some entry is not 0.", any, 1)
all_ = _quantifier("all", "Whether every entry is not 0.", all, 0)
