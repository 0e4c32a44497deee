"""Sorted order: argsort, sort, median; a sort is stable, and exact readings decide it by signs of differences."""

from __future__ import annotations

from functools import cmp_to_key

from gradcli.graph.domain import REAL, Closed
from gradcli.graph.primitive import Kink, Primitive, composite, nondifferentiable
from gradcli.graph.types import Type, size_of
from gradcli.primitives.axes import filled, kept, lanes_of, merged, part, require_entries, reshaped
from gradcli.primitives.movement import concat, permute
from gradcli.primitives.positions import take_along
from gradcli.primitives.size_arguments import normalize_axes, normalize_axis, reduced_shape

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Axes = tuple[int, ...]

_SAMPLE = [(Closed(-2, 2), (3, 4))]


def _argsort_entries(f: Any, x: Any, *, axis: int) -> Any:
    def compared(a: tuple[int, Any], b: tuple[int, Any]) -> int:
        side: int = f.sign(a[1] - b[1])
        return side

    flat: list[int] = []
    for lane in lanes_of(f, x, (axis,)):
        flat.extend(i for i, _ in sorted(enumerate(lane), key=cmp_to_key(compared)))
    rank = len(x.shape)
    moved = (*(i for i in range(-rank, 0) if i != axis), axis)
    back = f.positions(permute, x.shape, axes=moved)
    places: list[Any] = [None] * len(flat)
    for source, place in zip(back, flat, strict=True):
        places[source] = f.number(place)
    return f.array(places, x.shape)


def gaps(x: Any, axis: int) -> Any:
    """The differences of neighbours in sorted order along an axis: zero where two entries tie."""
    size = x.shape[axis]
    if size < 2:
        return filled(x, 1, ())
    ordered = sort(x, axis=axis)
    return part(ordered, axis, 1, size - 1) - part(ordered, axis, 0, size - 1)


argsort: Primitive = nondifferentiable(
    "argsort",
    "The positions of the entries in ascending order; equal entries keep their order.",
    impl=lambda xp, x, *, ranks, axis: xp.argsort(x, axis=axis, stable=True),
    entries=_argsort_entries,
    type_rule=lambda x, *, axis: Type("int", x.shape),
    arity=1,
    call=lambda x, axis=-1: _along(argsort, x, axis),
    static=("axis",),
    domain=[REAL],
    sample=_SAMPLE,
    kinks=[
        Kink(
            lambda x, *, axis: gaps(x, axis),
            "where two entries tie",
            "that of a stable sort",
            discontinuity=True,
        )
    ],
    formula="i with x[i] ascending",
    examples=[("argsort([3, 1, 2])", [1, 2, 0])],
    traits="gives_positions every_size",
)

# --- sort and median ---------------------------------------------------------------------------------------


def _along(primitive: Primitive, x: Any, axis: int | None) -> Any:
    """An operation along one axis; the flattened array for None."""
    if axis is None:
        return primitive(reshaped(x, (size_of(x.shape),)), axis=-1)
    return primitive(x, axis=normalize_axis(axis, len(x.shape))) if x.shape else x


sort: Primitive = composite(
    "sort",
    "The entries in ascending order, along the last axis by default; equal entries keep their order.",
    definition=lambda x, *, axis: take_along(x, argsort(x, axis=axis), axis=axis),
    impl=lambda xp, x, *, ranks, axis: xp.sort(x, axis=axis),
    arity=1,
    call=lambda x, axis=-1: _along(sort, x, axis),
    static=("axis",),
    domain=[REAL],
    sample=_SAMPLE,
    kinks=[Kink(lambda x, *, axis: gaps(x, axis), "where two entries tie", "that of a stable sort")],
    formula="x[argsort(x)]",
    examples=[("sort([3, 1, 2])", [1, 2, 3])],
    node="SortBackward0",
    traits="every_size keeps_whole",
)


def _median_definition(x: Any, *, axis: Axes) -> Any:
    ordered = sort(merged(x, axis), axis=-1)
    size = ordered.shape[-1]
    low, high = part(ordered, -1, (size - 1) // 2, 1), part(ordered, -1, size // 2, 1)
    middle = low if size % 2 else (low + high) / 2
    return reshaped(middle, ordered.shape[:-1])


def _median_call(x: Any, axis: int | Axes | None = None, keepdims: bool = False) -> Any:
    axes = normalize_axes(axis, len(x.shape))
    require_entries(x, axes, "median")
    return kept(median(x, axis=axes), x.shape, axes, keepdims) if axes else x


def _median_gaps(x: Any, *, axis: Axes) -> Any:
    """The gaps on both sides of the middle entry, or of the middle two."""
    between = gaps(merged(x, axis), -1)
    if not between.shape:
        return between
    size = between.shape[-1] + 1
    sides = [i for i in ((size - 1) // 2 - 1, size // 2) if 0 <= i < size - 1]
    if not sides:
        return filled(x, 1, ())
    pieces = [part(between, -1, i, 1) for i in sides]
    return pieces[0] if len(pieces) == 1 else concat(*pieces, axis=-1)


median: Primitive = composite(
    "median",
    "The middle entry in sorted order, the mean of the middle two for an even number of entries.",
    definition=_median_definition,
    impl=lambda xp, x, *, ranks, axis: xp.median(x, axis=axis),
    type_rule=lambda x, *, axis: Type(x.kind, reduced_shape(x.shape, axis)),
    arity=1,
    call=_median_call,
    static=("axis", "keepdims"),
    domain=[REAL],
    sample=[(Closed(-2, 2), (5,))],
    kinks=[Kink(_median_gaps, "where a middle entry ties with its neighbour", "that of a stable sort")],
    formula="the middle of sort(x)",
    examples=[("median([3, 1, 2])", 2), ("median([4, 1, 2, 3])", 2.5)],
    node="MedianBackward0",
)
