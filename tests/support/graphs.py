"""Small graphs made by hand, and finite differences of their values: what tests of transforms stand on."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.execution.evaluate import evaluate
from gradcli.graph.node import Builder, Node
from gradcli.graph.primitive import Primitive

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

MODULES = "arithmetic comparison movement positions contraction exponential powers trigonometric hyperbolic".split()


def vocabulary() -> dict[str, Primitive]:
    """The operations of the modules above, by name."""
    found = {}
    for module in MODULES:
        for value in vars(import_module(f"gradcli.primitives.{module}")).values():
            if isinstance(value, Primitive):
                found[value.name] = value
    return found


VOCABULARY = vocabulary()


class Graph:
    """A builder with short ways to write a graph: `g.leaf("x")`, `g.sin(x)`, `g.sum(x)`."""

    def __init__(self) -> None:
        self.builder = Builder(VOCABULARY)

    def leaf(self, name: str, *shape: int) -> Node:
        return self.builder.leaf(name, shape)

    def sum(self, x: Node, axis: tuple[int, ...] | None = None) -> Node:
        axes = tuple(range(-len(x.shape), 0)) if axis is None else axis
        return self.builder.call("sum", x, axis=axes) if axes else x

    def spread(self, x: Node, *shape: int) -> Node:
        ones = self.builder.call("reshape", x, shape=(1,) * (len(shape) - len(x.shape)) + x.shape)
        return self.builder.call("broadcast", ones, shape=shape)

    def __getattr__(self, name: str) -> Any:
        primitive = VOCABULARY[name.rstrip("_")]
        return lambda *xs, **params: self.builder.bind(primitive, xs, params)


def value(node: Node, at: Mapping[str, Any], **options: Any) -> Any:
    """The value of one node."""
    return evaluate(node, at, **options)[0]


def values(nodes: Sequence[Node], at: Mapping[str, Any], **options: Any) -> list[Any]:
    """The values of several nodes."""
    return evaluate(list(nodes), at, **options)


STENCIL = ((-2, 1 / 12), (-1, -2 / 3), (1, 2 / 3), (2, -1 / 12))


def difference(node: Node, at: Mapping[str, Any], name: str, step: float = 1e-3) -> np.ndarray[Any, Any]:
    """The Jacobian of a node's value in one leaf by differences of fourth order: output shape + leaf shape."""
    point = np.asarray(at[name], dtype=float)
    columns = []
    for index in np.ndindex(point.shape):
        column: Any = 0.0
        for shift, weight in STENCIL:
            moved = point.copy()
            moved[index] += shift * step
            column = column + weight / step * np.asarray(value(node, {**at, name: moved}))
        columns.append(column)
    stacked = np.stack(columns, axis=-1)
    return stacked.reshape(stacked.shape[:-1] + point.shape)


def scalarised(g: Graph, node: Node, at: dict[str, Any], names: list[str]) -> Node:
    """A fixed generic combination of the entries of a node, so that its gradient can be taken again."""
    name = f"weights{len(names)}"
    names.append(name)
    at[name] = np.cos(1.0 + np.arange(node.type.size)).reshape(node.shape)
    return g.sum(node * g.leaf(name, *node.shape))
