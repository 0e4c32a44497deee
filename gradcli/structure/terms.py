"""Splits a scalar node into the terms that it is a sum of: nodes whose entries add up to it, each with a weight.

Sums, negatives, and products or quotients with constants are taken apart; a product of a row and a column becomes its
products. What is left is a term.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradcli.graph.arrays import nearest_float
from gradcli.graph.builder import building
from gradcli.graph.node import CONSTANT, Node, reachable

if TYPE_CHECKING:
    from gradcli.graph.builder import Builder

    Weighted = list[tuple[Node, float]]

KEPT = ("reshape", "permute")  # the same entries in another order
MOST_TERMS = 1_000


def terms_of(output: Node) -> Weighted:
    """The nodes whose weighted entries add up to a scalar, up to a constant.

    >>> from gradcli.graph.builder import Builder
    >>> from gradcli.primitives import catalogue
    >>> x = Builder(catalogue()).leaf("x")
    >>> [(term.name or term.primitive.name, weight) for term, weight in terms_of(x*x - x/4 + 3)]
    [('mul', 1.0), ('x', -0.25)]
    """
    terms: Weighted = []
    waiting: Weighted = [(output, 1.0)]
    with building(output.builder, reachable([output])) as builder:
        while waiting:
            node, weight = waiting.pop()
            parts = _parts(builder, node, weight) if len(terms) + len(waiting) < MOST_TERMS else None
            if parts is None:
                terms.append((node, weight))
            else:
                waiting += reversed(parts)
    together: dict[Node, float] = {}
    for node, weight in terms:
        together[node] = together.get(node, 0.0) + weight
    return [(node, weight) for node, weight in together.items() if node.primitive is not CONSTANT]


def _parts(builder: Builder, node: Node, weight: float) -> Weighted | None:
    """What a node is a sum of, or None where it is a term."""
    name, args = node.primitive.name, node.args
    if name == "add":
        return [(arg, weight) for arg in args]
    if name == "sub":
        return [(args[0], weight), (args[1], -weight)]
    if name == "neg":
        return [(args[0], -weight)]
    if name == "sum" or name in KEPT:
        return [(args[0], weight)]
    if name in ("mul", "div"):
        for at, other in ((1, args[0]), (0, args[1])):
            number = args[at].constant
            if number is not None and (name == "mul" or (at == 1 and number != 0)):
                factor = nearest_float(number)
                return [(other, weight * factor if name == "mul" else weight / factor)]
        return None
    if name == "matmul" and node.type.size == 1:
        size = (args[0].type.size,)
        row, column = (builder.call("reshape", arg, shape=size) for arg in args)
        return [(builder.call("mul", row, column), weight)]
    return None
