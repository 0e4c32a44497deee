"""A slip that gives the claim goes in, how people say it comes out: a name, a sentence, a place, and what is right."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple

from gradcli.checks.diagnosis import derivation
from gradcli.checks.diagnosis.derivation import Both, Derivation, Everywhere, Inner, Passed, Wrong
from gradcli.checks.shown import node_text
from gradcli.graph.node import CONSTANT, Node

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from gradcli.graph.builder import Builder

KEPT = "only one part kept"
MARGIN = 1  # slips that are less likely than the likeliest by more than this are not told
MOST = 3
RULES = {"mul": "product", "matmul": "product", "div": "quotient", "pow": "power"}
SIGNED = ("neg", "cos", "acos", "rsqrt", "erfc")  # operations whose derivative brings a sign


class Found(NamedTuple):
    """A slip that produces the claim, with its place: the text tells what is wrong, `rule` what is right."""

    name: str
    told: str
    cost: int
    node: Node
    slip: Wrong | Passed | Inner | Both | Everywhere
    factor: Fraction | None = None
    places: tuple[tuple[str, Node], ...] = ()  # where else a slip has the same effect, by the name that it has there
    cause: str | None = None  # another name for the same wrong formula
    scale: float = 1.0  # of the claim, where it lacks a constant factor beside

    def result(self, builder: Builder, right: Node) -> Node:
        """The directional derivative with this slip in it."""
        if self.kept and isinstance(self.slip, Passed):
            return derivation.dot(builder, self.slip.sent, self.slip.tangent)
        return builder.call("add", right, derivation.change(builder, self.slip, self.factor))

    @property
    def kept(self) -> bool:
        """Whether all but this part of the derivative is missing."""
        return self.name == KEPT


def likeliest(found: Iterable[Found]) -> list[Found]:
    """At most three slips: the likeliest, one for each name and node."""
    ordered = sorted(found, key=lambda one: (one.cost, -one.node.serial))
    kept: dict[Any, Found] = {}
    for one in ordered:
        if one.cost <= ordered[0].cost + MARGIN:
            kept.setdefault((one.name, one.node), one)
    return list(kept.values())[:MOST]


def part(one: Passed, factor: Fraction, made: Derivation) -> Found:
    """A part of the derivative with another factor, as people say it."""
    edge, arg = one.edge, f"`{node_text(one.node, 40)}`"
    if edge is None:
        if factor == 0:
            return Found("held constant", f"{arg} was held constant", 1, one.node, one, factor)
        if factor == -1:
            return Found("wrong sign", f"the sign of the part through {arg} is wrong", 3, one.node, one, factor)
        return Found("factor of a part", _missing(factor, arg), 3, one.node, one, factor)
    node, position = edge.node, edge.position
    operation = node.primitive.name
    other = node.args[1 - position].constant if operation in ("mul", "div") else None
    if factor == 0:
        several = sum(1 for way in made.passed if way.edge is not None and way.edge.node is node) > 1
        if several and operation in RULES:
            text = f"the term of {arg} in the {RULES[operation]} rule is missing"
            return Found("product term dropped", text, 1, node, one, factor)
        if operation in ("add", "sub", "concat"):
            return Found("term dropped", f"the derivative of the term {arg} is missing", 1, node, one, factor)
        return Found("held constant", f"`{node_text(node, 40)}` was held constant", 3, node, one, factor)
    if factor == -1:
        brings = operation in SIGNED or (operation in ("sub", "div") and position == 1)
        brings = brings or (operation == "power" and node.params["n"] < 0)
        brings = brings or (isinstance(other, int | Fraction) and other < 0)
        name = "quotient sign" if operation == "div" and position else "wrong sign"
        return Found(name, f"the sign of the derivative by {arg} is lost", 1 if brings else 2, node, one, factor)
    if isinstance(other, int | Fraction) and other != 0 and not (operation == "div" and position):
        inverse = operation == "div"
        if factor == (other if inverse else 1 / Fraction(other)):
            name = "mean factor forgotten" if inverse and _counts(node, other) else "constant factor"
            if node not in made.outer:
                name = "chain factor dropped"
            told = f"the factor {'1/' if inverse else ''}{other} is missing"
            return Found(name, told, 1, node, one, factor)
    return Found("factor of a part", _missing(factor, arg), 3, node, one, factor)


def _missing(factor: Fraction, part: str) -> str:
    """A factor that a part of the derivative should not have, or lacks."""
    if 0 < abs(factor) < 1:
        return f"the factor {1 / factor} is missing in the part through {part}"
    return f"the part through {part} has a factor {factor} too much"


def _counts(node: Node, number: Any) -> bool:
    """Whether a number is the count of the entries that a sum below has added up."""
    top = node.args[0]
    return top.primitive.name == "sum" and top.args[0].type.size == number * top.type.size


def told(one: Wrong) -> str:
    """The sentence of a slip in a local rule."""
    edge = one.edge
    partial = edge.partial
    right = str(partial) if not isinstance(partial, Node) else node_text(partial, 40)
    other = edge.node.args[1 - edge.position] if len(edge.node.args) == 2 else edge.arg
    return one.slip.told.format(
        node=f"`{node_text(edge.node, 40)}`",
        arg=f"`{node_text(edge.arg, 40)}`",
        other=f"`{node_text(other, 40)}`",
        target=f"`{node_text(edge.target, 40)}`",
        right=f"`{right}`",
        n=edge.node.params.get("n", ""),
    )


def rule_of(found: Found, write: Callable[[Node], str | None], longest: int = 80) -> str | None:
    """The right local rule at the node of a slip; None where `write` knows no short text for it."""
    slip = found.slip
    if isinstance(slip, Inner | Both):
        return None
    edge = slip.slips[0].edge if isinstance(slip, Everywhere) else slip.edge
    if edge is None or edge.partial is None or edge.arg.primitive is CONSTANT:
        return None
    partial = edge.partial
    right = write(partial) if isinstance(partial, Node) else str(partial)
    if right is None or len(right) > longest:
        return None
    by, whole = node_text(edge.arg, longest // 2), node_text(edge.node, longest // 2)
    return f"the derivative of `{whole}` by `{by}` is `{right}`"
