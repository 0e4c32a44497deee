"""Small helpers that several declarations share: axes permuted, merged and kept, constants, checks.

Everything here makes operands from operands; it declares no operation.
"""

from __future__ import annotations

from gradcli.base.diagnostics import error
from gradcli.graph.exact import number_text
from gradcli.graph.types import size_of
from gradcli.primitives.comparison import cast
from gradcli.primitives.movement import broadcast, permute, reshape, slice_, unslice
from gradcli.primitives.size_arguments import kept_shape

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from gradcli.graph.types import Shape


def described(x: Any) -> str:
    """The type of an operand as people read it."""
    kind = getattr(x, "type", None)
    return str(kind) if kind is not None else f"f64[{','.join(map(str, x.shape))}]"


def permuted(x: Any, axes: tuple[int, ...]) -> Any:
    """The axes in another order, given as negative numbers; x itself where the order is the same."""
    return x if axes == tuple(range(-len(axes), 0)) else permute(x, axes=axes)


def reshaped(x: Any, shape: Shape) -> Any:
    """x in another shape; x itself where it has it."""
    return x if x.shape == shape else reshape(x, shape=shape)


def kept(result: Any, shape: Shape, axes: tuple[int, ...], keepdims: bool) -> Any:
    """A reduction of an array of this shape, with the reduced axes as axes of size 1 if they are kept."""
    return reshaped(result, kept_shape(shape, axes)) if keepdims else result


def merged(x: Any, axes: tuple[int, ...]) -> Any:
    """The given axes, negative and sorted, moved to the end and made one."""
    rank = len(x.shape)
    others = tuple(axis for axis in range(-rank, 0) if axis not in axes)
    moved = permuted(x, (*others, *axes))
    size = size_of(tuple(x.shape[axis] for axis in axes))
    return reshaped(moved, (*(x.shape[axis] for axis in others), size))


def stretched_back(result: Any, shape: Shape, axes: tuple[int, ...]) -> Any:
    """A reduction over `axes`, repeated along them to the shape that was reduced."""
    raised = reshaped(result, kept_shape(shape, axes))
    return raised if raised.shape == shape else broadcast(raised, shape=shape)


def part(x: Any, axis: int, start: int, size: int, step: int = 1) -> Any:
    """`size` entries along one axis, from `start`, `step` apart; all of the others."""
    rank = len(x.shape)
    starts, steps, sizes = [0] * rank, [1] * rank, list(x.shape)
    starts[rank + axis], steps[rank + axis], sizes[rank + axis] = start, step, size
    if tuple(sizes) == x.shape and step > 0:
        return x
    return slice_(x, start=tuple(starts), step=tuple(steps), size=tuple(sizes))


def reversed_along(x: Any, axis: int) -> Any:
    """The entries along one axis in the opposite order."""
    size = x.shape[axis]
    return part(x, axis, size - 1, size, -1) if size else x


def placed(x: Any, axis: int, start: int, size: int) -> Any:
    """x along one axis from `start` on, in `size` entries that are zero elsewhere."""
    rank = len(x.shape)
    starts, sizes = [0] * rank, list(x.shape)
    starts[rank + axis], sizes[rank + axis] = start, size
    if tuple(sizes) == x.shape:
        return x
    return unslice(x, shape=tuple(sizes), start=tuple(starts), step=(1,) * rank)


def filled(x: Any, value: Any, shape: Shape) -> Any:
    """An array of one number, in the builder of the operand x."""
    entry = x.bind(reshape, (value,), {"shape": (1,) * len(shape)})
    return broadcast(entry, shape=shape) if shape else entry


def identity_matrix(x: Any, size: int) -> Any:
    """The identity matrix, in the builder of the operand x."""
    flat = unslice(filled(x, 1, (size,)), shape=(size * size,), start=(0,), step=(size + 1,))
    return reshape(flat, shape=(size, size))


def diagonal(x: Any, offset: int = 0) -> Any:
    """The diagonal of the last two axes, `offset` above the main one."""
    rows, columns = x.shape[-2:]
    first = offset if offset >= 0 else -offset * columns
    size = max(min(rows, columns - offset) if offset >= 0 else min(rows + offset, columns), 0)
    flat = reshaped(x, (*x.shape[:-2], rows * columns))
    return part(flat, -1, first if size else 0, size, columns + 1)


def lanes_of(f: Any, x: Any, axes: tuple[int, ...]) -> list[list[Any]]:
    """The entries along the given axes, one list for each place of the other axes, in C order."""
    rank = len(x.shape)
    others = tuple(axis for axis in range(-rank, 0) if axis not in axes)
    order = f.positions(permute, x.shape, axes=(*others, *axes))
    size = size_of(tuple(x.shape[axis] for axis in axes))
    count = len(order) // size if size else 0
    return [[x.flat[p] for p in order[i * size : (i + 1) * size]] for i in range(count)]


def positions_of(x: Any) -> Any:
    """An operand as positions: whole numbers, which evaluation checks."""
    return x if getattr(getattr(x, "type", None), "kind", "float") == "int" else cast(x, kind="int")


def require_square(x: Any, what: str) -> None:
    """Raise GradcliError GC321 unless the last two axes of x have the same size."""
    if len(x.shape) < 2 or x.shape[-1] != x.shape[-2]:
        sizes = x.shape[-2:] if len(x.shape) > 1 else None
        raise error("GC321", f"{what} needs a square matrix, not {described(x)}", sizes=sizes)


def require_matrix(x: Any, what: str) -> None:
    """Raise GradcliError GC321 unless x has at least two axes."""
    if len(x.shape) < 2:
        raise error("GC321", f"{what} needs a matrix, not {described(x)}")


def require_entries(x: Any, axes: tuple[int, ...], what: str) -> None:
    """Raise GradcliError GC322 where a reduction that has no neutral value would run over nothing."""
    if not size_of(tuple(x.shape[axis] for axis in axes)):
        raise error("GC322", f"{what} of no entries: {described(x)} is empty along that axis")


def require_option(value: Any, choices: tuple[Any, ...], parameter: str, function: str) -> None:
    """Raise GradcliError GC320 unless an option has one of its values."""
    if value not in choices:
        shown = ", ".join(repr(choice) if isinstance(choice, str) else f"{choice:g}" for choice in choices)
        text = repr(value) if isinstance(value, str) else number_text(value)
        raise error("GC320", f"{function} has no {parameter}={text}", help=f"choose one of {shown}")
