"""Sizes that nothing gives: each starts out as a prime of its own, and sizes that have to be equal become one.

A free name at the end of a range, the n of `sum(x[i] for i in range(n))`, is such a size. It is known by the arrays
whose entries it counts: each of them ends where the largest position that is read ends (`reached`).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from gradcli.base.diagnostics import Diagnostic, GradcliError, error
from gradcli.lowering.shapes.open_shapes import LengthsDiffer, OpenShapes, Reach
from gradcli.primitives.size_arguments import named_size, sum_of_sizes

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from gradcli.lowering.shapes.open_shapes import OpenCount

MOST_SHARE = 4  # of a size: one of so many entries
# primes whose sums in pairs are far apart, so that a sum shows what it consists of
GUESSED = (101, 127, 173, 317, 557, 821, 1163, 1447, 1931, 2459, 2861, 3659)


class OpenSizes(OpenShapes):
    """The sizes of names that are `counts`, and of axes of any other names."""

    __slots__ = ("counts", "problems", "reaches", "same", "sizes", "sums")
    chosen = False

    def __init__(self) -> None:
        self.counts: frozenset[str] = frozenset()
        self.problems: dict[str, GradcliError] = {}  # what is wrong with a count if nothing gives its size
        self.reaches: list[Reach] = []
        self.same: dict[Any, Any] = {}
        self.sizes: dict[Any, int] = {}  # of the first of each class
        self.sums: dict[Any, tuple[tuple[Any, ...], int]] = {}  # axes that are sums of others, and of a number

    def counting(self, open_count: OpenCount) -> None:
        self.counts |= {open_count.name}
        self.problems[open_count.name] = open_count.problem

    def size(self, name: str, others: int) -> int:
        return self.length(name)

    def length(self, axis: Any) -> int:
        """The size of an axis, or of a symbol; a number is itself."""
        axis = self.first(axis)
        if isinstance(axis, int):
            return axis
        if isinstance(axis, str) and not axis.isidentifier():
            return value_of(axis, self.length)
        if axis in self.sums:
            parts, more = self.sums[axis]
            return sum(map(self.length, parts)) + more
        if axis not in self.sizes:
            if len(self.sizes) == len(GUESSED):
                raise error("GC306", "there are too many open sizes", help="give shapes, as in --shape A=3,2")
            self.sizes[axis] = GUESSED[len(self.sizes)]
        return self.sizes[axis]

    def first(self, axis: Any) -> Any:
        """The representative of the class of an axis."""
        while axis in self.same:
            axis = self.same[axis]
        return axis

    def roots(self) -> dict[int, Any]:
        """The axes whose sizes were chosen, by their sizes."""
        return {size: axis for axis, size in self.sizes.items() if axis not in self.same and axis not in self.sums}

    def equate(self, size: int, other: int) -> bool:
        """Make two sizes equal; False if they are different numbers."""
        roots = self.roots()
        first, second = roots.get(size, size), roots.get(other, other)
        if isinstance(second, int):
            first, second = second, first
        if isinstance(first, int) and isinstance(second, int):  # n + 1 and 3
            return self._solve(first, second, roots) or self._solve(second, first, roots)
        if first == second:
            return False
        if isinstance(second, str) and not isinstance(first, (int, str)):
            first, second = second, first
        if isinstance(first, str) and isinstance(second, str) and not self.counts.intersection((first, second)):
            return False  # two sizes that were declared under different names
        total = sum_of_sizes(first, roots) if isinstance(first, int) else None
        if total is None:
            self.same[second] = first
            return True
        axes = [roots[part] for part in total[0]]
        if second not in axes:
            self.sums[second] = tuple(axes), total[1]
        return second not in axes

    def _solve(self, total: int, value: int, roots: Mapping[int, Any]) -> bool:
        """Make a size with a number beside it equal to a number."""
        parts = sum_of_sizes(total, roots)
        if parts is None or len(parts[0]) > 1 or value - parts[1] < 0:
            return False
        self.same[roots[parts[0][0]]] = value - parts[1]
        return True

    @property
    def symbolic(self) -> bool:  # type: ignore[override]
        return any(isinstance(self.first(name), str) for name in self.counts)

    def reached(self, reaches: Sequence[Reach]) -> None:
        self.reaches += reaches

    def fit(self, problem: GradcliError | None) -> bool:
        if self._counted():
            return True
        pairs = [] if problem is None else [fault.sizes for fault in problem.diagnostics if fault.sizes is not None]
        if pairs and self.equate(*pairs[0]):
            return True
        self.end(problem)
        return False

    def end(self, problem: GradcliError | None) -> None:
        """Raise GradcliError where something is still open at a point."""
        for name in self.unknown():
            raise self.problems[name]

    def _counted(self) -> bool:
        """Make each axis end where it was read to; whether that changes a size."""
        roots, farthest = self.roots(), dict[Any, Reach]()
        reaches, self.reaches = self.reaches, []
        for reach in reaches:
            axis = roots.get(reach.size, (reach.array, reach.axis, reach.size))
            if axis not in farthest or farthest[axis].end < reach.end:
                farthest[axis] = reach
        for reach in farthest.values():
            if reach.size != reach.end:
                if self.equate(reach.size, reach.end):
                    return True
                if reach.whole or reach.end > reach.size:
                    raise LengthsDiffer(reach, reaches)
        return any(self._counts_otherwise(reach, roots) for reach in reaches)

    def _counts_otherwise(self, reach: Reach, roots: Mapping[int, Any]) -> bool:
        """Make the lengths of two arrays equal that one variable runs over, if both are open; whether they were not."""
        size, end = (sum_of_sizes(own, roots) for own in (reach.size, reach.end))
        return bool(size and end and set(size[0]).isdisjoint(end[0]) and self.equate(reach.size, reach.end))

    def unknown(self) -> list[str]:
        """The counts of which nothing gives the size."""
        return [name for name in sorted(self.counts) if not isinstance(self.first(name), int)]


def value_of(size: str | int, value: Callable[[str], int]) -> int:
    """The value of a number, a symbol, or a sum such as `n + 2*m - 1`."""
    if isinstance(size, int):
        return size
    parts = re.findall(r"(-?) ?(?:(\d+)\*)?(\w+)", size)
    values = [int(count or 1) * (int(part) if part.isdecimal() else value(part)) for _, count, part in parts]
    return sum([-own if sign else own for own, (sign, _, _) in zip(values, parts, strict=True)])


def in_names(problem: GradcliError, names: Mapping[int, str], hint: str | None = None) -> GradcliError:
    """An error with names in place of the sizes that were chosen, and what to do where it has one."""

    def symbol(match: re.Match[str]) -> str:
        parts = factors(int(match[0]))
        if set(parts) <= names.keys():
            return "*".join([names[part] for part in parts])
        return named_size(int(match[0]), names) or share_text(int(match[0]), names) or match[0]

    def worded(text: str) -> str:
        text = re.sub(r"\[\d[\d,]*\]", lambda shape: re.sub(r"\d{2,}", symbol, shape[0]), text)
        return re.sub(r"\b(?<![\d.])\d{3,}\b", symbol, text)

    def changed(old: Diagnostic) -> Diagnostic:
        message, labels = worded(old.message), tuple([(span, worded(text)) for span, text in old.labels])
        if (message, labels) == (old.message, old.labels):
            return old
        return Diagnostic(old.code, message, old.span, labels, hint or old.help, old.severity, old.source)

    return GradcliError(*map(changed, problem.diagnostics))


def share_text(size: int, names: Mapping[int, str]) -> str | None:
    """A size as that of every second, third, ... entry of a named one; None if it is not one."""
    for step in range(2, MOST_SHARE + 1):
        for whole, name in names.items():
            if size in (whole // step, -(-whole // step)):
                return f"{'floor' if size == whole // step else 'ceil'}({name}/{step})"
    return None


def factors(size: int) -> list[int]:
    """The guessed sizes whose product a size is, as in a Kronecker product; else the size itself."""
    primes = [prime for prime in GUESSED for power in (1, 2, 3) if size % prime**power == 0]
    product = 1
    for prime in primes:
        product *= prime
    return primes if product == size else [size]
