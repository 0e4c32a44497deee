"""Functions that put arrays together, take them apart and repeat them; all of them expand to a few movements."""

from __future__ import annotations

from gradcli.base.diagnostics import error
from gradcli.graph.domain import REAL
from gradcli.graph.exact import number_text
from gradcli.graph.primitive import composite
from gradcli.graph.types import size_of
from gradcli.primitives.axes import described, part, placed, require_option, reshaped
from gradcli.primitives.broadcasting import stretch
from gradcli.primitives.movement import broadcast, concat, reshape
from gradcli.primitives.positions import take_static
from gradcli.primitives.size_arguments import bounded, few_positions, normalize_axis, whole_number, whole_numbers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any


def joined(xs: Sequence[Any], axis: int) -> Any:
    """Arrays joined along a negative axis; a single one as it is."""
    return xs[0] if len(xs) == 1 else xs[0].bind(concat, tuple(xs), {"axis": axis})


def _rows(arrays: Any, what: str) -> tuple[Any, ...]:
    """Several operands, or the parts of one along its first axis."""
    if not isinstance(arrays, (tuple, list)):
        if not arrays.shape:
            raise error("GC303", f"{what} needs several arrays, not one number", help="write [a, b] or (a, b)")
        rank, count = len(arrays.shape), arrays.shape[0]
        arrays = [reshape(part(arrays, -rank, i, 1), shape=arrays.shape[1:]) for i in range(count)]
    if not arrays:
        raise error("GC322", f"{what} of no arrays")
    return tuple(arrays)


def _concatenate(arrays: Any, axis: int | None = 0) -> Any:
    xs = _rows(arrays, "concatenate")
    if axis is None:
        return joined([reshaped(x, (size_of(x.shape),)) for x in xs], -1)
    rank = len(xs[0].shape)
    if not rank:
        raise error("GC303", "concatenate joins arrays, not numbers", help="write the array [a, b], or stack")
    return joined(xs, normalize_axis(axis, rank))


concatenate = composite(
    "concatenate",
    "Arrays joined along an axis that they have.",
    definition=_concatenate,
    static=("axis",),
    aliases=("concat", "cat"),
    domain=[REAL],
    formula="the entries of each array, one after the other",
    examples=[
        ("concatenate(([1, 2], [3]))", [1, 2, 3]),
        ("concatenate([[[1], [2]], [[3], [4]]])", [[1], [2], [3], [4]]),
    ],
    node="CatBackward0",
    traits="every_size",
)


def _stack(arrays: Any, axis: int = 0) -> Any:
    xs = _rows(arrays, "stack")
    shape = xs[0].shape
    for x in xs:
        if x.shape != shape:
            raise error("GC301", f"cannot stack {described(xs[0])} and {described(x)}")
    at = normalize_axis(axis, len(shape) + 1)
    position = len(shape) + 1 + at
    raised = (*shape[:position], 1, *shape[position:])
    return joined([reshape(x, shape=raised) for x in xs], at)


stack = composite(
    "stack",
    "Arrays of one shape joined along a new axis.",
    definition=_stack,
    static=("axis",),
    domain=[REAL],
    formula="[x, y, ...]",
    examples=[("stack(([1, 2], [3, 4]), axis=1)", [[1, 3], [2, 4]])],
    node="StackBackward0",
)


def _of_rank(x: Any, rank: int) -> Any:
    """NumPy's atleast_1d, atleast_2d and atleast_3d: new axes in front, and a last one to reach three."""
    shape = x.shape
    if rank == 3 and len(shape) == 2:
        return reshaped(x, (*shape, 1))
    if rank == 3 and len(shape) == 1:
        return reshaped(x, (1, *shape, 1))
    return reshaped(x, (1,) * (rank - len(shape)) + shape) if len(shape) < rank else x


def _joined_along(xs: Sequence[Any], axis: int) -> Any:
    rank = len(xs[0].shape)
    if any(len(x.shape) != rank for x in xs):
        odd = next(x for x in xs if len(x.shape) != rank)
        raise error("GC301", f"cannot stack {described(xs[0])} and {described(odd)}")
    return joined(xs, normalize_axis(axis, rank))


vstack = composite(
    "vstack",
    "Arrays one below the other: rows joined along the first axis.",
    definition=lambda arrays: _joined_along([_of_rank(x, 2) for x in _rows(arrays, "vstack")], 0),
    aliases=("row_stack",),
    domain=[REAL],
    formula="[x; y; ...]",
    examples=[("vstack(([1, 2], [3, 4]))", [[1, 2], [3, 4]]), ("vstack(([[1], [2]], [[3]]))", [[1], [2], [3]])],
    node="CatBackward0",
)


def _hstack(arrays: Any) -> Any:
    xs = [_of_rank(x, 1) for x in _rows(arrays, "hstack")]
    return _joined_along(xs, 0 if len(xs[0].shape) == 1 else 1)


hstack = composite(
    "hstack",
    "Arrays side by side: vectors end to end, all others along the second axis.",
    definition=_hstack,
    domain=[REAL],
    formula="[x, y, ...]",
    examples=[("hstack(([1, 2], [3]))", [1, 2, 3]), ("hstack(([[1], [2]], [[3], [4]]))", [[1, 3], [2, 4]])],
    node="CatBackward0",
)


dstack = composite(
    "dstack",
    "Arrays joined along the third axis.",
    definition=lambda arrays: _joined_along([_of_rank(x, 3) for x in _rows(arrays, "dstack")], 2),
    domain=[REAL],
    formula="[x, y, ...] along the third axis",
    examples=[("dstack(([1, 2], [3, 4]))", [[[1, 3], [2, 4]]])],
    node="CatBackward0",
)


def _column_stack(arrays: Any) -> Any:
    xs = [_of_rank(x, 1) for x in _rows(arrays, "column_stack")]
    return _joined_along([reshaped(x, (*x.shape, 1)) if len(x.shape) == 1 else x for x in xs], 1)


column_stack = composite(
    "column_stack",
    "Vectors joined as the columns of a matrix; matrices joined side by side.",
    definition=_column_stack,
    domain=[REAL],
    formula="[x, y, ...].T",
    examples=[
        ("column_stack(([1, 2], [3, 4]))", [[1, 3], [2, 4]]),
        ("column_stack(([1, 2], [[3, 5], [4, 6]]))", [[1, 3, 5], [2, 4, 6]]),
    ],
    node="CatBackward0",
)


def _split(x: Any, sections: int | tuple[int, ...], axis: int = 0) -> tuple[Any, ...]:
    size = x.shape[normalize_axis(axis, len(x.shape))]
    if isinstance(sections, int) and (sections < 1 or size % sections):
        raise error(
            "GC324",
            f"cannot split an axis of {size} entries into {sections} equal parts",
            help="array_split makes parts that differ by one, and split(x, (1,)) cuts at given positions",
        )
    return _array_split(x, sections, axis)


def _array_split(x: Any, sections: int | tuple[int, ...], axis: int = 0) -> tuple[Any, ...]:
    at = normalize_axis(axis, len(x.shape))
    size = x.shape[at]
    if isinstance(sections, int):
        few_positions(whole_number(sections, "the number of parts", 1))
        each, longer = divmod(size, sections)  # the first parts are longer by one
        cuts = [i * each + min(i, longer) for i in range(1, sections)]
    else:
        positions = whole_numbers(sections, "a cut")
        cuts = [min(max(cut + size if cut < 0 else cut, 0), size) for cut in positions]
    parts = []
    for start, stop in zip([0, *cuts], [*cuts, size], strict=True):
        parts.append(part(x, at, min(start, size), max(stop - start, 0)))
    return tuple(parts)


split = composite(
    "split",
    "The parts of an array along an axis: a number of equal parts, or cut at given positions.",
    definition=_split,
    static=("sections", "axis"),
    domain=[REAL],
    formula="x[:i], x[i:j], x[j:]",
    examples=[("split([1, 2, 3, 4], 2)[1]", [3, 4]), ("split([1, 2, 3, 4], (1, 3))[1]", [2, 3])],
    node="SplitBackward0",
)

array_split = composite(
    "array_split",
    "The parts of an array along an axis: a number of nearly equal parts, or cut at given positions.",
    definition=_array_split,
    static=("sections", "axis"),
    aliases=("tensor_split",),
    domain=[REAL],
    formula="x[:i], x[i:j], x[j:]",
    examples=[("array_split([1, 2, 3], 2)[0]", [1, 2]), ("array_split([1, 2, 3, 4], (1, 3))[1]", [2, 3])],
    node="SplitBackward0",
)


def _split_at(rank: int, axis: int, what: str) -> Any:
    def definition(x: Any, sections: int | tuple[int, ...]) -> tuple[Any, ...]:
        if len(x.shape) < rank:
            raise error("GC321", f"{what} needs an array of at least {rank} axes, not {described(x)}")
        return _split(x, sections, min(axis, len(x.shape) - 1))

    return definition


vsplit = composite(
    "vsplit",
    "The parts of an array along its first axis: a number of equal parts, or cut at given positions.",
    definition=_split_at(2, 0, "vsplit"),
    static=("sections",),
    domain=[REAL],
    formula="x[:i], x[i:j], x[j:]",
    examples=[("vsplit([[1, 2], [3, 4]], 2)[1]", [[3, 4]])],
    node="SplitBackward0",
)

hsplit = composite(
    "hsplit",
    "The parts of an array along its second axis; of a vector, along its only axis.",
    definition=_split_at(1, 1, "hsplit"),
    static=("sections",),
    domain=[REAL],
    formula="x[:, :i], x[:, i:j], x[:, j:]",
    examples=[("hsplit([[1, 2], [3, 4]], 2)[1]", [[2], [4]]), ("hsplit([1, 2, 3, 4], (1,))[1]", [2, 3, 4])],
    node="SplitBackward0",
)

dsplit = composite(
    "dsplit",
    "The parts of an array along its third axis.",
    definition=_split_at(3, 2, "dsplit"),
    static=("sections",),
    domain=[REAL],
    formula="x[:, :, :i], x[:, :, i:j], x[:, :, j:]",
    examples=[("dsplit([[[1, 2], [3, 4]]], 2)[1]", [[[2], [4]]])],
    node="SplitBackward0",
)


def _tile(x: Any, reps: int | tuple[int, ...]) -> Any:
    counts = whole_numbers(reps, "a count", 0)
    rank = max(len(counts), len(x.shape))
    counts = (1,) * (rank - len(counts)) + counts
    sizes = (1,) * (rank - len(x.shape)) + x.shape
    between = tuple(n for size in sizes for n in (1, size))
    repeated = tuple(n for pair in zip(counts, sizes, strict=True) for n in pair)
    result = tuple(count * size for count, size in zip(counts, sizes, strict=True))
    return reshaped(stretch(reshaped(x, between), bounded(repeated)), result)


tile = composite(
    "tile",
    "The whole array repeated, reps times along each axis.",
    definition=_tile,
    static=("reps",),
    domain=[REAL],
    formula="[x, x, ...]",
    examples=[("tile([1, 2], 2)", [1, 2, 1, 2]), ("tile([1, 2], (2, 1))", [[1, 2], [1, 2]])],
    node="RepeatBackward0",
)


def _repeat(x: Any, repeats: int | tuple[int, ...], axis: int | None = None) -> Any:
    if axis is None:
        x, at = reshaped(x, (size_of(x.shape),)), -1
    else:
        at = normalize_axis(axis, len(x.shape))
    size = x.shape[at]
    counts = whole_numbers(repeats, "a count", 0)
    if len(counts) == 1:
        count = counts[0]
        position = len(x.shape) + at
        before, after = x.shape[:position], x.shape[position + 1 :]
        raised = reshape(x, shape=(*before, size, 1, *after))
        shape = bounded((*before, size, count, *after))
        return reshaped(raised if count == 1 else broadcast(raised, shape=shape), (*before, size * count, *after))
    if len(counts) != size:
        raise error("GC306", f"repeat needs a count for each of the {size} entries, not {len(counts)}")
    few_positions(sum(counts))
    indices = tuple(i for i, n in enumerate(counts) for _ in range(n))
    return take_static(x, indices=indices, axis=at)


repeat = composite(
    "repeat",
    "Each entry repeated along an axis; without an axis, the array is flattened first.",
    definition=_repeat,
    static=("repeats", "axis"),
    aliases=("repeat_interleave",),
    domain=[REAL],
    formula="x[0], x[0], x[1], x[1], ...",
    examples=[("repeat([1, 2], 2)", [1, 1, 2, 2]), ("repeat([1, 2, 3], (0, 1, 2))", [2, 3, 3])],
    node="RepeatInterleaveBackward0",
)

# --- pad ------------------------------------------------------------------------------------------------

_MODES = ("constant", "edge", "reflect", "symmetric", "wrap")


def _source(position: int, size: int, mode: str) -> int:
    """Where the entry at a position outside [0, size) is copied from."""
    if mode == "edge":
        return min(max(position, 0), size - 1)
    if mode == "wrap":
        return position % size
    if mode == "symmetric":
        around = position % (2 * size)
        return around if around < size else 2 * size - 1 - around
    if size == 1:
        return 0
    around = position % (2 * size - 2)
    return around if around < size else 2 * size - 2 - around


def _widths(pad_width: Any, rank: int) -> list[tuple[int, int]]:
    """NumPy's forms: n, (before, after), or a pair for each axis."""
    if isinstance(pad_width, (tuple, list)) and any(isinstance(pair, (tuple, list)) for pair in pad_width):
        rows = [whole_numbers(pair, "a width", 0) for pair in pad_width]
    else:
        rows = [whole_numbers(pad_width, "a width", 0)]
    if len(rows) == 1:
        rows *= rank
    if len(rows) != rank or any(len(row) not in (1, 2) for row in rows):
        raise error("GC306", f"pad needs a pair of widths for each of {rank} axes, not {number_text(pad_width)}")
    return [(row[0], row[-1]) for row in rows]


def _pad(x: Any, pad_width: Any, mode: str = "constant", constant_values: Any = 0) -> Any:
    require_option(mode, _MODES, "mode", "pad")
    rank = len(x.shape)
    for i, (before, after) in enumerate(_widths(pad_width, rank)):
        axis, size = i - rank, x.shape[i]
        if not before and not after:
            continue
        if mode != "constant":
            if not size:
                raise error("GC322", f"pad cannot copy from {described(x)}, which is empty along an axis")
            few_positions(before + size + after)
            indices = tuple(_source(position, size, mode) for position in range(-before, size + after))
            x = take_static(x, indices=indices, axis=axis)
        elif _is_zero(constant_values):
            x = placed(x, axis, before, before + size + after)
        else:
            x = _bordered(x, axis, before, after, constant_values)
    return x


def _is_zero(value: Any) -> bool:
    return value == 0 if isinstance(value, (int, float)) else getattr(value, "constant", None) == 0


def _bordered(x: Any, axis: int, before: int, after: int, value: Any) -> Any:
    if isinstance(value, (int, float)):
        value = x.bind(reshape, (value,), {"shape": ()})
    if value.shape:
        raise error("GC309", f"pad needs one number as constant_values, not {described(value)}")
    shape = list(x.shape)
    parts = []
    for count in (before, None, after):
        if count is None:
            parts.append(x)
        elif count:
            shape[len(shape) + axis] = count
            parts.append(stretch(value, tuple(shape)))
    return joined(parts, axis)


pad = composite(
    "pad",
    "An array with a border: of a constant, or copied by NumPy's modes edge, reflect, symmetric, wrap.",
    definition=_pad,
    static=("pad_width", "mode"),
    domain=[REAL, REAL],
    formula="0, ..., x, ..., 0",
    examples=[("pad([1, 2], 1)", [0, 1, 2, 0]), ('pad([1, 2, 3], (2, 0), mode="reflect")', [3, 2, 1, 2, 3])],
    node="ConstantPadNdBackward0",
    traits="every_size",
)
