"""Proofs for networks, whose gradients are too long to be written as one formula: node by node, as reverse mode goes.

Values and cotangents of some nodes get names of their own. The cotangent of a node follows from those of the nodes that
read it, and is looked for in the graph of the claim; where it is found it is one more name. So each step compares short
formulas, and what is proved is an identity in the names, which holds for the values that they stand for.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from gradcli.formulas.index_proof import EntryDerivative, SymbolicNames, SymbolicReader, identity, written_out
from gradcli.formulas.index_terms import (
    ONE,
    ZERO,
    InputEntry,
    NoFormula,
    add,
    bases_in,
    is_truth,
    leaves_in,
    multiplied,
    over_all,
    scaled,
    single,
)
from gradcli.formulas.normal_form import undecided
from gradcli.graph.building import building
from gradcli.graph.node import LEAF, reachable
from gradcli.primitives.contraction import matmul
from gradcli.primitives.movement import broadcast, permute, reshape

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gradcli.formulas.index_proof import Assumed
    from gradcli.formulas.index_reading import At
    from gradcli.formulas.index_terms import Sum
    from gradcli.graph.node import Node

MOST_NODES = 800  # of a claim that is proved in stages
MOST_UNNAMED = 3  # nodes whose cotangents the claim does not contain
SHORT = 6  # factors of a cotangent that needs no name
MOVED = frozenset([permute, reshape, broadcast])


def equal_as_formulas(left: Node, target: Node | None, right: Node) -> Assumed | None:
    """What a proof assumes: `right` is the gradient of `left` by a target, or without one equals it, at these sizes.

    None without a proof. Raises NoFormula where a part of the claim has no formula.
    """
    reason = None
    try:
        assumed = identity(left, target, right, {}).proof()
        if assumed is not None:
            return assumed
    except NoFormula as problem:
        reason = problem
    if target is not None and not left.shape:
        stages = Stages(left, target, right)
        if len(stages.order) + len(stages.candidates) <= MOST_NODES and len(stages.left) > 1 and stages.holds():
            return stages.assumed
    if reason is not None:
        raise reason
    return None


class Cotangent(NamedTuple):
    """The derivative of the output by the entries of a node, at these indices."""

    at: At
    value: Sum


class Stages:
    """The proof that `right` is the gradient of a scalar output with respect to a target."""

    def __init__(self, output: Node, target: Node, right: Node) -> None:
        self.names = SymbolicNames({})
        self.right = right
        self.order = reachable([output])
        forward = set(self.order)
        self.candidates = [node for node in reachable([right]) if node not in forward]
        moving = {target}
        for node in self.order:
            if not moving.isdisjoint(node.args):
                moving.add(node)
        cuts = cut_nodes(self.order)
        self.called = {node: f"value {place}" for place, node in enumerate(self.order) if node in cuts - {output}}
        self.called[target] = "target of the claim"
        self.left = [node for node in self.order if node in self.called and node in moving]
        self.known = {output: Cotangent((), ONE)}
        self.target = target
        self.assumed: Assumed = {}  # in all that was read, whether the proof needs it or not

    def holds(self) -> bool:
        """Whether each step is proved; False proves nothing."""
        with building(self.right.builder, [*self.order, *self.candidates]):
            unnamed = 0
            for node in reversed(self.left):
                at = tuple([0 if n == 1 else self.names.index(n) for n in node.shape])
                try:
                    value, readers = self.cotangent(node, at)
                except NoFormula:
                    value, readers = None, []
                if node is self.target:
                    return value is not None and self.named(value, at, readers, [self.right]) is not None
                short = value is not None and sum([1 + len(term.factors) for term in value]) <= SHORT
                fitting = [other for other in self.candidates if other.shape == node.shape and other not in self.called]
                match = None if value is None or short else self.named(value, at, readers, fitting)
                if match is not None:
                    self.called[match] = f"cotangent of {self.called[node]}"
                    value = single(InputEntry(self.called[match], at))
                if value is None or (match is None and not short):
                    del self.called[node]
                    unnamed += 1
                    if unnamed > MOST_UNNAMED:
                        return False
                else:
                    self.known[node] = Cotangent(at, value)
        return False

    def cotangent(self, node: Node, at: At) -> tuple[Sum, list[Node]]:
        """The cotangent of a node by those of the named nodes that read it, and these nodes."""
        total, readers = ZERO, []
        for reader, (own, value) in self.known.items():
            entry = self.read(reader, own, {known: name for known, name in self.called.items() if known is not reader})
            change = EntryDerivative(self.called[node], at, self.names).of(entry)
            if change:
                readers.append(reader)
                total = add(total, over_all(multiplied(value, change, self.names), own, self.names))
        return written_out(total, self.names), readers

    def read(self, node: Node, at: At, called: Mapping[Node, str]) -> Sum:
        self.reader = SymbolicReader(self.names, called)
        entry = written_out(self.reader.entry(node, at), self.names)
        self.assumed |= self.reader.assumptions([], any(map(is_truth, bases_in(entry))))
        return entry

    def named(self, value: Sum, at: At, readers: list[Node], nodes: list[Node]) -> Node | None:
        """The first of some nodes that is proved to have this value; what reads the node may be written out in it."""
        leaves = leaves_in(value)
        for called in (self.called, {known: name for known, name in self.called.items() if known not in readers}):
            for candidate in nodes:
                if names_read(candidate, called) == leaves:
                    try:
                        gap = add(value, scaled(self.read(candidate, at, called), -1))
                    except NoFormula:
                        continue
                    ties = undecided(gap, self.names)
                    if ties is not None:
                        self.assumed |= self.reader.assumptions(ties, False)
                        return candidate
        return None


def cut_nodes(order: list[Node]) -> set[Node]:
    """The nodes that get names: factors and results of matrix products, and sums that several nodes read."""
    readers = Counter(arg for node in order for arg in set(node.args))
    cuts = {node for node in order if node.primitive.name == "add" and readers[node] > 1}
    for node in order:
        if node.primitive is matmul:
            cuts.add(node)
            for arg in node.args:
                while arg.primitive in MOVED:
                    arg = arg.args[0]
                cuts.add(arg)
    return {node for node in cuts if node.args and node.primitive is not LEAF}


def names_read(node: Node, called: Mapping[Node, str]) -> set[str]:
    """The names of what a node is computed from."""
    names, seen, pending = set[str](), {node}, [node]
    while pending:
        step = pending.pop()
        if step in called or step.primitive is LEAF:
            names.add(called.get(step) or step.params["name"])
        else:
            pending += [arg for arg in step.args if arg not in seen]
            seen.update(step.args)
    return names
