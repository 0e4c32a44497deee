"""Positions that indices make, as the `i + 1` of a slice or the `n*i + k` of a reshape, and where two are equal.

The range of an index may be smaller than the axis that it reads. Two positions are equal where their difference is 0,
an equation in whole numbers with bounds; `solution` splits it, or writes one index by the others.
"""

from __future__ import annotations

from math import gcd
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence


class Index(NamedTuple):
    """A position along an axis: `number` distinguishes indices, `size` is how many values it has, from 0 on."""

    number: int
    size: int


class IndexPosition(NamedTuple):
    """The position `start + step*index + ...`."""

    start: int
    parts: tuple[tuple[Index, int], ...]


Position = Index | int | IndexPosition


def affine(start: int, parts: Iterable[tuple[Position, int]]) -> Position:
    """The position `start + step*part + ...`, as an index or a number where it is one."""
    steps: dict[Index, int] = {}
    for part, step in parts:
        own = parts_of_position(part)
        start += step * own.start
        for index, inner in own.parts:
            steps[index] = steps.get(index, 0) + step * inner
    kept = [(index, step) for index, step in steps.items() if step and index.size > 1]
    kept.sort(key=lambda part: (-abs(part[1]), part[0].number))
    if not kept:
        return start
    return kept[0][0] if start == 0 and len(kept) == 1 and kept[0][1] == 1 else IndexPosition(start, tuple(kept))


def parts_of_position(position: Position) -> IndexPosition:
    """A position as a start with indices and their steps."""
    if isinstance(position, IndexPosition):
        return position
    return IndexPosition(position, ()) if isinstance(position, int) else IndexPosition(0, ((position, 1),))


def indices_in(at: Iterable[Position]) -> tuple[Index, ...]:
    """The indices of positions, in the order in which they stand there."""
    indices: dict[Index, None] = {}
    for position in at:
        if isinstance(position, Index):
            indices[position] = None
        elif isinstance(position, IndexPosition):
            indices |= {index: None for index, _ in position.parts}
    return tuple(indices)


def moved(position: Position, changes: Mapping[Any, Position]) -> Position:
    """A position with others in place of indices, or in place of all of it."""
    if isinstance(position, Index) or position in changes:
        return changes.get(position, position)
    if isinstance(position, int) or changes.keys().isdisjoint(index for index, _ in position.parts):
        return position
    return affine(position.start, [(changes.get(index, index), step) for index, step in position.parts])


def span(position: Position) -> tuple[int, int]:
    """The least and the largest value of a position."""
    own = parts_of_position(position)
    ends = [step * (index.size - 1) for index, step in own.parts]
    return own.start + sum([min(end, 0) for end in ends]), own.start + sum([max(end, 0) for end in ends])


def is_dense(place: IndexPosition) -> bool:
    """Whether each value between the least and the largest is one of one choice of indices."""
    count = 1
    for index, step in reversed(place.parts):
        if abs(step) != count:
            return False
        count *= index.size
    return True


class Solution(NamedTuple):
    """Where two positions are equal: where `changes` hold and each of `zeros` is 0; `fresh` indices are new ones."""

    changes: dict[Index, Position]
    zeros: tuple[Position, ...] = ()
    fresh: tuple[Index, ...] = ()


def difference(position: Position, subtracted: Position) -> Position:
    if isinstance(position, int) and isinstance(subtracted, int):
        return position - subtracted
    return affine(0, ((position, 1), (subtracted, -1)))


def sides_of(zero: Position, bound: Sequence[Index]) -> tuple[Position, Position]:
    """Two positions that are equal where one is 0, the first of them an index that is not bound if there is one."""
    own = parts_of_position(zero)
    for index, step in own.parts:
        if index not in bound and abs(step) == 1:
            return index, affine(-step * own.start, [(i, -step * n) for i, n in own.parts if i != index])
    return zero, 0


def solution(zero: Position, bound: Sequence[Index], index_of: Callable[[int], Index]) -> Solution | None:
    """Where a position is 0, with bound indices written by others as far as they go; None where it is nowhere.

    The changes are of bound indices only. What stays an equation is in `zeros`.
    """
    own = parts_of_position(zero)
    low, high = span(zero)
    steps = gcd(*[step for _, step in own.parts])
    if not low <= 0 <= high or (own.start if not steps else own.start % steps):
        return None
    if steps > 1:
        return solution(affine(own.start // steps, [(i, step // steps) for i, step in own.parts]), bound, index_of)
    for cut in range(1, len(own.parts)):  # n*i + k is 0 where i and k are, if k is less than n; (n + 1)*j - n*i - k too
        large = gcd(*[step for _, step in own.parts[:cut]])
        nearest = [(index, (2 * step + large) // (2 * large)) for index, step in own.parts]
        for whole in ([(index, step // large) for index, step in own.parts[:cut]], nearest) if large > 1 else ():
            left = affine(0, [*own.parts, *[(index, -large * count) for index, count in whole]])
            for rest in (own.start % large, own.start % large - large):
                small = affine(rest, [(left, 1)])
                if -large < span(small)[0] and span(small)[1] < large:
                    return Solution({}, (affine((own.start - rest) // large, whole), small))
    for index, step in own.parts:
        if index in bound and abs(step) == 1:
            value = affine(-step * own.start, [(i, -step * n) for i, n in own.parts if i != index])
            low, high = span(value)
            if low >= 0 and high < index.size:
                return Solution({index: value})
    if len(own.parts) == 1:
        return Solution({}, (zero,))
    ends = _overlap(own) if len(own.parts) == 2 else None
    if ends is None or not any(index in bound for index, _ in own.parts):
        return Solution({}, (zero,))
    count, firsts = ends
    if count <= 0:
        return None
    if count in [index.size for index, _ in own.parts if index in bound]:
        return Solution({}, (zero,))
    fresh = index_of(count)
    values = {i: affine(first, ((fresh, step),)) for (i, _), (first, step) in zip(own.parts, firsts, strict=True)}
    changes = {i: value for i, value in values.items() if i in bound}
    others = tuple([difference(i, value) for i, value in values.items() if i not in bound])
    return Solution(changes, others, (fresh,) if count > 1 else ())


def _overlap(own: IndexPosition) -> tuple[int, tuple[tuple[int, int], tuple[int, int]]] | None:
    """The pairs of indices at which a*i + b*j + start is 0: their count, and where each begins with its step."""
    (first_index, a), (second_index, b) = own.parts
    # i runs over first + |b|*r, and j over (-start - a*i)/b
    first = next((i for i in range(abs(b)) if (own.start + a * i) % b == 0), None)
    if first is None:
        return None
    step = abs(b)
    begin = -(own.start + a * first) // b
    slope = -a * step // b
    low, high = 0, (first_index.size - 1 - first) // step  # of r
    if slope > 0:
        low, high = max(low, -(begin // slope)), min(high, (second_index.size - 1 - begin) // slope)
    else:
        low, high = max(low, -((second_index.size - 1 - begin) // -slope)), min(high, begin // -slope)
    return high - low + 1, ((first + step * low, step), (begin + slope * low, slope))
