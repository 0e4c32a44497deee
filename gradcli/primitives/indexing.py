"""Entries chosen by position: x[i, 1:3, ::-1, None, [0, 2]], take and gather.

What is known while a script is lowered becomes slices and static positions; an array of data becomes a gather, whose
positions are checked when the program runs. The rules are NumPy's, for mixed indices too.
"""

from __future__ import annotations

from gradcli.base.diagnostics import error
from gradcli.graph.domain import REAL
from gradcli.graph.primitive import Operand, composite
from gradcli.graph.types import broadcast_shapes, size_of
from gradcli.primitives.axes import (
    described,
    permuted,
    positions_of,
    reshaped,
)
from gradcli.primitives.broadcasting import stretch, unequal
from gradcli.primitives.movement import reshape, slice_
from gradcli.primitives.positions import take_along, take_static
from gradcli.primitives.size_arguments import normalize_axis, whole_number

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from gradcli.graph.types import Shape

    Item = int | slice | tuple[Any, ...] | Operand | None


def index(x: Any, items: tuple[Any, ...]) -> Any:
    """x[items], as NumPy reads it.

    An item is an int, a slice of ints, None (a new axis), a tuple of ints (nested for more axes), an operand of
    positions, or an Ellipsis. Raises GradcliError GC305 for a position outside its axis and for too many items.

    >>> index(x, (0, slice(None, None, -1)))    # x[0, ::-1]  # doctest: +SKIP
    """
    if len(items) == 1 and type(items[0]) is int and x.shape:  # x[i] in a loop
        return _row(x, items[0])
    starts: list[Any] = []
    steps, sizes = [], []
    advanced: list[tuple[int, Any]] = []
    layout: list[tuple[str, int]] = []
    axis = 0  # of x
    for item in _complete(x, items):
        if item is None:
            layout.append(("new", 0))
            continue
        size = x.shape[axis]
        if isinstance(item, slice):
            start, stop, step = item.indices(size)
            count = len(range(start, stop, step))
            starts.append(start if count else 0)
            steps.append(step if count else 1)
            sizes.append(count)
            layout.append(("kept", axis))
        else:
            starts.append(0)
            steps.append(1)
            sizes.append(size)
            layout.append(("chosen", axis))
            advanced.append((axis, item if isinstance(item, Operand) else _wrapped(item, size, axis, x)))
        axis += 1
    if any(not isinstance(item, int) for _, item in advanced):
        if tuple(sizes) != x.shape or any(step < 0 for step in steps):
            x = slice_(x, start=tuple(starts), step=tuple(steps), size=tuple(sizes))
        return _advanced(x, layout, advanced)
    for at, position in advanced:  # plain numbers: a slice of one entry each
        starts[at], sizes[at] = position, 1
    if tuple(sizes) != x.shape or any(step < 0 for step in steps):
        x = slice_(x, start=tuple(starts), step=tuple(steps), size=tuple(sizes))
    return reshaped(x, tuple(1 if kind == "new" else sizes[at] for kind, at in layout if kind != "chosen"))


def _row(x: Any, position: int) -> Any:
    """x[position]."""
    count, *rest = x.shape
    first = _wrapped(position, count, 0, x)
    if count != 1:
        x = slice_(x, start=(first, *[0] * len(rest)), step=(1,) * len(x.shape), size=(1, *rest))
    return reshaped(x, tuple(rest))


def _complete(x: Any, items: tuple[Any, ...]) -> list[Any]:
    """The items with a slice for every axis that they do not mention."""
    used = sum(item is not None and item is not Ellipsis for item in items)
    rank = len(x.shape)
    if used > rank:
        raise error("GC305", f"{used} indices for {described(x)}, which has {rank} {'axis' if rank == 1 else 'axes'}")
    rest = [slice(None)] * (rank - used)
    for at, item in enumerate(items):
        if item is Ellipsis:
            return [*items[:at], *rest, *items[at + 1 :]]
    return [*items, *rest]


def _wrapped(item: Any, size: int, axis: int, x: Any) -> Any:
    """Positions counted from the start, nested as they came."""
    if isinstance(item, (tuple, list)):
        return tuple(_wrapped(entry, size, axis, x) for entry in item)
    whole_number(item, "an index")
    if not -size <= item < size:
        raise error(
            "GC305",
            f"index {item} is outside axis {axis} of {described(x)}, which has {size} entries",
            help=f"the last entry is [{size - 1}] or [-1]" if size else None,
        )
    return item + size if item < 0 else item


def _advanced(x: Any, layout: list[tuple[str, int]], advanced: list[tuple[int, Any]]) -> Any:
    """The chosen axes moved to the front and made one, taken from, and put where NumPy puts them."""
    shapes = [_nested_shape(item) for _, item in advanced]
    shape = broadcast_shapes(*shapes)
    if shape is None:
        texts = " and ".join(f"[{','.join(map(str, own))}]" for own in shapes)
        raise error("GC305", f"the index arrays of shapes {texts} do not fit together", sizes=unequal(*shapes))
    rank = len(x.shape)
    chosen = [axis for axis, item in advanced if not isinstance(item, Operand)]
    data = [axis for axis, item in advanced if isinstance(item, Operand)]
    others = [at for kind, at in layout if kind == "kept"]
    x = permuted(x, tuple(axis - rank for axis in (*chosen, *data, *others)))
    rest = tuple(x.shape[len(chosen) + len(data) :])
    count = size_of(shape)
    items = dict(advanced)
    if chosen:
        sizes = x.shape[: len(chosen)]
        x = reshaped(x, (size_of(sizes), *x.shape[len(chosen) :]))
        x = take_static(x, indices=_raveled([_spread(items[a], shape) for a in chosen], sizes), axis=-len(x.shape))
    for axis in data:
        positions = reshaped(stretch(positions_of(items[axis]), shape), (count,))
        x = _taken_per_row(x, positions) if chosen or axis != data[0] else _taken(x, positions, -len(x.shape))
    x = reshaped(x, (*shape, *rest))
    return _arranged(x, layout, shape, rest)


def _taken(x: Any, positions: Any, axis: int) -> Any:
    """Entries along an axis at positions that are data, in one axis."""
    shape = list(x.shape)
    shape[len(shape) + axis] = positions.shape[0]
    raised = [1] * len(shape)
    raised[len(shape) + axis] = positions.shape[0]
    return take_along(x, stretch(reshaped(positions, tuple(raised)), tuple(shape)), axis=axis)


def _taken_per_row(x: Any, positions: Any) -> Any:
    """From each x[i], the entry at positions[i] of its first axis."""
    rest = x.shape[2:]
    count = positions.shape[0]
    raised = reshape(positions, shape=(count, 1, *(1 for _ in rest)))
    rows = take_along(x, stretch(raised, (count, 1, *rest)), axis=-len(rest) - 1)
    return reshape(rows, shape=(count, *rest))


def _arranged(x: Any, layout: list[tuple[str, int]], shape: Shape, rest: Shape) -> Any:
    """The axes of the chosen entries stand where the indices stood if these were neighbours, else in front."""
    places = [i for i, (kind, _) in enumerate(layout) if kind == "chosen"]
    together = places == list(range(places[0], places[0] + len(places)))
    before = sum(kind == "kept" for kind, _ in layout[: places[0]]) if together else 0
    rank = len(x.shape)
    if before and shape:
        front = len(shape)
        order = (*range(front, front + before), *range(front), *range(front + before, rank))
        x = permuted(x, tuple(i - rank for i in order))
    sizes = iter(rest)
    result: list[int] = [] if together else list(shape)
    for i, (kind, _) in enumerate(layout):
        if kind == "new":
            result.append(1)
        elif kind == "kept":
            result.append(next(sizes))
        elif together and i == places[0]:
            result.extend(shape)
    return reshaped(x, tuple(result))


def _nested_shape(item: Any) -> Shape:
    if isinstance(item, int):
        return ()
    if isinstance(item, Operand):
        return item.shape
    inner = {_nested_shape(row) for row in item}
    if len(inner) > 1:
        raise error("GC310", "the rows of an index list have different lengths")
    return (len(item), *(inner.pop() if inner else ()))


def _spread(item: Any, shape: Shape) -> list[int]:
    """Nested positions, broadcast to a shape, in C order."""
    own = _nested_shape(item)
    flat: list[Any] = [item] if isinstance(item, int) else list(item)
    for _ in own[1:]:
        flat = [entry for row in flat for entry in row]
    padded = (1,) * (len(shape) - len(own)) + own
    positions = []
    for number in range(size_of(shape)):
        place, stride = 0, 1
        for size, mine in zip(reversed(shape), reversed(padded), strict=True):
            number, along = divmod(number, size)
            place += along * stride if mine > 1 else 0
            stride *= mine
        positions.append(flat[place])
    return positions


def _raveled(columns: list[list[int]], sizes: Shape) -> tuple[int, ...]:
    """Positions along several axes as positions along the one that they make together."""
    flat = columns[0]
    for column, size in zip(columns[1:], sizes[1:], strict=True):
        flat = [i * size + j for i, j in zip(flat, column, strict=True)]
    return tuple(flat)


# --- take and gather ----------------------------------------------------------------------------------------


def _take(x: Any, indices: Any, axis: int | None = None) -> Any:
    if axis is None:
        x, at = reshaped(x, (size_of(x.shape),)), 0
    else:
        at = len(x.shape) + normalize_axis(axis, len(x.shape))
    return index(x, (*(slice(None),) * at, indices))


take = composite(
    "take",
    "The entries at given positions along an axis; without an axis, the array is flattened first.",
    definition=_take,
    static=("axis",),
    domain=[REAL],
    formula="x[indices]",
    examples=[("take([10, 20, 30], [2, 0])", [30, 10]), ("take([[1, 2], [3, 4]], 1, axis=1)", [2, 4])],
    node="TakeBackward0",
)


def _gather(x: Any, indices: Any, axis: int) -> Any:
    at = normalize_axis(axis, len(x.shape))
    if isinstance(indices, (tuple, list)):
        raise error("GC305", "gather needs an array of positions, with as many axes as x")
    positions = positions_of(indices)
    rank = len(x.shape)
    ours = tuple(1 if i - rank == at else n for i, n in enumerate(x.shape))
    theirs = tuple(1 if i - rank == at else n for i, n in enumerate(positions.shape))
    shape = broadcast_shapes(ours, theirs) if len(positions.shape) == rank else None
    if shape is None:
        raise error(
            "GC305",
            f"gather along axis {axis} cannot combine {described(x)} with positions {described(positions)}",
            help="both need the same axes; x[i] or take(x, i, axis=...) takes whole rows",
            sizes=unequal(ours, theirs),
        )
    position = rank + at

    def full(size: int) -> Shape:
        return (*shape[:position], size, *shape[position + 1 :])

    return take_along(stretch(x, full(x.shape[at])), stretch(positions, full(positions.shape[at])), axis=at)


gather = composite(
    "gather",
    "For each position in an index array, the entry of x there along an axis.",
    definition=_gather,
    static=("axis",),
    aliases=("take_along_axis",),
    domain=[REAL],
    formula="y[i, j] = x[i, index[i, j]]",
    examples=[("gather([[1, 2], [3, 4]], [[1], [0]], axis=1)", [[2], [3]])],
    node="GatherBackward0",
)
