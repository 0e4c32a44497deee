"""What the derivative operators of a script made, such as `hessian(f, y)`: of which function, and by what."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from gradcli.graph.node import Node

    Slot = tuple[str, Node, Node]
    Derived = Mapping[Node, tuple[Any, ...]]  # a result -> the operator's name, its operand, variable and direction

SLOTS = {"hessian": ("axis", "axis"), "laplacian": ("trace",), "hvp": ("axis", "along"), "jvp": ("along",)}


def written_derivative(node: Node, derived: Derived) -> tuple[Node, list[Slot]] | None:
    """The node that a derivative is of, and by what; None for any other node.

    Each slot is a kind, a variable and a direction: "axis" adds the axes of the variable, "trace" two equal ones that
    are summed up, and "along" moves the variable along the direction.
    """
    slots: list[Slot] = []
    start = node
    while node in derived:
        kind, node, target, *direction = derived[node]
        along = direction[0] if direction else target
        if kind == "vjp":
            inner = written_derivative(node, derived)
            if inner is None or inner[0].type.shape or [slot[0] for slot in inner[1]] != ["axis"]:
                return None
            return inner[0], [("along", inner[1][0][1], along), ("axis", target, target), *slots]
        slots = [*((part, target, along) for part in SLOTS.get(kind, ("axis",))), *slots]
    return None if node is start else (node, slots)
