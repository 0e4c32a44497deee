"""Sizes, axes and counts that a call names: checked, completed and counted from the end; no operand is needed."""

from __future__ import annotations

from itertools import combinations_with_replacement

from gradcli.base.diagnostics import error, visible
from gradcli.graph.exact import count_text, number_text
from gradcli.graph.types import size_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    from gradcli.graph.types import Shape

MAX_ENTRIES = 2**33  # 64 GiB of float64: what `--limit elements=` may be raised to; a builder allows fewer
MAX_POSITIONS = 2**22  # that are written out one by one, 40 bytes each
MOST_MORE = 8  # that an axis has more or less than the sum of others, as in x[1:]
MOST_PARTS = 3  # of such a sum


def bounded(shape: Shape) -> Shape:
    """The shape itself, if an array of it may be made; raises GradcliError GC508 before anything is made.

    Called by the operations whose result can be larger than their operands together. The limit of a script is its
    builder's, which looks at every node.
    """
    return _checked(shape, MAX_ENTRIES, "entries", "sum over an axis before repeating it, or use smaller sizes")


def few_positions(count: int) -> int:
    """The count itself, if so many static positions may be written out; raises GradcliError GC508 before they are."""
    return _checked((count,), MAX_POSITIONS, "positions", "join slices with concatenate, or index by an array")[0]


def _checked(shape: Shape, most: int, what: str, help: str) -> Shape:
    if size_of(shape) > most or max(shape, default=0) > most:
        sizes = ", ".join(map(str, shape))
        raise error(
            "GC508",
            f"an array of shape [{visible(sizes)}] would have {count_text(size_of(shape))} {what}; "
            f"no array may have more than {most:,}",
            help=help,
        )
    return shape


def whole_numbers(value: Any, what: str, least: int | None = None) -> tuple[int, ...]:
    """One whole number, or several, as a tuple; raises GradcliError GC306 for anything else."""
    numbers = tuple(value) if isinstance(value, (tuple, list)) else (value,)
    for n in numbers:
        if type(n) is not int or (least is not None and n < least):
            limit = "" if least is None else f" of at least {least}"
            raise error("GC306", f"{what} must be a whole number{limit}, not {number_text(n)}")
    return numbers


def whole_number(value: Any, what: str, least: int | None = None) -> int:
    """One whole number; raises GradcliError GC306 for anything else."""
    if isinstance(value, (tuple, list)):
        raise error("GC306", f"{what} must be one whole number, not {len(value)} of them")
    return whole_numbers(value, what, least)[0]


def reduced_shape(shape: Shape, axis: tuple[int, ...]) -> Shape:
    return tuple(n for i, n in enumerate(shape) if i - len(shape) not in axis)


def kept_shape(shape: Shape, axis: tuple[int, ...]) -> Shape:
    return tuple(1 if i - len(shape) in axis else n for i, n in enumerate(shape))


def normalize_axes(axis: int | tuple[int, ...] | None, rank: int) -> tuple[int, ...]:
    """Axes as negative numbers in order; all of them for None. A scalar accepts 0 and -1, as in NumPy's reductions.

    Raises GradcliError GC303 for an axis that the array does not have, or has twice.
    """
    if axis is None:
        return tuple(range(-rank, 0))
    axes = []
    wanted = whole_numbers(axis, "an axis")
    for number in wanted:
        if rank == 0 and number in (0, -1):
            continue
        if not -rank <= number < rank:
            last = (
                f"the axes are 0 to {rank - 1}"
                if rank > 1
                else "the only axis is 0"
                if rank
                else "a number has no axis"
            )
            raise error("GC303", f"axis {number} is out of range for an array of rank {rank}", help=last)
        axes.append(number if number < 0 else number - rank)
    if len(set(axes)) != len(axes):
        raise error("GC303", f"axis {wanted} names one axis twice")
    return tuple(sorted(axes))


def normalize_axis(axis: int, rank: int) -> int:
    """One axis as a negative number; raises GradcliError GC303 where there is none."""
    axes = normalize_axes(whole_number(axis, "an axis"), rank)
    if not axes:
        raise error("GC303", f"axis {axis} is out of range for a scalar", help="a number has no axis")
    return axes[0]


def sum_of_sizes(size: int, known: Iterable[int]) -> tuple[tuple[int, ...], int] | None:
    """A size as a sum of few known ones and a small number, which may be negative; None if it is not one."""
    ordered = sorted(known)
    sums = [parts for count in range(1, MOST_PARTS + 1) for parts in combinations_with_replacement(ordered, count)]
    near = [(abs(size - sum(parts)), len(parts), parts) for parts in sums if abs(size - sum(parts)) <= MOST_MORE]
    if not near:
        return None
    _, _, parts = min(near)
    return parts, size - sum(parts)


def sum_text(names: Sequence[str], more: int) -> str:
    """A sum of named sizes and a number as a script writes it, such as `n + 2*m - 1`."""
    counts = {name: names.count(name) for name in names}
    text = " + ".join([name if count == 1 else f"{count}*{name}" for name, count in counts.items()])
    return f"{text} {'+' if more > 0 else '-'} {abs(more)}" if more else text


def named_parts(size: int, names: Mapping[int, str]) -> tuple[list[str], int] | None:
    """A size as few named ones, each as often as it is added, and a small number; None if it is no such sum."""
    if not names or size < min(names) - MOST_MORE:
        return None
    total = sum_of_sizes(size, names)
    return None if total is None else ([names[part] for part in total[0]], total[1])


def named_size(size: int, names: Mapping[int, str]) -> str | None:
    """A size as a sum of few named ones and a small number, in their names; None if it is not one."""
    parts = named_parts(size, names)
    return None if parts is None else sum_text(*parts)
