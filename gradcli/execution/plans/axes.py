"""Finds the axes that may be cut into blocks, and for each of them the arrays that it runs through.

Two axes belong together where a step reads entry i of one to make entry i of the other, or multiplies entry i of one by
entry i of the other and adds up. Along such a class of axes everything can be computed block by block.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradcli.execution.plans.values import (
    ADDED,
    CALL,
    CAST,
    CHOICE,
    COPY,
    ENTRY,
    JOIN,
    PLACE,
    PRODUCT,
    REDUCE,
    VIEW,
    index_of,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gradcli.execution.plans.values import Op

    Axis = tuple[int, int]  # the serial of a value, an axis counted from the front

SHARE = 16  # of the largest array, from which an array is large
PATIENCE = 64  # how many values are looked at for each axis, to see whether classes may be joined


def links(op: Op) -> tuple[list[tuple[int, int, int]], list[tuple[int, int, int, int]]]:
    """Pairs (operand, its axis, axis of the result), and (operand, axis, operand, axis) that are added up.

    For a sum over an axis the second list holds the axis twice.
    """
    kind, out = op.kind, op.out.shape
    if kind in (ENTRY, CHOICE, CAST, COPY):
        rank = len(out)
        found = []
        for position, arg in enumerate(op.args):
            if arg.number is None:
                shift = rank - len(arg.shape)
                found += [(position, i, i + shift) for i, n in enumerate(arg.shape) if n > 1]
        return found, []
    if kind == VIEW:
        return _links_of_view(op), []
    if kind == REDUCE:
        axes = op.params
        kept = [i for i in range(len(op.args[0].shape)) if i not in axes]
        return [(0, i, at) for at, i in enumerate(kept)], [(0, i, 0, i) for i in axes]
    if kind == PRODUCT:
        rank = len(out)
        stacks = [(position, i, i) for position in (0, 1) for i in range(rank - 2)]
        return [*stacks, (0, rank - 2, rank - 2), (1, rank - 1, rank - 1)], [(0, rank - 1, 1, rank - 2)]
    if kind == PLACE:
        return _links_of_place(op, 0), []
    if kind == JOIN:
        joined = [p for p, arg in enumerate(op.args) if arg.number is None]
        return [(p, i, i) for p in joined for i in range(len(out)) if i != op.params], []
    if kind == ADDED:
        total = op.args[0]
        own = [(0, i, i) for i in range(len(out)) if total.number is None]
        return own + _links_of_place(op, 1), []
    return [], []


def _links_of_place(op: Op, position: int) -> list[tuple[int, int, int]]:
    """The axes that are filled, forwards."""
    x = op.args[position]
    if x.number is not None:
        return []
    parts = zip(x.shape, op.out.shape, index_of(op.params[1]), strict=True)
    return [(position, i, i) for i, (n, size, part) in enumerate(parts) if n == size and (part.step or 1) > 0]


def _links_of_view(op: Op) -> list[tuple[int, int, int]]:
    shape, out = op.args[0].shape, op.out.shape
    if op.function == "permute":
        return [(0, axis, i) for i, axis in enumerate(op.params)]
    if op.function == "broadcast":
        return [(0, i, i) for i, n in enumerate(shape) if n == out[i] and n > 1]
    if op.function == "slice":
        return [(0, i, i) for i, n in enumerate(shape) if n == out[i] and op.params[i] == ("slice", 0, n, 1)]
    found, i, j, before, beside = [], 0, 0, 1, 1  # a reshape: axes with as many entries in front of them
    while i < len(shape) and j < len(out):
        if before == beside and shape[i] == out[j]:
            if shape[i] > 1:
                found.append((0, i, j))
            before, beside, i, j = before * shape[i], beside * out[j], i + 1, j + 1
        elif before * shape[i] <= beside * out[j] and (before < beside or shape[i] == 1 or out[j] != 1):
            before, i = before * shape[i], i + 1
        else:
            beside, j = beside * out[j], j + 1
    return found


class Classes:
    """The classes of axes of a list of steps: each says which axis of a value it cuts, by serials.

    No array has two axes of one class. Where a short step would make it so, such as the sum of a matrix's row sums and
    column sums, it links nothing, and is taken on whole arrays. Where a large one does, its axes are not cut.
    """

    def __init__(self, ops: Sequence[Op]) -> None:
        self._of: dict[Axis, dict[int, int]] = {}
        found = []
        for op in ops:
            if op.kind == CALL:
                continue
            along, summed = links(op)
            pairs = [((op.args[p].serial, axis), (op.out.serial, target)) for p, axis, target in along]
            pairs += [((op.args[p].serial, axis), (op.args[q].serial, other)) for p, axis, q, other in summed]
            for place in [place for pair in pairs for place in pair]:
                self._of.setdefault(place, {place[0]: place[1]})
            found.append((max([op.out.size, *[arg.size for arg in op.args]]), pairs))
        self._left = PATIENCE * len(self._of)
        found.sort(key=lambda one: -one[0])
        mixed: list[Axis] = []
        for size, pairs in found:
            for pair in pairs:
                if not self._join(*pair) and size * SHARE >= found[0][0]:
                    mixed += pair
        gone = {id(self._of[place]) for place in mixed}
        self.values = list({id(members): members for members in self._of.values() if id(members) not in gone}.values())

    def _join(self, one: Axis, other: Axis) -> bool:
        """Make the classes of two axes one; False if an array would have two axes in it."""
        first, second = self._of[one], self._of[other]
        if first is second:
            return True
        if len(first) < len(second):
            first, second = second, first
        self._left -= len(second)
        if self._left < 0 or any(first.get(serial, axis) != axis for serial, axis in second.items()):
            return False
        first.update(second)
        for place in second.items():
            self._of[place] = first
        return True


def follows(op: Op, at: dict[int, int]) -> bool:
    """Whether a step can be taken block by block along a class of axes, which cuts value `serial` at `at[serial]`."""
    if op.kind == CALL or not (op.out.serial in at or any(arg.serial in at for arg in op.args)):
        return False
    along, summed = links(op)
    linked = {(position, axis) for position, axis, _ in along}
    linked.update((first, axis) for first, axis, _, _ in summed)
    linked.update((second, axis) for _, _, second, axis in summed)
    for position, arg in enumerate(op.args):
        axis = at.get(arg.serial)
        if axis is not None and (position, axis) not in linked:
            return False
    axis = at.get(op.out.serial)
    for position, own, target in along:  # not every step has linked its axes
        if (at.get(op.args[position].serial) == own) != (axis == target):
            return False
    if any((at.get(op.args[p].serial) == own) != (at.get(op.args[q].serial) == other) for p, own, q, other in summed):
        return False
    if axis is not None and op.kind == ADDED and not _filled(op, axis):
        return False
    if axis is not None and not any(target == axis and op.args[p].serial in at for p, _, target in along):
        return op.kind == VIEW and op.function == "broadcast" and op.args[0].shape[axis] == 1
    return True


def _filled(op: Op, axis: int) -> bool:
    """Whether what is added to a part, a number as well, is added along all of an axis."""
    step = index_of(op.params[1])[axis].step or 1
    return op.args[1].shape[axis] == op.out.shape[axis] and step > 0


def sums(op: Op, at: dict[int, int]) -> bool:
    """Whether a step that follows adds up along the class, so that its blocks give parts of the result."""
    return op.out.serial not in at and op.kind in (REDUCE, PRODUCT)
