"""Names of cells go in, which of them stand side by side in memory comes out; what they hold is not known here.

A block is a row of cells for each turn. Cells of one block may be shifted against each other by some rows, so that what
a turn writes stands beside what the next one writes.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    Key = Any  # ("own", place), ("row", given, copy) or ("all", given, copy)


class Neighbours:
    """Which keys stand side by side, and by how many rows each is shifted."""

    def __init__(self) -> None:
        self.rows: dict[Key, list[Key]] = {}  # the keys of the block of a key, one list for all of them
        self.shifts: dict[Key, int] = {}

    def copy(self) -> Neighbours:
        """The same, to be changed."""
        other = Neighbours()
        fresh: dict[int, list[Key]] = {}
        for key, row in self.rows.items():
            other.rows[key] = fresh.setdefault(id(row), list(row))
        other.shifts = dict(self.shifts)
        return other

    def add(self, key: Key) -> None:
        """A block of its own."""
        self.rows.setdefault(key, [key])
        self.shifts.setdefault(key, 0)

    def may(self, one: Key, other: Key) -> bool:
        """Whether a key can stand behind another one, as far as their blocks tell."""
        left, right = self.rows[one], self.rows[other]
        if left is right:
            at = left.index(one) + 1
            return at < len(left) and left[at] == other
        return bool(left[-1] == one and right[0] == other)

    def beside(self, sequence: Sequence[tuple[Key, int]]) -> bool:
        """Put keys side by side, each as many turns before as is said; whether that is possible."""
        for (one, before), (other, earlier) in pairwise(sequence):
            left, right = self.rows[one], self.rows[other]
            moved = (self.shifts[one] - before) - (self.shifts[other] - earlier)
            if left is right:
                at = left.index(one)
                if moved or at + 1 == len(left) or left[at + 1] != other:
                    return False
                continue
            if left[-1] != one or right[0] != other:
                return False
            for key in right:
                self.shifts[key] += moved
                self.rows[key] = left
            left += right
        return True
