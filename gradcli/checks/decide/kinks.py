"""Where a program is not smooth, and what one-sided differences see there.

Where an operation is not smooth stands in its declaration, as a surface that is zero there. Surfaces are decided by
balls, so a tie is exact. No rule is read.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gradcli.checks.decide import finite_differences
from gradcli.checks.formatting import node_text
from gradcli.graph.builder import building
from gradcli.graph.node import Node, reachable
from gradcli.graph.primitive import Kink
from gradcli.graph.text import kink_texts

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    Floats = NDArray[np.floating[Any]]

COMPARISONS = ("less", "less_equal", "greater", "greater_equal", "equal", "not_equal")
DIRECTIONS = 6  # random ones, beside the axes
CLEAR = 64.0  # bounds: slopes of two sides that are so far apart do not approach each other slowly, as by a logarithm


EQUAL_SIDES = Kink(lambda x, y: x - y, "both sides are equal", "the branch of the comparison")


class Surface(NamedTuple):
    """A node that is zero where another one is not smooth."""

    node: Node
    zero: Node
    kink: Kink


class Behaviour(NamedTuple):
    """What a function does at a point: "smooth", "KINK", "BOUNDARY" or "DISCONTINUOUS", with the slopes by entry."""

    verdict: str
    left: list[float | None]
    right: list[float | None]
    bound: float
    value: float
    limits: tuple[float | None, float | None]


def surfaces(outputs: Sequence[Node]) -> list[Surface]:
    """The surfaces of every operation that the outputs need; comparisons are zero where their sides meet."""
    order = reachable(outputs)
    found: list[Surface] = []
    if not order:
        return found
    with building(order[0].builder, order):
        for node in order:
            for kink in node.primitive.kinks:
                zero = kink.surface(*node.args, **node.params)
                if isinstance(zero, Node) and zero.type.kind == "float":
                    found.append(Surface(node, zero, kink))
            if node.primitive.name in COMPARISONS and node.args[0].type.kind == "float":
                zero = node.args[0] - node.args[1]
                found.append(Surface(node, zero, EQUAL_SIDES))
    return found


def on(surface: Surface) -> str:
    """Where a kink is: the equation in the program's own terms where that is short, else the declaration's words."""
    node, zero = surface.node, surface.zero
    sides = zero.args if zero.primitive.name == "sub" and set(zero.args) <= set(node.args) else (zero,)
    if zero in node.args or len(sides) == 2:
        text = " = ".join(node_text(side) for side in sides)
        return text if len(sides) == 2 else f"{text} = 0"
    return describe(surface)[0].removeprefix("where ")


def describe(surface: Surface) -> tuple[str, str]:
    """Where a kink is and which derivative is returned there, in the words of the declaration."""
    return kink_texts(surface.kink, [node_text(arg) for arg in surface.node.args])


def moving_with(found: Sequence[Surface], target: Node) -> list[Surface]:
    """The surfaces that move with a node."""
    moved = {target}
    for node in reachable([surface.zero for surface in found]):
        if not moved.isdisjoint(node.args):
            moved.add(node)
    return [surface for surface in found if surface.zero in moved]


def behaviour(f: Callable[[Floats], Floats], x: Floats, entries: Sequence[int], joint: bool, seed: int) -> Behaviour:
    """What f does at x along the axes of some entries, and with `joint` along random directions too."""
    axes = [np.eye(1, x.size, i)[0] for i in entries]
    directions = list(axes)
    if joint and x.size > 1:
        directions += finite_differences.seeded_directions(x, DIRECTIONS, seed)
    seen = finite_differences.sides(f, x, directions)
    verdicts = [_along(one) for one in seen]
    worst = next((v for v in ("DISCONTINUOUS", "BOUNDARY", "KINK") if v in verdicts), "smooth")
    telling = seen[verdicts.index(worst)] if worst != "smooth" else seen[0]
    own = seen[: len(axes)]
    return Behaviour(
        worst,
        [None if one.left is None else one.left.slope for one in own],
        [None if one.right is None else one.right.slope for one in own],
        max((side.slope_bound for one in own for side in (one.left, one.right) if side is not None), default=0.0),
        telling.value,
        (
            None if telling.left is None else telling.left.limit,
            None if telling.right is None else telling.right.limit,
        ),
    )


def inside(found: Sequence[float], seen: Behaviour) -> bool:
    """Whether each returned value lies between the slopes of its entry, as far as they are known."""
    for value, left, right in zip(found, seen.left, seen.right, strict=True):
        if left is None or right is None or not math.isfinite(value):
            return False
        slack = seen.bound + 1e-9 * max(abs(left), abs(right), abs(value))
        if not min(left, right) - slack <= value <= max(left, right) + slack:
            return False
    return True


def _along(seen: finite_differences.Sides) -> str:
    sides: list[Any] = [seen.left, seen.right]
    for side in sides:
        if side is not None and abs(side.limit - seen.value) > 10 * side.limit_bound + 1e-6 * max(1.0, abs(seen.value)):
            return "DISCONTINUOUS"
    if any(side is None or not math.isfinite(side.slope) for side in sides):
        return "BOUNDARY"
    left, right = sides
    gap = abs(right.slope - left.slope)
    if gap > CLEAR * (left.slope_bound + right.slope_bound) + 1e-6 * max(abs(left.slope), abs(right.slope)):
        return "KINK"
    return "smooth"
