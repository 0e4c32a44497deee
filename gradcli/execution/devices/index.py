"""Index arithmetic of kernels, as text: which entries of its operands a step reads for one entry of its result.

A place is a distance in C order from the entry `e` of a thread (so neighbours stay neighbours, whatever the
shapes), or an expression for each axis. Expressions for axes are short: names of whole numbers.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, NamedTuple

from gradcli.execution.plans.values import index_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from gradcli.execution.plans.values import Op

    Shape = tuple[int, ...]


class Place(NamedTuple):
    """Where an entry of an array is: `shift` entries after `e` in C order, or at `axes`."""

    shift: int | None
    axes: tuple[str, ...] = ()


FIRST = Place(None)  # the one entry of an array that has no other


class Places:
    """The places in one kernel: `whole(text)` gives the name of a whole number, made once for each text."""

    def __init__(self, count: int, whole: Callable[[str], str]) -> None:
        self.count = count  # entries that threads are at, from 0 on
        self.whole = whole
        self.known: dict[tuple[int, Shape], tuple[str, ...]] = {}
        self.given: tuple[list[int], list[str]] | None = None  # lengths and words of the axes that a thread counts

    # --- from a place to words --------------------------------------------------------------------------

    def at(self, shift: int, size: int) -> tuple[str, list[str]]:
        """The position in C order by its shift, and what has to hold so that it is inside the array."""
        word = "e" if not shift else f"e + {shift}" if shift > 0 else f"e - {-shift}"
        return word, [f"{word} >= 0"] * (shift < 0) + [f"{word} < {size}"] * (self.count + shift > size)

    def axes(self, place: Place, shape: Shape) -> tuple[str, ...]:
        """A word for each axis; inside the array also where the place is not."""
        if place.shift is None:
            return place.axes or ("0",) * len(shape)
        key = (place.shift, shape)
        found = self.known.get(key)
        if found is None and self.given is not None and not place.shift and _long(shape) == self.given[0]:
            rest = iter(self.given[1])
            found = self.known[key] = tuple([next(rest) if n > 1 else "0" for n in shape])
        if found is None:
            word, outside = self.at(place.shift, prod(shape))
            if outside:
                word = f"within_({word}, {prod(shape) - 1})"
            found = self.known[key] = self.unravelled(word, shape)
        return found

    def unravelled(self, word: str, shape: Shape) -> tuple[str, ...]:
        """The axes of a position in C order."""
        long = [axis for axis, n in enumerate(shape) if n > 1]
        if not word.isidentifier() and len(long) > 1:
            word = self.whole(word)
        found = ["0"] * len(shape)
        for axis in long:
            stride = prod(shape[axis + 1 :])
            part = word if stride == 1 else f"({word}) / {stride}"
            found[axis] = self.whole(part if axis == long[0] else f"({part}) % {shape[axis]}")
        return tuple(found)

    def ravelled(self, axes: tuple[str, ...], shape: Shape) -> str:
        """The position in C order of an entry at axes."""
        parts = []
        for axis, word in enumerate(axes):
            stride = prod(shape[axis + 1 :])
            if word != "0":
                parts.append(word if stride == 1 else f"{word} * {stride}")
        return " + ".join(parts) or "0"

    # --- from the result of a step to its operands -----------------------------------------------------------

    def operand(self, place: Place, shape: Shape, own: Shape) -> Place:
        """The place in an operand of shape `own` of a step that repeats its entries over `shape`."""
        if prod(own) == 1:
            return FIRST
        if _long(own) == _long(shape):
            if place.shift is not None:
                return place
            rest = iter([word for word, n in zip(place.axes, shape, strict=True) if n > 1])
            return Place(None, tuple([next(rest) if n > 1 else "0" for n in own]))
        axes = self.axes(place, shape)[len(shape) - len(own) :]
        return Place(None, tuple(["0" if n == 1 else word for word, n in zip(axes, own, strict=True)]))

    def shown(self, op: Op, place: Place) -> Place:
        """The place in the array that a view shows."""
        source, shape = op.args[0].shape, op.out.shape
        if prod(source) == 1:
            return FIRST
        if op.function == "reshape":
            if place.shift is not None or _long(source) == _long(shape):
                return self.operand(place, shape, source) if place.shift is None else place
            position = self.whole(self.ravelled(place.axes, shape))
            return Place(None, self.unravelled(position, source))
        if op.function == "broadcast":
            return self.operand(place, shape, source)
        if op.function == "permute":
            order = [axis for axis in op.params if source[axis] > 1]
            if place.shift is not None and order == sorted(order):
                return place
            axes = self.axes(place, shape)
            return Place(None, tuple([axes[op.params.index(axis)] for axis in range(len(source))]))
        index = index_of(op.params)
        if place.shift is not None and (first := start_of(source, index, shape)) is not None:
            return Place(place.shift + first)
        axes = self.axes(place, shape)
        return Place(None, tuple([self._stepped(*one) for one in zip(axes, source, index, strict=True)]))

    def _stepped(self, word: str, n: int, part: Any) -> str:
        """The position on an axis of an entry of a slice of it."""
        along = range(n)[part]
        if along.start == 0 and along.step == 1:
            return word
        step = word if along.step == 1 else f"{word} * {along.step}"
        return self.whole(f"{along.start} + {step}") if word != "0" else str(along.start)

    def placed(self, place: Place, shape: Shape, index: tuple[Any, ...], own: Shape) -> tuple[str, Place]:
        """For entries that stand at an index among others: the condition for one of them, and its place among them."""
        if place.shift is not None and (first := start_of(shape, index, own)) is not None:
            inner = place.shift - first
            return " && ".join(self.at(inner, prod(own))[1]) or "true", Place(inner)
        axes, conditions, found = self.axes(place, shape), [], []
        for word, n, part, m in zip(axes, shape, index, own, strict=True):
            along = range(n)[part]
            low, high = min(along[0], along[-1]), max(along[0], along[-1])
            if m == n and along.step == 1:
                found.append(word)
                continue
            if low > 0:
                conditions.append(f"{word} >= {low}")
            if high < n - 1:
                conditions.append(f"{word} <= {high}")
            if abs(along.step) > 1:
                conditions.append(f"({word} - {low}) % {abs(along.step)} == 0")
            moved = f"{word} - {along.start}" if along.step > 0 else f"{along.start} - {word}"
            moved = moved if abs(along.step) == 1 else f"({moved}) / {abs(along.step)}"
            found.append("0" if m == 1 else self.whole(f"within_({moved}, {m - 1})"))
        return " && ".join(conditions) or "true", Place(None, tuple(found))


def start_of(shape: Shape, index: tuple[Any, ...], size: Shape) -> int | None:
    """Where the entries of a slice begin in C order; None where they are not neighbours there.

    >>> start_of((4, 3), (slice(1, 3, 1), slice(0, 3, 1)), (2, 3))
    3
    """
    first, stride, whole = 0, 1, True
    for n, part, count in zip(reversed(shape), reversed(index), reversed(size), strict=True):
        begin = range(n)[part][0] if isinstance(part, slice) else part
        if count > 1 and ((part.step or 1) != 1 or not whole):
            return None
        first += begin * stride
        stride *= n
        whole = whole and count == n
    return first


def _long(shape: Shape) -> list[int]:
    return [n for n in shape if n > 1]
