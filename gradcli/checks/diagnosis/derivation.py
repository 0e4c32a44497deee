"""Derives a directional derivative edge by edge, with every mutation of the error model as a graph.

For every edge: the cotangent that arrives, what is passed on, how the argument moves along the direction, and what
would be passed on by mistake. A mutation changes the directional derivative by (wrong - sent) * tangent, so one sweep
back and one forward serve all of them. Only diagnosis uses this: no verdict depends on it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from gradcli.checks.diagnosis import error_model
from gradcli.checks.diagnosis.error_model import Edge, Slip
from gradcli.checks.subjects import paired
from gradcli.diagnostics import GradcliError
from gradcli.graph.node import CONSTANT, Node
from gradcli.transforms.flows import clean
from gradcli.transforms.forward import push
from gradcli.transforms.reverse import between, chain, is_zero, sweep

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gradcli.graph.builder import Builder
    from gradcli.transforms.flows import Flow


class Wrong(NamedTuple):
    """A mistake at an edge: what is passed on by mistake, instead of what is."""

    slip: Slip
    edge: Edge
    sent: Node  # by mistake
    tangent: Node  # of the argument


class Passed(NamedTuple):
    """What one edge, or all edges that leave a node, contribute to the result."""

    edge: Edge | None
    node: Node
    sent: Node
    tangent: Node


class Inner(NamedTuple):
    """A node whose own derivative may be left out or be written wrongly: `tangent` is right, `instead` stands there."""

    slip: Slip
    node: Node
    cotangent: Node
    tangent: Node
    instead: Node


OUTER = ("add", "sub", "neg", "mul", "div", "sum", "name")

INNER = Slip("inner derivative dropped", "the inner derivative is missing")
PRODUCTS = Slip("product of derivatives", "the derivative of a product is not a product of derivatives")
QUOTIENTS = Slip("quotient of derivatives", "the derivative of a quotient is not a quotient of derivatives")
UNSQUARED = Slip("denominator not squared", "the denominator of the quotient rule was not squared")


class Derivation:
    """The derivation of `output` by `target` along `direction`, and the mistakes that could have been made in it.

    `complete` is False where there were more mistakes than `most` new nodes could hold.
    """

    def __init__(self, builder: Builder, output: Node, target: Node, direction: Node, most: int) -> None:
        self.builder = builder
        self.target = target
        self.direction = direction
        self.wrong: list[Wrong] = []
        self.passed: list[Passed] = []
        self.inner: list[Inner] = []
        self.complete = True
        self.nodes = 0
        self._end = builder.count + most
        self._flows: dict[Node, Flow] = {}
        self._edges: list[tuple[Edge, Node | None]] = []
        self.outer: set[Node] = {output}  # nodes that the output is a combination of
        one = builder.constant(1, output.shape)
        sweep(builder, [(output, (one, None))], [target], observer=self._observe)
        self._tangents(output)
        self._slips()

    # --- inner ----------------------------------------------------------------------------------------------

    def _observe(self, node: Node, flow: Flow, sent: list[tuple[Node, Flow]]) -> None:
        self.nodes += 1
        self._flows[node] = flow
        ct, mask = flow
        if node in self.outer and node.primitive.name in OUTER:
            self.outer.update(node.args)
        if node.primitive.kind == "elementwise":
            assert node.primitive.partials is not None
            partials = node.primitive.partials(*node.args, out=node, **node.params)
            going = {arg for arg, _ in sent}
            for position, (arg, partial) in enumerate(zip(node.args, partials, strict=True)):
                if arg in going and partial is not None and not is_zero(partial):
                    own = clean(self.builder, (chain(self.builder, partial, ct), mask))
                    self._edges.append((Edge(node, position, arg, ct, partial, own, self.target), mask))
            return
        pending = list(sent)
        for position, arg in enumerate(node.args):
            if pending and pending[0][0] is arg:
                _, (own, below) = pending.pop(0)
                made = clean(self.builder, (own, below))
                passed, partial = ct, None
                if not node.primitive.pointwise:
                    passed = clean(self.builder, flow)
                elif node.primitive.kind == "composite" and len(node.args) == 1:
                    partial = error_model.partial_of(node, arg)
                self._edges.append((Edge(node, position, arg, passed, partial, made, self.target), below))

    def _tangents(self, output: Node) -> None:
        order = [node for node in between([output], [self.target]) if node.type.kind == "float"]
        found = push(self.builder, order, {self.target: self.direction}, stops=[self.target])
        self.tangents = {node: t for node, t in zip(order, found, strict=True) if t is not None}

    def _slips(self) -> None:
        uses: dict[Node, int] = {}
        for edge, _ in self._edges:
            uses[edge.arg] = uses.get(edge.arg, 0) + 1
        for edge, mask in self._edges:
            tangent = self.tangents.get(edge.arg)
            if tangent is None:
                continue
            self.passed.append(Passed(edge, edge.arg, edge.sent, tangent))
            for slip, sent in self._wrong(edge, mask):
                if sent is not edge.sent and sent.shape == edge.arg.shape:
                    self.wrong.append(Wrong(slip, edge, sent, tangent))
            if self.builder.count > self._end:
                self.complete = False
                return
        for node, (ct, mask) in self._flows.items():
            tangent = self.tangents.get(node)
            if tangent is None:
                continue
            cotangent = clean(self.builder, (ct, mask))
            if uses.get(node, 0) > 1:
                self.passed.append(Passed(None, node, cotangent, tangent))
            for slip, instead in self._instead(node, tangent):
                self.inner.append(Inner(slip, node, cotangent, tangent, instead))

    def _wrong(self, edge: Edge, mask: Node | None) -> Iterator[tuple[Slip, Node]]:
        builder, node = self.builder, edge.node
        try:
            if node.primitive.pointwise and node.primitive.kind != "linear":
                for slip, partial in error_model.local(edge):
                    if partial is not None and not is_zero(partial):
                        yield slip, clean(builder, (chain(builder, partial, edge.cotangent), mask))
            else:
                yield from error_model.of_arrays(edge)
        except GradcliError:  # the limits of the script: what has been made so far is tried
            self.complete = False

    def _instead(self, node: Node, tangent: Node) -> Iterator[tuple[Slip, Node]]:
        name = node.primitive.name
        moving = [self.tangents[arg] for arg in node.args if arg in self.tangents]
        plain = moving == [self.direction] or tangent in moving  # then it is the mistake of an edge, or of an argument
        if node.type == self.target.type and tangent is not self.direction and node.args and not plain:
            yield INNER, self.direction
        if name == "div" and tangent.primitive is not CONSTANT and node.args[1] in self.tangents:
            yield UNSQUARED, tangent * node.args[1]
        if self.target.type.shape or name not in ("mul", "div"):
            return
        one, other = (self.tangents.get(arg) for arg in node.args)
        if one is not None and other is not None and node.args[0] is not node.args[1]:
            yield (PRODUCTS, one * other) if name == "mul" else (QUOTIENTS, one / other)


def needed(found: Derivation) -> list[Node]:
    """The nodes whose values tell what every mistake would change, each once."""
    nodes: dict[Node, None] = {}
    for passed in found.passed:
        nodes |= {passed.sent: None, passed.tangent: None}
    for wrong in found.wrong:
        nodes[wrong.sent] = None
    for inner in found.inner:
        nodes |= {inner.cotangent: None, inner.tangent: None, inner.instead: None}
    return list(nodes)


def change(builder: Builder, found: Wrong | Passed | Inner, factor: Any = None) -> Node:
    """By how much a mistake changes the directional derivative, as a node; `factor` for what is passed on, times it."""
    if isinstance(found, Inner):
        return paired(found.instead - found.tangent, found.cotangent)
    if isinstance(found, Passed):
        return paired(found.tangent, builder.call("mul", found.sent, factor - 1))
    return paired(found.tangent, found.sent - found.edge.sent)
