"""Plans: how an operation computes its value and its gradients, for operands of given types.

An operation is traced once, on the nodes of a graph, and its derivative is the one that the transforms derive from
the declarations. The same plan runs on raw arrays, as a function written for it, and, where derivatives of derivatives
are wanted, on tensors. From the trace comes also what a node must save: the operands that the plan reads, and the
result if the plan reads it. Three derivatives are written here with the result, because PyTorch saves that: the same
operands may then be changed in place, and nothing is computed twice. A test compares them with the derived ones.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from math import prod
from typing import Any, TypeVar

import numpy as np

from gradcli.eager._engine.codegen import FunctionSource, StraightLine, straight
from gradcli.graph.building import building
from gradcli.graph.node import Builder, Node, reachable
from gradcli.graph.types import Type
from gradcli.primitives import catalogue
from gradcli.primitives.axes import stretched_back
from gradcli.transforms.forward import push
from gradcli.transforms.reverse import pull


class Cache(dict[Any, Any]):
    """A dictionary whose values have a `size`; one in which the sum of all sizes exceeds `limit` starts again.

    >>> from types import SimpleNamespace
    >>> cache = Cache(limit=8)
    >>> for k in range(6):
    ...     cache.keep(k, SimpleNamespace(size=2))
    >>> list(cache), cache.total
    ([4, 5], 4)
    """

    total = 0

    def __init__(self, limit: int) -> None:
        super().__init__()
        self.limit = limit

    def keep(self, key: Any, value: Any) -> None:
        """Add a value, alone where it does not fit beside the others."""
        if self.total + value.size > self.limit:
            self.clear()
        self[key] = value
        self.total += value.size

    def clear(self) -> None:
        """Start again."""
        super().clear()
        self.total = 0


def _sums(x: Any, axis: tuple[int, ...]) -> Any:
    return stretched_back(catalogue()["sum"](x, axis=axis), x.shape, axis)


# by operation its gradient, written with the result: PyTorch saves that, not the operand
_FROM_RESULT: dict[str, Callable[..., Any]] = {
    "sigmoid": lambda ct, out: ct * (out * (1 - out)),
    "softmax": lambda ct, out, axis: out * (ct - _sums(ct * out, axis)),
    "log_softmax": lambda ct, out, axis: ct - catalogue()["exp"](out) * _sums(ct, axis),
}
Array = Any
T = TypeVar("T")
MOST_NODES = 16_384  # of the graphs of all plans that are kept: about 60 MB
MOST_VJPS = 64  # of one plan: there is one for each set of operands that need a gradient
WARM = 3  # a plan has a recipe from its third use on: many are used once
_plans = Cache(MOST_NODES)


def limited(known: dict[Any, T], key: Any, value: T) -> T:
    """Keep one more of what there is for each set of operands; a full dictionary starts again."""
    if len(known) >= MOST_VJPS:
        known.clear()
    known[key] = value
    return value


class BackwardPlan:
    """The gradients of an operation for some of its operands, and what has to be saved for them.

    `steps` gives them from operands and result, for gradients of gradients. On arrays, `quick` also reads what the
    forward reduced to few entries (`kept`: means, positions of extremes) instead of computing it again.
    """

    __slots__ = ("forward", "kept", "needs_out", "positions", "quick", "reads", "steps")

    def __init__(self, plan: OperationPlan, mask: tuple[bool, ...]) -> None:
        wanted = [i for i, needed in enumerate(mask) if needed]
        builder = plan.builder
        with building(builder, reachable([plan.out, *plan.leaves])):
            ct = builder.fresh_leaf(plan.out.type)
            rule = _FROM_RESULT.get(plan.out.primitive.name)
            alone = plan.out.args == tuple(plan.leaves)  # whether the operation is one declared operation
            if rule is not None and alone:
                gradients: list[Any] = [rule(ct, plan.out, **plan.out.params)]
            else:
                gradients = pull(builder, [(plan.out, ct)], [plan.leaves[i] for i in wanted])
        self.positions = [i for i, node in zip(wanted, gradients, strict=True) if node is not None]
        results = [node for node in gradients if node is not None]
        # PyTorch computes a quotient again where it is read
        kept = plan.out not in plan.leaves and not (alone and plan.out.primitive.name == "div")
        used = set(reachable(results, (ct, *plan.leaves, plan.out) if kept else (ct, *plan.leaves)))
        self.reads = tuple(i for i, leaf in enumerate(plan.leaves) if leaf in used)
        self.needs_out = kept and plan.out in used
        inputs = [ct, *[plan.leaves[i] for i in self.reads]]
        if self.needs_out:
            inputs.append(plan.out)
        self.steps = StraightLine(inputs, results)
        ends = reachable(results, {*inputs, *plan.reduced})
        self.kept = [node for node in ends if node in plan.reduced and node not in inputs]
        self.quick = StraightLine([*inputs, *self.kept], results) if self.kept else self.steps
        self.forward = StraightLine(plan.leaves, [plan.out, *self.kept]) if self.kept else plan.forward


class Vjp:
    """How the nodes of one operation go back: for which operands, in which format, from what was saved.

    `back(node, ct)` gives a tuple of gradients, in the order of the node's edges, None where there is none.
    """

    def __init__(
        self,
        plan: OperationPlan,
        mask: tuple[bool, ...],
        kind: np.dtype[Any],
        shown: tuple[int, ...],
        mixed: bool,
        turned: tuple[int, ...],
    ) -> None:
        self.plan = plan
        self.backward = plan.backward(mask)
        self.kind = kind
        self.mask = mask
        self.shown = shown
        self.mixed = mixed
        self.reads = self.backward.reads
        self.needs_out = self.backward.needs_out
        at = {i: place for place, i in enumerate(self.backward.positions)}
        self.turned = {self.backward.steps.outputs[at[i]] for i in turned if i in at}
        self.where = [at.get(i, -1) for i in shown]
        self.lacking = any(mask[i] and at < 0 for i, at in zip(shown, self.where, strict=True))

    def fitted_to(self, types: Sequence[Any], shape: tuple[int, ...]) -> tuple[Any, ...] | None:
        """For each edge the shape and format that its gradient has to be fitted to; None where all have theirs."""
        apart = self.plan.pointwise and any(self.mask[i] and types[i][0] != shape for i in self.shown)
        if not (self.mixed or self.lacking or apart):
            return None
        return tuple([types[i] if self.mask[i] else None for i in self.shown])

    def suited(self, value: Array) -> Array:
        """A saved array in the format of the computation, if it is one of floating-point numbers."""
        return value.astype(self.kind) if value.dtype.kind in "fc" and value.dtype != self.kind else value

    @cached_property
    def back(self) -> Any:
        """The function `back(node, ct)`, written when it is first needed."""
        steps = self.backward.quick
        script = FunctionSource(self.kind)
        script.backward, script.turned = True, self.turned
        count = len(steps.inputs) - 1
        if count:
            script.lines.append("saved = node.saved")
            script.lines += [f"s{i} = saved[{i}]" for i in range(count)]
            script.lines += _unchanged(count - len(self.backward.kept))
            if self.mixed:
                suited = script.name(self.suited)
                script.lines += [f"v{i} = {suited}(s{i}._raw)" for i in range(count)]
            else:
                script.lines += [f"v{i} = s{i}._raw" for i in range(count)]
        names = ["ct", *[f"v{i}" for i in range(count)]]
        if self.kind.kind == "c":  # PyTorch's gradient is the conjugate of what the rules define
            script.lines.append(f"ct = {script.name(np.conj)}(ct)")
        results = straight(script, dict(zip(steps.inputs, names, strict=True)), steps.order, steps.outputs)
        if self.kind.kind == "c":
            results = [f"{script.name(np.conj)}({result})" for result in results]
        lacking = f"{script.name(np.zeros_like)}(ct)" if self.plan.pointwise else "None"
        masked = [self.mask[i] for i in self.shown]
        shown = [
            results[at] if at >= 0 else lacking if needed else "None"
            for at, needed in zip(self.where, masked, strict=True)
        ]
        return script.function("back", "node, ct", f"return ({', '.join(shown)},)")


def _unchanged(count: int) -> list[str]:
    """The lines that check that saved values still have the versions they had."""
    counters = [f"(c := s{i}._count) is not None and c.value" for i in range(count)]
    return [
        "known = node.vers",
        "if known is None:",
        f"    if {' or '.join(f'({change})' for change in counters)}: node.check_versions()",
        f"elif {' or '.join(f'({change} != known[{i}])' for i, change in enumerate(counters))}: node.check_versions()",
    ]


def _reduced(order: Sequence[Node], out: Node) -> set[Node]:
    """What is computed from a quarter of the entries or fewer to which something was reduced, but for the result."""
    sizes = {node: prod(node.shape) for node in order}
    reduced: set[Node] = set()
    for node in order:
        largest = max([sizes[arg] for arg in node.args], default=0)
        few = 4 * sizes[node] <= largest and node.primitive.name != "slice"  # which takes no time
        if node is not out and (few or (sizes[node] <= largest and not reduced.isdisjoint(node.args))):
            reduced.add(node)
    return reduced


class OperationPlan:
    """One operation on operands of known types."""

    def __init__(
        self, function: Callable[..., Any], types: Sequence[Type], params: dict[str, Any], pointwise: bool
    ) -> None:
        self.builder = Builder(catalogue(), entries=2**62)
        self.leaves = [self.builder.fresh_leaf(type) for type in types]
        self.out: Node = function(*self.leaves, **params)
        self.forward = StraightLine(self.leaves, [self.out])
        self.params = params
        self.pointwise = pointwise
        order = reachable([self.out])
        self.size = len(order) + len(self.leaves)
        moving = {self.out}
        for node in reversed(order):
            if node in moving and node.primitive.kind != "nondifferentiable":
                moving.update(node.args)
        self.differentiable = tuple([leaf in moving for leaf in self.leaves])
        self.reduced = set() if pointwise else _reduced(order, self.out)
        self.backwards: dict[tuple[bool, ...], BackwardPlan] = {}
        self.tangents: dict[tuple[bool, ...], StraightLine | None] = {}
        self.vjps: dict[Any, Vjp] = {}
        self.used = 0

    def value(self, kind: np.dtype[Any], arrays: Sequence[Array], mask: tuple[bool, ...]) -> list[Array]:
        """The result on raw arrays of one format, and what is kept for the gradients of the operands in a mask."""
        self.used += 1
        steps = self.backward(mask).forward if True in mask else self.forward
        return steps.function(kind)(*arrays)

    def backward(self, mask: tuple[bool, ...]) -> BackwardPlan:
        """The plan of the gradients for the operands in this mask; made once."""
        return self.backwards.get(mask) or limited(self.backwards, mask, BackwardPlan(self, mask))

    def tangent(self, mask: tuple[bool, ...]) -> StraightLine | None:
        """The result's tangent from the operands, the result, and the tangents of those in a mask; made once."""
        if mask in self.tangents:
            return self.tangents[mask]
        moving = [leaf for leaf, moves in zip(self.leaves, mask, strict=True) if moves]
        with building(self.builder, reachable([self.out, *self.leaves])):
            tangents = [self.builder.fresh_leaf(leaf.type) for leaf in moving]
            (out,) = push(self.builder, [self.out], dict(zip(moving, tangents, strict=True)))
        stop = [] if self.out in self.leaves else [self.out]
        return limited(
            self.tangents, mask, None if out is None else StraightLine([*self.leaves, *stop, *tangents], [out])
        )

    def vjp(
        self,
        mask: tuple[bool, ...],
        kind: np.dtype[Any],
        shown: tuple[int, ...],
        mixed: bool = False,
        turned: tuple[int, ...] = (),
    ) -> Vjp:
        """How its nodes go back; made once. `turned`: operands that lie column by column, as their gradients will."""
        key = (mask, kind, shown, mixed, turned)
        return self.vjps.get(key) or limited(self.vjps, key, Vjp(self, *key))


def plan_of(
    function: Callable[..., Any],
    shapes: tuple[tuple[int, ...], ...],
    kinds: tuple[str, ...],
    params: dict[str, Any],
    pointwise: bool,
) -> OperationPlan:
    """The plan of an operation; entry-by-entry operations have one plan for all shapes."""
    key = (function, kinds if pointwise else (shapes, kinds), tuple(params.items()))
    plan: OperationPlan | None = _plans.get(key)
    if plan is None:
        types = [Type(kind, () if pointwise else shapes[i]) for i, kind in enumerate(kinds)]
        plan = OperationPlan(function, types, params, pointwise)
        _plans.keep(key, plan)
    return plan
