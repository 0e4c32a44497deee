"""Where the large and the small entries are: argmax, argmin, argsort, max, min, sort, median.

A maximum shares its gradient evenly among entries that tie; a sort is stable. Exact readings decide every order by
signs of differences.
"""

from __future__ import annotations

from functools import cmp_to_key
from typing import TYPE_CHECKING, Any

from gradcli.diagnostics import error
from gradcli.graph.domain import REAL, Closed
from gradcli.graph.primitive import Kink, Primitive, composite, nondifferentiable
from gradcli.graph.types import Type, size_of
from gradcli.primitives.axes import (
    filled,
    kept,
    lanes_of,
    merged,
    part,
    require_entries,
    reshaped,
)
from gradcli.primitives.broadcasting import together
from gradcli.primitives.comparison import cast, where
from gradcli.primitives.movement import (
    concat,
    normalize_axes,
    normalize_axis,
    permute,
    reduced_shape,
    sum_,
    take_along,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    Axes = tuple[int, ...]

_SAMPLE = [(Closed(-2, 2), (3, 4))]

# --- exact readings: lanes of entries, ordered by signs of differences -------------------------------------


def _first_best(f: Any, lane: list[Any], sign: int) -> int:
    best = 0
    for i, entry in enumerate(lane):
        if i and f.sign(entry - lane[best]) * sign > 0:
            best = i
    return best


def _best_entries(sign: int) -> Callable[..., Any]:
    def entries(f: Any, x: Any, *, axis: Axes) -> Any:
        lanes = lanes_of(f, x, axis)
        return f.array([lane[_first_best(f, lane, sign)] for lane in lanes], reduced_shape(x.shape, axis))

    return entries


def _arg_entries(sign: int) -> Callable[..., Any]:
    def entries(f: Any, x: Any, *, axis: int) -> Any:
        lanes = lanes_of(f, x, (axis,))
        return f.array([f.number(_first_best(f, lane, sign)) for lane in lanes], reduced_shape(x.shape, (axis,)))

    return entries


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
    found: list[Any] = [None] * len(flat)
    for source, place in zip(back, flat, strict=True):
        found[source] = f.number(place)
    return f.array(found, x.shape)


# --- where the best entry is -------------------------------------------------------------------------------


def gaps(x: Any, axis: int) -> Any:
    """The differences of neighbours in sorted order along an axis: zero where two entries tie."""
    size = x.shape[axis]
    if size < 2:
        return filled(x, 1, ())
    ordered = sort(x, axis=axis)
    return part(ordered, axis, 1, size - 1) - part(ordered, axis, 0, size - 1)


def _lead_gap(x: Any, axes: Axes, at_top: bool) -> Any:
    """The gap between the best entry and the next one."""
    between = gaps(merged(x, axes), -1)
    if not between.shape:
        return between
    size = between.shape[-1]
    return part(between, -1, size - 1 if at_top else 0, 1)


def _arg(name: str, summary: str, sign: int, example: int) -> Primitive:
    def call(x: Any, axis: int | None = None, keepdims: bool = False) -> Any:
        shape = x.shape
        axes = normalize_axes(axis, len(shape))
        require_entries(x, axes, name)
        if axis is None or not axes:
            found = declared(reshaped(x, (size_of(shape),)), axis=-1)
        else:
            found = declared(x, axis=axes[0])
        return kept(found, shape, axes, keepdims)

    declared = nondifferentiable(
        name,
        summary,
        impl=lambda xp, x, *, ranks, axis: getattr(xp, name)(x, axis=axis),
        entries=_arg_entries(sign),
        type_rule=lambda x, *, axis: Type("int", reduced_shape(x.shape, (axis,))),
        arity=1,
        call=call,
        static=("axis", "keepdims"),
        domain=[REAL],
        sample=_SAMPLE,
        kinks=[
            Kink(
                lambda x, *, axis: _lead_gap(x, (axis,), sign > 0),
                "where the two best entries tie",
                "the first of them",
                discontinuity=True,
            )
        ],
        formula=f"the first i with x[i] = {name[3:]}(x)",
        examples=[(f"{name}([1, 3, 2])", example)],
    )
    return declared


argmax = _arg("argmax", "The position of the largest entry, the first of several; flattened without axis.", 1, 1)
argmin = _arg("argmin", "The position of the smallest entry, the first of several; flattened without axis.", -1, 0)

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
            "the order in which they stand",
            discontinuity=True,
        )
    ],
    formula="i with x[i] ascending",
    examples=[("argsort([3, 1, 2])", [1, 2, 0])],
)

# --- max and min -----------------------------------------------------------------------------------------------


def _tie_entries(sign: int) -> Callable[..., Any]:
    def entries(f: Any, x: Any, *, axis: int) -> Any:
        """Whether each entry equals the best one, which is not compared with itself."""
        flat: list[bool] = []
        for lane in lanes_of(f, x, (axis,)):
            best = _first_best(f, lane, sign)
            flat.extend(i == best or f.sign(entry - lane[best]) == 0 for i, entry in enumerate(lane))
        return f.array(flat, x.shape)

    return entries


def _ties(name: str, extreme: str, sign: int) -> Primitive:
    def value(xp: Any, x: Any, *, ranks: Any, axis: int) -> Any:
        best = getattr(xp, extreme)(x, axis=axis, keepdims=True)
        return (x == best) | ((x != x) & (best != best))  # NaN is the best entry, and its own tie

    return nondifferentiable(
        name,
        f"Whether an entry is the {extreme} along its axis, or equal to it.",
        impl=value,
        entries=_tie_entries(sign),
        type_rule=lambda x, *, axis: Type("bool", x.shape),
        arity=1,
        internal=True,
        domain=[REAL],
        sample=_SAMPLE,
    )


is_max = _ties("is_max", "max", 1)
is_min = _ties("is_min", "min", -1)


def _extreme(name: str, summary: str, sign: int, pair: str, ties: Primitive) -> Primitive:
    def definition(x: Any, *, axis: Axes) -> Any:
        """The mean of the entries that equal the best one, so that the gradient is shared among them."""
        lanes = merged(x, axis)
        tied = ties(lanes, axis=-1)
        total = sum_(where(tied, lanes, 0), axis=(-1,))
        return total / sum_(cast(tied, kind="float"), axis=(-1,))

    def call(*xs: Any, axis: int | Axes | None = None, keepdims: bool = False) -> Any:
        if not xs:
            raise error("GC205", f"{name} needs an array, or several operands", help=f"write {name}(x) or {name}(a, b)")
        if len(xs) > 1:
            best = xs[0]
            for x in xs[1:]:
                best = x.named(pair)(*together(best, x, verb=f"take the {name} of"))
            return best
        x = xs[0]
        axes = normalize_axes(axis, len(x.shape))
        require_entries(x, axes, name)
        return kept(declared(x, axis=axes), x.shape, axes, keepdims) if axes else x

    declared = composite(
        name,
        summary,
        definition=definition,
        impl=lambda xp, x, *, ranks, axis: getattr(xp, name)(x, axis=axis),
        entries=_best_entries(sign),
        type_rule=lambda x, *, axis: Type(x.kind, reduced_shape(x.shape, axis)),
        arity=1,
        call=call,
        static=("axis", "keepdims"),
        domain=[REAL],
        sample=_SAMPLE,
        kinks=[
            Kink(
                lambda x, *, axis: _lead_gap(x, axis, sign > 0),
                "where the two best entries tie",
                "an equal share for each of them",
            )
        ],
        formula=f"{name} over entries of x",
        examples=[
            (f"{name}([1, 3, 2])", 3 if sign > 0 else 1),
            (f"{name}(2, 5)", 5 if sign > 0 else 2),
            (f"{name}([[1, 2], [4, 3]], axis=0)", [4, 3] if sign > 0 else [1, 2]),
        ],
        node=f"{name.capitalize()}Backward1",
    )
    return declared


max_ = _extreme(
    "max", "The largest entry, over all axes or some; of several operands, entry by entry.", 1, "maximum", is_max
)
min_ = _extreme(
    "min", "The smallest entry, over all axes or some; of several operands, entry by entry.", -1, "minimum", is_min
)


def _over_axes(name: str, summary: str, extreme: Primitive, example: int) -> Primitive:
    def definition(x: Any, axis: int | Axes | None = None, keepdims: bool = False) -> Any:
        assert extreme.call is not None
        return extreme.call(x, axis=axis, keepdims=keepdims)

    return composite(
        name,
        summary,
        definition=definition,
        static=("axis", "keepdims"),
        domain=[REAL],
        sample=_SAMPLE,
        formula=f"{extreme.name} over entries of x",
        examples=[(f"{name}([1, 3, 2])", example)],
        node=f"{name.capitalize()}Backward0",
    )


amax = _over_axes("amax", "The largest entry, over all axes or some.", max_, 3)
amin = _over_axes("amin", "The smallest entry, over all axes or some.", min_, 1)

# --- sort and median ---------------------------------------------------------------------------------------


def _along(primitive: Primitive, x: Any, axis: int | None) -> Any:
    """An operation along one axis; the flattened array for None."""
    if axis is None:
        return primitive(reshaped(x, (size_of(x.shape),)), axis=-1)
    return primitive(x, axis=normalize_axis(axis, len(x.shape))) if x.shape else x


sort: Primitive = composite(
    "sort",
    "The entries in ascending order, along the last axis unless told otherwise; equal ones keep their order.",
    definition=lambda x, *, axis: take_along(x, argsort(x, axis=axis), axis=axis),
    impl=lambda xp, x, *, ranks, axis: xp.sort(x, axis=axis),
    arity=1,
    call=lambda x, axis=-1: _along(sort, x, axis),
    static=("axis",),
    domain=[REAL],
    sample=_SAMPLE,
    kinks=[Kink(lambda x, *, axis: gaps(x, axis), "where two entries tie", "the order in which they stand: stable")],
    formula="x[argsort(x)]",
    examples=[("sort([3, 1, 2])", [1, 2, 3])],
    node="SortBackward0",
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
    kinks=[Kink(_median_gaps, "where a middle entry ties with its neighbour", "the order of a stable sort")],
    formula="the middle of sort(x)",
    examples=[("median([3, 1, 2])", 2), ("median([4, 1, 2, 3])", 2.5)],
    node="MedianBackward0",
)
