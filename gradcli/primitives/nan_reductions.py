"""Reductions that leave NaN out, as NumPy's do: nansum, nanmean, nanvar, nanmax and the rest.

Exact readings have no NaN: there each is the reduction of all entries.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Any

from gradcli.graph.domain import REAL, Closed
from gradcli.graph.primitive import Primitive, composite, nondifferentiable
from gradcli.graph.types import size_of
from gradcli.primitives.axes import filled, kept, stretched_back
from gradcli.primitives.comparison import not_equal, where
from gradcli.primitives.extremes import amax, amin
from gradcli.primitives.movement import sum_
from gradcli.primitives.recurrence import prod
from gradcli.primitives.reductions import root_or_zero
from gradcli.primitives.size_arguments import normalize_axes, whole_number

if TYPE_CHECKING:
    from collections.abc import Callable

    Axes = tuple[int, ...]

_SAMPLE = [(Closed(-2, 2), (3, 4))]

present = nondifferentiable(
    "present",
    "1 for a number, 0 for NaN. Exact readings take 1.",
    impl=lambda xp, x, *, ranks: xp.where(x == x, xp.ones_like(x), xp.zeros_like(x)),
    entries=lambda f, x: f.array([f.number(1)] * size_of(x.shape), x.shape),
    type_rule=lambda x: x,
    arity=1,
    internal=True,
    closed=lambda x: filled(x, 1, x.shape),
)


def _numbers(x: Any, instead: float) -> Any:
    """The entries, with another number in place of NaN."""
    return where(not_equal(present(x), 0), x, instead)


def _average(x: Any, axes: Axes, ddof: int = 0) -> Any:
    """The sum over axes of the numbers, divided by how many they are less `ddof`."""
    count = sum_(present(x), axis=axes)
    return sum_(_numbers(x, 0), axis=axes) / (count - whole_number(ddof, "ddof") if ddof else count)


def _squares(x: Any, axes: Axes, ddof: int) -> Any:
    away = x - stretched_back(_average(x, axes), x.shape, axes)
    return _average(away * away, axes, ddof)


def _over(reduction: Callable[[Any, Axes], Any]) -> Callable[..., Any]:
    def definition(x: Any, axis: int | Axes | None = None, keepdims: bool = False) -> Any:
        axes = normalize_axes(axis, len(x.shape))
        return kept(reduction(x, axes), x.shape, axes, keepdims)

    return definition


def _spread(root: Callable[[Any], Any]) -> Callable[..., Any]:
    def definition(x: Any, axis: int | Axes | None = None, ddof: int = 0, keepdims: bool = False) -> Any:
        axes = normalize_axes(axis, len(x.shape))
        return kept(root(_squares(x, axes, ddof)), x.shape, axes, keepdims)

    return definition


def _declared(name: str, definition: Callable[..., Any], example: float, *static: str, traits: str = "") -> Primitive:
    plain = name.removeprefix("nan")
    return composite(
        name,
        f"{plain} of the entries that are numbers: NaN is left out.",
        definition=definition,
        static=("axis", *static, "keepdims"),
        domain=[REAL],
        sample=_SAMPLE,
        formula=f"{plain} over entries of x that are numbers",
        examples=[(f"{name}([1, nan, 3])", example), (f"{name}([1, 3])", example)],
        names="numpy.",
        traits=traits,
    )


nansum = _declared("nansum", _over(lambda x, axes: sum_(_numbers(x, 0), axis=axes)), 4)
nanprod = _declared("nanprod", _over(lambda x, axes: prod(_numbers(x, 1), axis=axes) if axes else _numbers(x, 1)), 3)
nanmax = _declared("nanmax", _over(lambda x, axes: amax(_numbers(x, -inf), axis=axes)), 3, traits="real_only")
nanmin = _declared("nanmin", _over(lambda x, axes: amin(_numbers(x, inf), axis=axes)), 1, traits="real_only")
nanmean = _declared("nanmean", _over(_average), 2)
nanvar = _declared("nanvar", _spread(lambda square: square), 1, "ddof")
nanstd = _declared("nanstd", _spread(root_or_zero), 1, "ddof")
