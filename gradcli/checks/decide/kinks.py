"""Where a program may not be smooth.

The declaration of an operation names the surfaces on which it is not smooth, each by an expression that is zero there.
Balls decide whether a point lies on one, so a tie is exact. No derivative rule is read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from gradcli.checks.formatting import node_text
from gradcli.graph.builder import building
from gradcli.graph.node import Node, reachable
from gradcli.graph.primitive import Kink
from gradcli.graph.text import kink_texts

if TYPE_CHECKING:
    from collections.abc import Sequence

COMPARISONS = ("less", "less_equal", "greater", "greater_equal", "equal", "not_equal")
EQUAL_SIDES = Kink(lambda x, y: x - y, "both sides are equal", "the branch of the comparison")


class Surface(NamedTuple):
    """A node that is zero where another one is not smooth."""

    node: Node
    zero: Node
    kink: Kink


def surfaces(outputs: Sequence[Node]) -> list[Surface]:
    """The surfaces of every operation that the outputs need; comparisons are zero where their sides meet."""
    order = reachable(outputs)
    found: list[Surface] = []
    if not order:
        return found
    with building(order[0].builder, order):
        for node in order:
            compared = node.primitive.name in COMPARISONS and node.args[0].type.kind == "float"
            for kink in (EQUAL_SIDES,) if compared else node.primitive.kinks:
                zero = kink.surface(*node.args, **node.params)
                if isinstance(zero, Node) and zero.type.kind == "float":
                    found.append(Surface(node, zero, kink))
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
