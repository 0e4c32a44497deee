"""Cotangents with their masks: what reverse mode sends from node to node."""

from __future__ import annotations

from gradcli.graph.node import is_reader

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gradcli.graph.builder import Builder
    from gradcli.graph.node import Node
    from gradcli.transforms.loops import Group

    Flow = tuple[Node, Node | None]  # a cotangent, and the mask under which it counts (None: always)


def clean(builder: Builder, flow: Flow) -> Node:
    """A cotangent with zeros where its mask says that it does not count."""
    value, mask = flow
    return value if mask is None else builder.call("where", mask, value, 0)


def added(builder: Builder, known: Flow, flow: Flow) -> Flow:
    """The sum: cotangents with one mask add up under it; others are cleaned first and count where either does."""
    if known[1] is flow[1]:
        return builder.apply(builder.vocabulary["add"], (known[0], flow[0]), {}), flow[1]
    total = builder.call("add", clean(builder, known), clean(builder, flow))
    either = None
    if known[1] is not None and flow[1] is not None:
        either = builder.call("or", known[1], flow[1])
    return total, either


def groups_of(order: Sequence[Node]) -> Mapping[Node, Group]:
    """The group of each reader of a loop; most programs have no loop, and load nothing for it."""
    if not any(map(is_reader, order)):
        return {}
    from gradcli.transforms.loops import groups

    return groups(order)
