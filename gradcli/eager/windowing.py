"""Lines of a function go in; slices of one array that are joined, or added up where they came from, become one step.

So layers of images go: a window is a slice for each place of the kernel. One by one, each slice is copied twice on the
way forward, and on the way back put among zeros of its own. The numbers are the same.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.primitives.movement import slices_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gradcli.graph.node import Node

_FEW = 3  # so many slices, or fewer, are left alone


class Joined:
    """Slices of one array, written beside each other along the last axis but one of a new array."""

    def __init__(self, node: Node, slices: Sequence[Node]) -> None:
        self.array = slices[0].args[0]
        shape = slices[0].shape
        lead = len(node.shape) - 2
        self.shape = node.shape
        self.split = (*node.shape[:-1], *shape[lead:])
        self.before = (slice(None),) * lead
        self.where = [slices_of(**one.params) for one in slices]

    def __call__(self, x: Any) -> Any:
        found = np.empty(self.shape, x.dtype)
        parts: Any = found.reshape(self.split)
        for at, where in enumerate(self.where):
            parts[(*self.before, at)] = x[where]
        return found


class AddedUp:
    """Arrays added to zeros, each at its own places."""

    def __init__(self, parts: Sequence[Node]) -> None:
        self.shape = parts[0].shape
        self.arrays = [part.args[0] for part in parts]
        self.where = [slices_of(part.params["start"], part.params["step"], part.args[0].shape) for part in parts]

    def __call__(self, *parts: Any) -> Any:
        found = np.zeros(self.shape, parts[0].dtype)
        for where, part in zip(self.where, parts, strict=True):
            there = found[where]
            there += part
        return found


def steps_of(order: Sequence[Node], uses: dict[Node, int]) -> tuple[dict[Node, Joined | AddedUp], set[Node]]:
    """The nodes that are done in one step, and the nodes that are no longer needed for them."""
    found: dict[Node, Joined | AddedUp] = {}
    gone: set[Node] = set()
    for node in order:
        name = node.primitive.name
        if name == "concat":
            slices = _slices(node, uses)
            if slices is not None:
                found[node] = Joined(node, slices)
                gone.update(slices, node.args)
        elif name == "add" and node.shape:
            parts, inner = _parts(node, uses)
            if len(parts) > _FEW:
                for one in inner:
                    found.pop(one, None)
                found[node] = AddedUp(parts)
                gone.update(parts, inner)
    return found, gone


def _slices(node: Node, uses: dict[Node, int]) -> list[Node] | None:
    """The slices of one array that a node joins, each as one row; None for anything else."""
    if node.params["axis"] != -2 or len(node.args) <= _FEW or len(set(node.args)) != len(node.args):
        return None
    lead, found = node.shape[:-2], []
    for part in node.args:
        whole = part.args[0] if part.primitive.name == "reshape" else None
        if whole is None or whole.primitive.name != "slice" or uses[part] != 1 or uses[whole] != 1:
            return None
        if part.shape != (*lead, 1, node.shape[-1]) or whole.shape[: len(lead)] != lead:
            return None
        if math.prod(whole.shape[len(lead) :]) != node.shape[-1] or whole.args[0] is not node.args[0].args[0].args[0]:
            return None
        found.append(whole)
    return found


def _parts(node: Node, uses: dict[Node, int]) -> tuple[list[Node], list[Node]]:
    """What is added up below a sum, from left to right, if all of it lies among zeros; and the sums in between."""
    parts: list[Node] = []
    inner: list[Node] = []
    stack = [node]
    while stack:
        one = stack.pop()
        if one.primitive.name == "unslice" and uses[one] == 1:
            parts.append(one)
        elif one is node or (one.primitive.name == "add" and uses.get(one) == 1 and one.shape == node.shape):
            if one is not node:
                inner.append(one)
            stack.extend(reversed(one.args))
        else:
            return [], []
    return parts, inner
