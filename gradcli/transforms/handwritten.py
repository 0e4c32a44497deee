"""Turns a hand-written rule into an operation that every sweep can follow.

The first argument of such an operation is the value of the function, the others are its operands. Oracles and
evaluators read the value; sweeps pass on what the rule says, and nothing through the value.
"""

from __future__ import annotations

from gradcli.graph.primitive import Primitive
from gradcli.transforms.reverse import pull

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence
    from typing import Any

    from gradcli.graph.node import Node

    Cotangents = Callable[[Node, Sequence[Node], Node], Sequence[Any]]


def by_hand(
    name: str, summary: str, count: int, cotangents: Cotangents, moving: Collection[int] | None = None
) -> Primitive:
    """The operation of a function of `count` operands, whose rule is `cotangents(value, operands, ct)`.

    `moving` are the operands that the rule sends something to; None: all of them.
    """
    places = range(count) if moving is None else sorted(moving)

    def transpose_in(position: int) -> Any:
        return lambda ct, value, *xs: cotangents(value, xs, ct)[position]

    def pushforward_in(position: int) -> Any:
        def push(t: Node, value: Node, *xs: Node, out: Node) -> Node:
            builder = value.builder
            ct = builder.fresh_leaf(value.type)
            back = cotangents(value, xs, ct)[position]
            moved = pull(builder, [(back, t)], [ct])[0]
            return builder.constant(0, value.type.shape) if moved is None else moved

        return push

    return Primitive(
        name,
        "structured",
        summary,
        impl=lambda xp, value, *xs, ranks: value,
        entries=lambda f, value, *xs: value,
        transpose={i + 1: transpose_in(i) for i in places},
        pushforward=[None, *(pushforward_in(i) if i in places else None for i in range(count))],
        type_rule=lambda value, *xs: value,
        arity=count + 1,
        internal=True,
        node=f"{name}Backward",
    )
