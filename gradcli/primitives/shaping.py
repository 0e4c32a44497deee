"""Functions that give the same entries another shape or order of axes; all of them expand to a few movements.

Axes follow NumPy: a script counts them from either end, the graph stores them negative.
"""

from __future__ import annotations

from gradcli.base.diagnostics import error
from gradcli.graph.domain import REAL, Closed
from gradcli.graph.exact import number_text
from gradcli.graph.primitive import composite
from gradcli.graph.types import broadcast_shapes, size_of
from gradcli.primitives.axes import described, part, permuted, reshaped, reversed_along
from gradcli.primitives.axes import diagonal as main_diagonal
from gradcli.primitives.broadcasting import stretch, together
from gradcli.primitives.indexing import index
from gradcli.primitives.joining import joined
from gradcli.primitives.movement import sum_
from gradcli.primitives.size_arguments import bounded, normalize_axes, normalize_axis, whole_number, whole_numbers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from gradcli.graph.types import Shape

    Axes = int | tuple[int, ...] | None

__all__ = ["index"]  # lowering reads x[...] with it

_MATRIX = [(Closed(-2, 2), (2, 3))]


def _transpose(x: Any, axes: int | tuple[int, ...] | None = None, *more: int) -> Any:
    rank = len(x.shape)
    if axes is None:
        return permuted(x, tuple(range(-1, -rank - 1, -1)))
    order = (*whole_numbers(axes, "an axis"), *more)
    wanted = tuple(normalize_axis(axis, rank) for axis in order)
    if sorted(wanted) != list(range(-rank, 0)):
        raise error(
            "GC303", f"transpose needs each of the {rank} axes of {described(x)} once, not {number_text(order)}"
        )
    return permuted(x, wanted)


transpose = composite(
    "transpose",
    "The array with its axes in another order; by default the order is reversed.",
    definition=_transpose,
    static=("axes", "more"),
    aliases=("permute_dims", "permute"),
    domain=[REAL],
    sample=_MATRIX,
    formula="x.T",
    examples=[("transpose([[1, 2], [3, 4]])", [[1, 3], [2, 4]])],
    node="PermuteBackward0",
    traits="every_size",
)


def _swapaxes(x: Any, axis1: int, axis2: int) -> Any:
    rank = len(x.shape)
    order = list(range(-rank, 0))
    first, second = normalize_axis(axis1, rank), normalize_axis(axis2, rank)
    order[first], order[second] = order[second], order[first]
    return permuted(x, tuple(order))


swapaxes = composite(
    "swapaxes",
    "Two axes exchanged.",
    definition=_swapaxes,
    static=("axis1", "axis2"),
    aliases=("swapdims",),
    domain=[REAL],
    formula="x with axis1 and axis2 exchanged",
    examples=[("swapaxes([[1, 2], [3, 4]], 0, 1)", [[1, 3], [2, 4]])],
    node="TransposeBackward0",
)


def _moveaxis(x: Any, source: int | tuple[int, ...], destination: int | tuple[int, ...]) -> Any:
    rank = len(x.shape)
    moved = [normalize_axis(axis, rank) for axis in whole_numbers(source, "an axis")]
    places = [normalize_axis(axis, rank) for axis in whole_numbers(destination, "an axis")]
    if len(moved) != len(places) or len(set(moved)) != len(moved) or len(set(places)) != len(places):
        raise error("GC303", f"moveaxis needs a place for each axis, once: not {source} and {destination}")
    order = [axis for axis in range(-rank, 0) if axis not in moved]
    for place, axis in sorted(zip(places, moved, strict=True)):
        order.insert(place + rank, axis)
    return permuted(x, tuple(order))


moveaxis = composite(
    "moveaxis",
    "The array with some axes moved to other places; the others keep their order.",
    definition=_moveaxis,
    static=("source", "destination"),
    aliases=("movedim",),
    domain=[REAL],
    formula="x with the axes at source moved to destination",
    examples=[("moveaxis([[[1, 2, 3]], [[4, 5, 6]]], 0, -1)", [[[1, 4], [2, 5], [3, 6]]])],
    node="PermuteBackward0",
)


def _squeeze(x: Any, axis: Axes = None) -> Any:
    rank = len(x.shape)
    if axis is None:
        return reshaped(x, tuple(n for n in x.shape if n != 1))
    axes = normalize_axes(axis, rank)
    if any(x.shape[i] != 1 for i in axes):
        raise error("GC303", f"squeeze removes axes of size 1 only, and {described(x)} has none at {axis}")
    return reshaped(x, tuple(n for i, n in enumerate(x.shape) if i - rank not in axes))


squeeze = composite(
    "squeeze",
    "The array without its axes of size 1, or without the given ones.",
    definition=_squeeze,
    static=("axis",),
    domain=[REAL],
    sample=[(Closed(-2, 2), (1, 3, 1))],
    formula="x without axes of size 1",
    examples=[("squeeze([[1, 2]])", [1, 2])],
    node="SqueezeBackward0",
)


def _expand_dims(x: Any, axis: int | tuple[int, ...]) -> Any:
    wanted = whole_numbers(axis, "an axis")
    rank = len(x.shape) + len(wanted)
    new = [normalize_axis(i, rank) + rank for i in wanted]
    if len(set(new)) != len(new):
        raise error("GC303", f"axis {wanted} names one axis twice")
    sizes = iter(x.shape)
    return reshaped(x, tuple(1 if i in new else next(sizes) for i in range(rank)))


expand_dims = composite(
    "expand_dims",
    "New axes of size 1.",
    definition=_expand_dims,
    static=("axis",),
    aliases=("unsqueeze",),
    domain=[REAL],
    formula="x with new axes of size 1",
    examples=[("expand_dims([1, 2], 1)", [[1], [2]])],
    node="UnsqueezeBackward0",
)


def _broadcast_to(x: Any, shape: int | Shape) -> Any:
    wanted = whole_numbers(shape, "a size", 0)
    if broadcast_shapes(x.shape, wanted) != wanted:
        raise error("GC301", f"cannot broadcast {described(x)} to [{','.join(map(str, wanted))}]")
    return stretch(x, bounded(wanted))


broadcast_to = composite(
    "broadcast_to",
    "An array repeated to fill a shape, by NumPy's broadcasting rules.",
    definition=_broadcast_to,
    static=("shape",),
    domain=[REAL],
    formula="x repeated along new axes and axes of size 1",
    examples=[("broadcast_to([1, 2], (2, 2))", [[1, 2], [1, 2]])],
    node="ExpandBackward0",
)

flatten = composite(
    "flatten",
    "All entries in one axis, in row-major (C) order.",
    definition=lambda x: reshaped(x, (size_of(x.shape),)),
    aliases=("ravel",),
    domain=[REAL],
    sample=_MATRIX,
    formula="the entries of x in C order",
    examples=[("flatten([[1, 2], [3, 4]])", [1, 2, 3, 4])],
    node="ViewBackward0",
)

array = composite(
    "array",
    "The array itself; a list is an array already.",
    definition=lambda x: x,
    aliases=("asarray", "tensor", "as_tensor", "Tensor", "copy", "clone", "contiguous", "item", "numpy", "cpu")
    + ("float64", "float32", "float", "double"),
    domain=[REAL],
    sample=_MATRIX,
    formula="x",
    examples=[("array([1, 2])", [1, 2])],
    node="CloneBackward0",
)


def _flip(x: Any, axis: Axes = None) -> Any:
    for i in normalize_axes(axis, len(x.shape)):
        x = reversed_along(x, i)
    return x


flip = composite(
    "flip",
    "The entries in the opposite order, along all axes or the given ones.",
    definition=_flip,
    static=("axis",),
    domain=[REAL],
    sample=_MATRIX,
    formula="x[::-1]",
    examples=[("flip([1, 2, 3])", [3, 2, 1])],
    node="FlipBackward0",
    traits="every_size",
)


def _roll(x: Any, shift: int | tuple[int, ...], axis: Axes = None) -> Any:
    shifts = whole_numbers(shift, "a shift")
    if axis is None:
        return reshaped(_rolled(reshaped(x, (size_of(x.shape),)), sum(shifts), -1), x.shape)
    axes = whole_numbers(axis, "an axis")
    if len(shifts) == 1:
        shifts *= len(axes)
    if len(axes) == 1:
        axes *= len(shifts)
    if len(axes) != len(shifts):
        raise error("GC306", f"roll got {len(shifts)} shifts for {len(axes)} axes")
    for amount, i in zip(shifts, axes, strict=True):
        x = _rolled(x, amount, normalize_axis(i, len(x.shape)))
    return x


def _rolled(x: Any, shift: int, axis: int) -> Any:
    size = x.shape[axis]
    shift = shift % size if size else 0
    if not shift:
        return x
    return joined((part(x, axis, size - shift, shift), part(x, axis, 0, size - shift)), axis)


roll = composite(
    "roll",
    "The entries shifted along an axis; those shifted past the end reappear at the beginning.",
    definition=_roll,
    static=("shift", "axis"),
    domain=[REAL],
    formula="y[i] = x[i - shift]",
    examples=[("roll([1, 2, 3], 1)", [3, 1, 2])],
    node="RollBackward0",
)


def _diagonal(x: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    rank = len(x.shape)
    if rank < 2:
        raise error("GC321", f"diagonal needs a matrix, not {described(x)}", help="diag(x) makes a matrix of a vector")
    first, second = normalize_axis(axis1, rank), normalize_axis(axis2, rank)
    whole_number(offset, "the offset")
    if first == second:
        raise error("GC303", f"diagonal needs two different axes, not {axis1} twice")
    others = (axis for axis in range(-rank, 0) if axis not in (first, second))
    return main_diagonal(permuted(x, (*others, first, second)), offset)


diagonal = composite(
    "diagonal",
    "The diagonal of two axes, the first two by default, along a new last axis.",
    definition=_diagonal,
    static=("offset", "axis1", "axis2"),
    domain=[REAL],
    sample=[(Closed(-2, 2), (3, 3))],
    formula="x[i, i]",
    examples=[("diagonal([[1, 2], [3, 4]])", [1, 4]), ("diagonal([[1, 2], [3, 4]], 1)", [2])],
    node="DiagonalBackward0",
)


def _diff(x: Any, n: int = 1, axis: int = -1) -> Any:
    if not x.shape:
        hint = "a derivative is grad(y, x)"
        raise error("GC303", "diff takes the differences of neighbours in an array, and this is a number", help=hint)
    at = normalize_axis(axis, len(x.shape))
    for _ in range(whole_number(n, "the order of diff", 0)):
        size = x.shape[at]
        if not size:
            return x
        x = part(x, at, 1, size - 1) - part(x, at, 0, size - 1)
    return x


diff = composite(
    "diff",
    "Differences of neighbours along an axis, taken n times.",
    definition=_diff,
    static=("n", "axis"),
    domain=[REAL],
    sample=[(Closed(-2, 2), (3, 4))],
    formula="x[1:] - x[:-1]",
    examples=[("diff([1, 4, 9])", [3, 5]), ("diff([1, 4, 9], 2)", [2])],
    node="DiffBackward0",
    traits="every_size",
)


def _trapezoid(y: Any, x: Any = None, dx: Any = 1, axis: int = -1) -> Any:
    at = normalize_axis(axis, len(y.shape))
    size = y.shape[at]
    heights = (part(y, at, 1, size - 1) + part(y, at, 0, size - 1)) / 2 if size else y
    if x is None:
        return sum_(heights, axis=(at,)) * dx
    steps = _diff(x, axis=at if len(x.shape) > 1 else -1)
    if len(x.shape) == 1:
        steps = reshaped(steps, (*steps.shape, *(1,) * (-1 - at)))
    heights, steps = together(heights, steps, verb="integrate")
    return sum_(heights * steps, axis=(at,))


trapezoid = composite(
    "trapezoid",
    "The integral of samples y by the trapezoidal rule; the samples are at positions x, or dx apart.",
    definition=_trapezoid,
    static=("axis",),
    aliases=("trapz",),
    domain=[REAL, REAL, REAL],
    sample=[(Closed(-2, 2), (4,)), (Closed(-2, 2), (4,))],
    formula="sum of (y[i] + y[i + 1])/2*(x[i + 1] - x[i])",
    examples=[("trapezoid([1, 2, 4])", 4.5), ("trapezoid([[1, 2], [3, 4]], [0, 2], axis=0)", [4, 6])],
)


def _length(x: Any) -> int:
    if not x.shape:
        raise error("GC303", "len needs an array, and this is a scalar")
    size: int = x.shape[0]
    return size


length = composite(
    "len",
    "The size of the first axis: a constant, so it may stand in shapes and loops.",
    definition=_length,
    domain=[REAL],
    formula="n",
    examples=[("len([[1, 2], [3, 4], [5, 6]])", 3)],
    traits="every_size",
)

shape_of = composite(
    "shape",
    "The sizes of all axes: constants, so they may stand in shapes and loops.",
    definition=lambda x: x.shape,
    domain=[REAL],
    formula="(n1, n2, ...)",
    examples=[("shape([[1, 2, 3]])[1]", 3)],
    traits="every_size",
)
