"""`verify` accepts sound graphs and names the node of a broken one: one damaged graph for each invariant."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from gradcli.graph.arrays import ArrayData
from gradcli.graph.node import CONSTANT, DATA, LEAF, Builder, Node
from gradcli.graph.primitive import composite, elementwise, structured
from gradcli.graph.program import Leaf, Program
from gradcli.graph.types import Type
from tests.support.graph_invariants import Broken, verify, verify_pushforwards
from tests.support.graphs import VOCABULARY, Graph

if TYPE_CHECKING:
    from collections.abc import Callable

FLOAT = Type("float", ())
VECTOR = Type("float", (2,))
EXPANDED = composite("test_expanded", "", definition=lambda x: x)


def made(g: Graph, name: str, args: tuple[Node, ...], type: Type = FLOAT, serial: int = 99, **params: Any) -> Node:
    """A node that no builder would make."""
    return Node(VOCABULARY[name], args, params, type, serial, None, g.builder)


def constant(g: Graph, value: Any, type: Type = FLOAT, serial: int = 99) -> Node:
    return Node(CONSTANT, (), {"value": value}, type, serial, None, g.builder)


def without_rule(g: Graph) -> Node:
    silent = elementwise("test_silent", "", impl=lambda xp, x: x, partials=lambda x, *, out: (1,))
    silent.partials = None
    return Node(silent, (g.leaf("x"),), {}, FLOAT, 99, None, g.builder)


BROKEN: dict[str, Callable[[Graph], Node]] = {
    "not older": lambda g: made(g, "sin", (g.leaf("x"),), serial=1),
    "another builder": lambda g: made(g, "sin", (Builder(VOCABULARY).leaf("x"),)),
    "axis counts axes from the front": lambda g: made(g, "sum", (g.leaf("v", 2),), axis=(0,)),
    "axes counts axes from the front": lambda g: made(
        g, "permute", (g.leaf("A", 2, 2),), Type("float", (2, 2)), axes=(1, 0)
    ),
    "not a plain value": lambda g: made(g, "power", (g.leaf("x"),), n=[2]),
    "unknown name": lambda g: constant(g, "tau"),
    "not exact": lambda g: constant(g, 0.5),
    "whole number is not an int": lambda g: constant(g, Fraction(2)),
    "is not an int: <#": lambda g: constant(g, True),
    "not in the table": lambda g: Node(DATA, (), {"digest": "none"}, VECTOR, 99, None, g.builder),
    "data has shape": lambda g: g.builder.array("two", np.ones(2), Type("float", (3,))),
    "two inputs with one name": lambda g: (
        g.leaf("x") + g.sum(Node(LEAF, (), {"name": "x"}, VECTOR, 0, None, g.builder))
    ),
    "the same computation": lambda g: made(g, "add", (g.sin(g.leaf("x")), made(g, "sin", (g.leaf("x"),), serial=50))),
    "should have been expanded": lambda g: Node(EXPANDED, (g.leaf("x"),), {}, FLOAT, 99, None, g.builder),
    "lacks its rule": without_rule,
    "arguments, not": lambda g: made(g, "sin", (g.leaf("x"), g.leaf("x"))),
    "the type should be": lambda g: made(g, "sin", (g.leaf("v", 2),), Type("float", (3,))),
    "operands of different shapes": lambda g: made(g, "add", (g.leaf("v", 2), g.leaf("x")), VECTOR),
    "on truth values": lambda g: made(g, "sin", (g.leaf("x") > 0,), Type("bool", ())),
    "something else than a truth value": lambda g: made(g, "where", (g.leaf("x"), g.leaf("y"), g.leaf("z"))),
}


@pytest.mark.parametrize("reason", BROKEN)
def test_each_invariant_is_checked(reason: str) -> None:
    g = Graph()
    node = BROKEN[reason](g)
    with pytest.raises(Broken, match=reason):
        verify(node)


def test_sound_graphs_pass_in_every_form() -> None:
    g = Graph()
    x, v = g.leaf("x"), g.leaf("v", 2)
    table = g.builder.array("exact", ArrayData((2,), (1, 2)), VECTOR)
    output = g.sum(g.where(v > 0, v * g.spread(x, 2), table)) ** 2
    verify(output)
    verify([output, x])
    verify(Program(g.builder, {"x": Leaf("x", x)}, [output]))
    verify([])
    verify_pushforwards([])


def test_pushforwards_must_be_linear_with_transposes() -> None:
    g = Graph()
    A = g.leaf("A", 2, 2)
    good = structured(
        "test_good", "", impl=lambda xp, x, *, ranks: xp.inv(x), pushforward=[lambda t, x, *, out: -(out @ t @ out)]
    )
    verify_pushforwards(g.sum(good(A)))
    for wrong in (
        lambda t, x, *, out: t * t,
        lambda t, x, *, out: VOCABULARY["exp"](t),
        lambda t, x, *, out: x / t,
        lambda t, x, *, out: VOCABULARY["detach"](t),
    ):
        bad = structured("test_bad", "", impl=lambda xp, x, *, ranks: x, pushforward=[wrong])
        with pytest.raises(Broken, match="has no transpose in argument"):
            verify_pushforwards(g.sum(bad(A)))
