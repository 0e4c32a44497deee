"""Finds the operation whose rule is wrong, where the engine's own gradient was refuted.

From the output backwards, each operation is examined alone: on inputs of its own at their values, what its rule passes
on is compared with the exact derivative of its value. The first that differs is the one to blame.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gradcli.checks.decide.floats import evaluated
from gradcli.checks.diagnosis.diagnosis_context import drawn
from gradcli.checks.diagnosis.ratios import Reading, span_of
from gradcli.checks.formatting import cut, node_text
from gradcli.checks.subjects import paired
from gradcli.diagnostics import GradcliError
from gradcli.graph.builder import building
from gradcli.graph.node import CONSTANT, DATA, LEAF, Node, dependents, is_reader, reachable
from gradcli.transforms.flows import clean
from gradcli.transforms.reverse import contributions

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gradcli.checks.decide.case import Case, Floats

MOST_NODES = 150


class Alone(NamedTuple):
    """One operation on inputs of its own: the combination of its entries that is differentiated, and its rule."""

    node: Node
    argument: Node  # in the program
    scalar: Node
    leaf: Node
    sent: Node  # what the rule passes on to the leaf
    values: Mapping[str, Floats]
    by_hand: bool


def blamed(case: Case) -> list[Reading]:
    """The operation whose rule is wrong: at most one reading, confirmed in balls."""
    builder = case.output.builder
    order = [node for node in reachable([case.output]) if node.type.kind == "float"]
    if len(order) > MOST_NODES:
        return []
    limit, before = builder.limit, builder.count
    builder.limit = max(limit, before + 100 * MOST_NODES)
    try:
        with building(builder, reachable(case.subject.nodes())):
            active = dependents(order, [case.target])
            known = dict(zip(order, evaluated(order, case.values), strict=True))
            alone = [one for node in reversed(order) if node in active for one in _alone(node, active, known, case)]
        return _first_wrong(case, alone)
    except GradcliError:
        return []
    finally:
        builder.limit = limit + builder.count - before


def _alone(node: Node, active: set[Node], known: Mapping[Node, Floats], case: Case) -> list[Alone]:
    """The rule of one operation, for each argument that it passes something on to."""
    if node.primitive in (LEAF, CONSTANT, DATA) or node.primitive.kind == "nondifferentiable" or not node.args:
        return []
    builder = node.builder
    by_hand = _is_by_hand(node)
    if is_reader(node) and _holds_by_hand(node):
        return []  # a hand-written rule has a check of its own
    operands = node.args[1:] if by_hand else node.args
    moved = [
        arg for arg in dict.fromkeys(operands) if arg.type.kind == "float" and arg.primitive not in (CONSTANT, DATA)
    ]
    leaves = {arg: builder.fresh_leaf(arg.type) for arg in moved}
    values = {leaf.params["name"]: known[arg] for arg, leaf in leaves.items()}
    args = [leaves.get(arg, arg) for arg in operands]
    if by_hand:
        args = [_on(node.args[0], leaves), *args]
    again = builder.apply(node.primitive, tuple(args), dict(node.params))
    if again.primitive is not node.primitive:
        return []
    cotangent = builder.fresh_leaf(node.type)
    values[cotangent.params["name"]] = np.asarray(drawn(cotangent, case.seed, 1)[0])
    scalar = paired(again, cotangent)
    wanted = {leaves[arg] for arg in moved if arg in active}
    total: dict[Node, Node] = {}
    for leaf, flow in contributions(builder, again, (cotangent, None), wanted):
        part = clean(builder, flow)
        total[leaf] = part if leaf not in total else builder.call("add", total[leaf], part)
    back = {leaf: arg for arg, leaf in leaves.items()}
    used = {**case.values, **values}
    zero = {leaf: builder.constant(0, leaf.shape) for leaf in wanted}
    return [Alone(node, back[leaf], scalar, leaf, sent, used, by_hand) for leaf, sent in {**zero, **total}.items()]


def _is_by_hand(node: Node) -> bool:
    """Whether the rule of an operation is hand-written."""
    return node.builder.vocabulary.get(node.primitive.name) is not node.primitive


def _holds_by_hand(reader: Node) -> bool:
    """Whether a turn of a loop calls an operation with a hand-written rule."""
    inside = [step for step in reader.params["body"].steps if step.args]
    return any(_is_by_hand(step) or (is_reader(step) and _holds_by_hand(step)) for step in inside)


def _on(value: Node, leaves: Mapping[Node, Node]) -> Node:
    """A value with some nodes replaced, as a new graph."""
    replaced = dict(leaves)
    for node in reachable([value]):
        if node not in replaced and any(arg in replaced for arg in node.args):
            args = tuple(replaced.get(arg, arg) for arg in node.args)
            replaced[node] = node.builder.apply(node.primitive, args, dict(node.params))
    return replaced.get(value, value)


def _first_wrong(case: Case, alone: list[Alone]) -> list[Reading]:
    nodes = [node for one in alone for node in (one.scalar, one.leaf, one.sent)]
    if not nodes:
        return []
    exact = case.exact.beside(nodes)
    try:
        exact.begin()
        for one in alone:
            name: Any = exact.derive(one.scalar, one.leaf, [one.leaf.params["name"]], one.values)
            answer = exact.compare(one.sent, [one.values], name=name)
            if "problem" in answer or "!" not in answer["points"][0].get("relations", ""):
                continue
            return [_reading(one, answer["points"][0])]
    finally:
        case.exact.oracle.load(case.exact.table.flat)
    return []


def _reading(one: Alone, answer: Mapping[str, Any]) -> Reading:
    first = next(entry for entry in answer["details"] if entry["relation"] == "!")
    name, argument, node = one.node.primitive.name, node_text(one.argument, 40), node_text(one.node, 40)
    if one.by_hand:
        node = f"{name}({', '.join(node_text(arg, 20) for arg in one.node.args[1:])})"
    text = f"the rule of {name} is wrong at `{node}`: for the same cotangent it gives "
    text += f"{cut(first['claimed'])} for `{argument}`, not {cut(first['exact'])}"
    return Reading("wrong rule", text, node=node, span=span_of(one.node), confirmed=True)
