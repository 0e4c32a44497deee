"""The definition of a composite operation, as steps on inputs of its own.

Exact readings and patterns go through definitions: what an operation is on balls, on symbols, or in which entries
depend on which follows from its steps.
"""

from __future__ import annotations

from gradcli.graph.builder import Builder
from gradcli.graph.node import reachable
from gradcli.records import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Hashable
    from typing import Any

    from gradcli.graph.node import Node


class Definition(NamedTuple):
    """`result` from `inputs`, one for each operand; `steps` are all nodes in order, the inputs among them."""

    inputs: list[Node]
    steps: list[Node]
    result: Node


def definition_key(node: Node) -> Hashable:
    """What a definition depends on: nodes with the same key have the same one, so it need not be made again."""
    return node.primitive, tuple([arg.type for arg in node.args]), tuple(node.params.items())


def written_out(node: Node, given: Callable[[Node], Node] | None = None) -> Definition:
    """The definition of an operation for operands of these types; `given` turns inputs into what is put into it.

    >>> from gradcli.primitives import catalogue
    >>> builder = Builder(catalogue())
    >>> x = builder.leaf("x", (2, 2))
    >>> [step.primitive.name for step in written_out(builder.call("logdet", x)).steps]
    ['leaf', 'det', 'log']
    """
    primitive = node.primitive
    assert primitive.definition is not None
    builder = Builder(node.builder.vocabulary)
    inputs = [builder.fresh_leaf(arg.type) for arg in node.args]
    operands: list[Any] = inputs if given is None else [given(x) for x in inputs]
    result: Node = primitive.definition(*operands, **node.params)
    builder.close()
    return Definition(inputs, reachable([result]), result)


__all__ = ["Definition", "definition_key", "written_out"]
