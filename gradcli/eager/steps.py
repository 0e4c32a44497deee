"""Nodes of a graph go in, a straight line of operations on arrays or on operands comes out; knows no rule.

The same line runs step by step, as a function printed for it, or on tensors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.eager.source import Script, names_for, number_of, straight
from gradcli.graph.node import CONSTANT, Node
from gradcli.transforms.reverse import between

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Array = Any


class Steps:
    """A straight line of operations from some nodes of a graph to others."""

    __slots__ = ("functions", "inputs", "order", "outputs", "size", "slots", "steps")

    def __init__(self, inputs: Sequence[Node], outputs: Sequence[Node]) -> None:
        given = set(inputs)
        self.inputs = list(inputs)
        self.outputs = list(outputs)
        inner = [node for node in between(outputs, inputs) if node not in given]
        self.slots = {node: slot for slot, node in enumerate((*self.inputs, *inner))}
        self.size = len(self.slots)
        self.order = inner
        self.steps: list[Any] | None = None
        self.functions: dict[Any, Any] = {}

    def function(self, kind: np.dtype[Any]) -> Callable[..., list[Array]]:
        """A function from the arrays of the inputs to those of the outputs."""
        found = self.functions.get(kind)
        if found is None:
            script = Script(kind)
            names = [f"v{i}" for i in range(len(self.inputs))]
            results = straight(script, dict(zip(self.inputs, names, strict=True)), self.order, self.outputs)
            found = self.functions[kind] = script.function("value", ", ".join(names), f"return [{', '.join(results)}]")
        return found  # type: ignore[no-any-return]

    def on_arrays(self, kind: np.dtype[Any], values: Sequence[Array]) -> list[Array]:
        """The results on raw arrays of one format, step by step: for plans that are not worth a function yet."""
        if kind in self.functions:
            return self.function(kind)(*values)
        if self.steps is None:
            self.steps = [
                (node, self.slots[node], tuple([self.slots[arg] for arg in node.args]), _params(node))
                for node in self.order
            ]
        xp = names_for(kind)
        slots: list[Any] = [None] * self.size
        slots[: len(values)] = values
        for node, out, args, params in self.steps:
            if node.primitive is CONSTANT:
                number = number_of(node, kind)
                slots[out] = np.broadcast_to(number, node.shape) if node.shape else number
            else:
                slots[out] = node.primitive.impl(xp, *[slots[arg] for arg in args], **params)
        return [slots[self.slots[result]] for result in self.outputs]

    def on_operands(
        self, kind: np.dtype[Any], values: Sequence[Any], lift: Callable[[Any], Any], apply: Callable[..., Any]
    ) -> list[Any]:
        """The results on operands: `lift` makes one of an array, `apply` applies an operation."""
        slots: list[Any] = [None] * self.size
        slots[: len(values)] = values
        for node in self.order:
            if node.primitive is CONSTANT:
                slots[self.slots[node]] = lift(np.full(node.shape, number_of(node, kind)))
            else:
                args = tuple([slots[self.slots[arg]] for arg in node.args])
                slots[self.slots[node]] = apply(node.primitive, args, node.params)
        return [slots[self.slots[result]] for result in self.outputs]


def _params(node: Node) -> dict[str, Any]:
    if node.primitive is CONSTANT or node.primitive.pointwise:
        return node.params
    return {**node.params, "ranks": tuple([len(arg.type.shape) for arg in node.args])}
