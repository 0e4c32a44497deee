"""An operation and the types of its operands go in, plans for its value and its gradients come out; knows no tensor.

An operation is traced once, on the nodes of a graph, and its derivative is the one that the transforms derive from
the declarations: there is no second set of rules. The same plan runs on raw arrays, and, where derivatives of
derivatives are wanted, on tensors. From the trace comes also what a node must save: the operands that the plan reads,
and the result if the plan reads it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.execution.namespaces import namespace
from gradcli.graph.arrays import nearest_float
from gradcli.graph.builder import Builder, building
from gradcli.graph.node import CONSTANT, Node, dependents, reachable
from gradcli.graph.types import Type
from gradcli.primitives import catalogue
from gradcli.transforms.reverse import between, pull

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Array = Any
_LIMIT = 20_000
_plans: dict[Any, Plan] = {}


class Steps:
    """A straight line of operations from some nodes of a graph to others."""

    __slots__ = ("constants", "order", "results", "size", "slots", "starts", "steps")

    def __init__(self, inputs: Sequence[Node], outputs: Sequence[Node]) -> None:
        order = between(outputs, inputs)
        given = list(inputs)
        inner = [node for node in order if node not in set(given)]
        self.slots = {node: slot for slot, node in enumerate((*given, *inner))}
        self.size = len(self.slots)
        self.constants = [(self.slots[node], node) for node in inner if node.primitive is CONSTANT]
        self.order = [node for node in inner if node.primitive is not CONSTANT]
        self.steps = [
            (node.primitive.impl, self.slots[node], tuple([self.slots[arg] for arg in node.args]), _params(node))
            for node in self.order
        ]
        self.results = [self.slots[node] for node in outputs]
        self.starts: dict[Any, list[Any]] = {}

    def on_arrays(self, xp: Any, kind: np.dtype[Any], values: Sequence[Array]) -> list[Array]:
        """The results on raw arrays of one format."""
        start = self.starts.get(kind)
        if start is None:
            start = self.starts[kind] = [None] * self.size
            for slot, node in self.constants:
                number = _number(node, kind)
                start[slot] = np.broadcast_to(number, node.shape) if node.shape else number
        slots = start.copy()
        slots[: len(values)] = values
        for impl, out, args, params in self.steps:
            if params:
                slots[out] = impl(xp, *[slots[arg] for arg in args], **params)  # type: ignore[misc]
            elif len(args) == 2:
                slots[out] = impl(xp, slots[args[0]], slots[args[1]])  # type: ignore[misc]
            else:
                slots[out] = impl(xp, *[slots[arg] for arg in args])  # type: ignore[misc]
        return [slots[result] for result in self.results]

    def on_operands(
        self, kind: np.dtype[Any], values: Sequence[Any], lift: Callable[[Any], Any], apply: Callable[..., Any]
    ) -> list[Any]:
        """The results on operands: `lift` makes one of an array, `apply` applies an operation."""
        slots: list[Any] = [None] * self.size
        slots[: len(values)] = values
        for slot, node in self.constants:
            slots[slot] = lift(np.full(node.shape, _number(node, kind)))
        for node in self.order:
            slots[self.slots[node]] = apply(
                node.primitive, tuple([slots[self.slots[arg]] for arg in node.args]), node.params
            )
        return [slots[result] for result in self.results]


class Backward:
    """The gradients of an operation for some of its operands, and what has to be saved for them."""

    __slots__ = ("needs_out", "positions", "reads", "steps")

    def __init__(self, plan: Plan, mask: tuple[bool, ...]) -> None:
        wanted = [i for i, needed in enumerate(mask) if needed]
        builder = plan.builder
        with building(builder, reachable([plan.out, *plan.leaves])):
            ct = builder.fresh_leaf(plan.out.type)
            found = pull(builder, [(plan.out, ct)], [plan.leaves[i] for i in wanted])
        self.positions = [i for i, node in zip(wanted, found, strict=True) if node is not None]
        results = [node for node in found if node is not None]
        is_leaf = plan.out in plan.leaves
        stops = (ct, *plan.leaves) if is_leaf else (ct, *plan.leaves, plan.out)
        used = set(between(results, stops))
        self.reads = tuple(i for i, leaf in enumerate(plan.leaves) if leaf in used)
        self.needs_out = not is_leaf and plan.out in used
        inputs = [ct, *[plan.leaves[i] for i in self.reads]]
        if self.needs_out:
            inputs.append(plan.out)
        self.steps = Steps(inputs, results)


class Plan:
    """One operation on operands of known types."""

    __slots__ = ("backwards", "builder", "differentiable", "forward", "leaves", "out", "pointwise")

    def __init__(
        self, function: Callable[..., Any], types: Sequence[Type], params: dict[str, Any], pointwise: bool
    ) -> None:
        self.builder = Builder(catalogue(), entries=2**62)
        self.leaves = [self.builder.fresh_leaf(type) for type in types]
        self.out: Node = function(*self.leaves, **params)
        self.forward = Steps(self.leaves, [self.out])
        self.pointwise = pointwise
        moved = [dependents(reachable([self.out]), [leaf]) for leaf in self.leaves]
        self.differentiable = tuple(self.out in found for found in moved)
        self.backwards: dict[tuple[bool, ...], Backward] = {}

    def backward(self, mask: tuple[bool, ...]) -> Backward:
        """The plan of the gradients for the operands in this mask; made once."""
        found = self.backwards.get(mask)
        if found is None:
            found = self.backwards[mask] = Backward(self, mask)
        return found


def plan_of(
    function: Callable[..., Any],
    shapes: tuple[tuple[int, ...], ...],
    kinds: tuple[str, ...],
    params: dict[str, Any],
    pointwise: bool,
) -> Plan:
    """The plan of an operation; entry-by-entry operations have one plan for all shapes."""
    key = (function, kinds if pointwise else (shapes, kinds), tuple(params.items()))
    plan = _plans.get(key)
    if plan is None:
        if len(_plans) >= _LIMIT:
            _plans.clear()
        types = [Type(kind, () if pointwise else shape) for kind, shape in zip(kinds, shapes, strict=True)]
        plan = _plans[key] = Plan(function, types, params, pointwise)
    return plan


def names_for(kind: np.dtype[Any]) -> Any:
    """The namespace that computes with arrays of this format."""
    return namespace("numpy", "float64" if kind == np.float64 else "float32")


def _number(node: Node, kind: np.dtype[Any]) -> Any:
    if node.type.kind == "bool":
        return np.bool_(node.params["value"])
    value = nearest_float(node.params["value"])
    if kind.kind == "f":
        return kind.type(value)
    return kind.type(int(value)) if kind.kind in "iu" and value == int(value) else np.float32(value)


def _params(node: Node) -> dict[str, Any]:
    if node.primitive.pointwise:
        return node.params
    return {**node.params, "ranks": tuple([len(arg.type.shape) for arg in node.args])}
