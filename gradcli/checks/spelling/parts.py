"""Nodes go in, what they are made of comes out: terms with signs, squares, entries taken; and parts put together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gradcli.graph.node import Node

if TYPE_CHECKING:
    from collections.abc import Callable


def plain(node: Node) -> Node:
    """A node without the names that a script gave it."""
    while node.primitive.name in ("name", "broadcast", "reshape") and node.args[0].shape == node.shape:
        node = node.args[0]
    return node


def named(node: Node, *names: str) -> bool:
    return node.primitive.name in names


def is_number(node: Node, value: int) -> bool:
    return node.constant == value


def terms(node: Node) -> list[tuple[Node, int]]:
    """The two terms of a sum or difference with their signs; none for anything else."""
    node = plain(node)
    if named(node, "add", "sub"):
        one, other = map(plain, node.args)
        found = [(one, 1), (other, 1 if named(node, "add") else -1)]
        return [(plain(t.args[0]), -sign) if named(t, "neg") else (t, sign) for t, sign in found]
    return []


def parted(node: Node, wanted: Callable[[Node], bool]) -> tuple[Node, int, Node, int] | None:
    """The term of a sum that is wanted with its sign, and the other term with its sign."""
    pair = terms(node)
    for (term, sign), (rest, other) in (pair, pair[::-1]) if pair else ():
        if wanted(term):
            return term, sign, rest, other
    return None


def of_square(node: Node) -> Node | None:
    """x where a node is the square of x."""
    node = plain(node)
    if named(node, "power") and node.params["n"] == 2:
        return plain(node.args[0])
    if named(node, "mul") and plain(node.args[0]) is plain(node.args[1]):
        return plain(node.args[0])
    return None


def difference(one: Node, other: Node) -> Any:
    """one - other, without the terms that both have."""
    one, other = plain(one), plain(other)
    if one is other:
        return 0
    ours, theirs = signed(one), signed(other)
    for term in list(ours):
        if term in theirs:
            ours.remove(term)
            theirs.remove(term)
    if len(ours) == len(signed(one)):
        return one - other
    total: Any = 0
    for (part, sign), side in [*((t, 1) for t in ours), *((t, -1) for t in theirs)]:
        value: Any = part if sign * side > 0 else -part
        total = value if isinstance(total, int) else total + value
    return total


def signed(node: Node) -> list[tuple[Node, int]]:
    """The terms of a node, itself where it is no sum; as deep as two sums."""
    found: list[tuple[Node, int]] = []
    for term, sign in terms(node) or [(node, 1)]:
        found += [(inner, sign * own) for inner, own in terms(term)] or [(term, sign)]
    return found


def minus(node: Node) -> Node:
    """-x, without a second sign."""
    node = plain(node)
    return plain(node.args[0]) if named(node, "neg") else -node


def unmoved(node: Node) -> tuple[Node, list[Node]]:
    """What a node takes entries from, and the operations that take them."""
    moves = []
    while named(node, "slice", "reshape", "name"):
        moves.append(node)
        node = node.args[0]
    return node, moves


def moved(node: Node, moves: list[Node]) -> Node:
    """The same entries of another array."""
    for move in reversed(moves):
        node = move.builder.apply(move.primitive, (node,), dict(move.params))
    return node


def lifted(value: Any, like: Node) -> Node:
    made: Node = value if isinstance(value, Node) else like.builder.constant(value, like.shape)
    return made
