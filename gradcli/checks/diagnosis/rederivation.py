"""Derives the gradient once more with a single mistake in it, and names the mistake that gives exactly the claim.

The directional derivative is derived edge by edge, with every mistake of the error model as a graph: the cotangent that
arrives, what is passed on, how the argument moves along the direction, and what would be passed on by mistake. So one
sweep back and one forward serve all mistakes: each changes the derivative by (wrong - sent) * tangent. What gives the
claim in floats is dropped if balls refute it.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gradcli.checks.decide.case import RIGHT
from gradcli.checks.diagnosis import error_model
from gradcli.checks.diagnosis.diagnosis_context import CLOSE, MOST_ENTRIES
from gradcli.checks.diagnosis.error_model import Edge, Slip
from gradcli.checks.diagnosis.formula_text import as_typed, readable, shorter, valid
from gradcli.checks.diagnosis.ratios import MOST, Comparison, Reading, span_of
from gradcli.checks.formatting import counted, node_text
from gradcli.checks.subjects import paired
from gradcli.diagnostics import GradcliError
from gradcli.graph.node import CONSTANT, Node
from gradcli.transforms.flows import clean
from gradcli.transforms.forward import push
from gradcli.transforms.reverse import between, chain, is_zero, sweep

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from gradcli.checks.decide.case import Case, Floats
    from gradcli.checks.diagnosis.diagnosis_context import Judgement, Sides
    from gradcli.transforms.flows import Flow

MARGIN = 1  # mistakes whose cost is larger than the smallest by more than this are left out
RULES = {"mul": "product", "matmul": "product", "div": "quotient", "pow": "power"}
SIGNED = ("neg", "cos", "acos", "rsqrt", "erfc")  # operations whose derivative brings a sign
MOST_NEW = 24_000  # nodes that mistakes may take
SMALL = 1e-6  # a claim that is nearer than this is a rounded one, and no mistake
LARGEST = 60  # numerators and denominators of a factor
MOST_PLACES = 4
NAMED = 2  # places that a mistake may be at; the evidence has them all
CONFIRMED_AT = 3  # points


class Part(NamedTuple):
    """What an edge of a derivation contributes to the result: the scalar `flow`.

    Without an edge, what a node with all its edges contributes. `wrong` are what mistakes would contribute instead;
    `whole` says whether a wrong factor is looked for.
    """

    edge: Edge | None
    node: Node
    flow: Node
    wrong: Sequence[tuple[Slip, Node]]
    whole: bool = True


class Mistake(NamedTuple):
    """A mistake that produces the claim, and by what it changes the derivative.

    `places` are where else a mistake has the same effect, by the name that it has there; `cause` is another name for
    the same wrong formula.
    """

    slip: Slip
    part: Part
    change: Node
    places: tuple[tuple[str, Node], ...] = ()
    cause: str | None = None


def single_mistakes(judged: Judgement) -> list[Reading]:
    """The single mistakes in the derivation whose result is the claim at every point, as far as balls do not refute it.

    Where not every mistake could be tried, `judged.note` says so.
    """
    sides = judged.sides()
    if sides is None:
        return []
    made = Derivation(judged, sides)
    if not made.complete:
        count = sum(one.whole + len(one.wrong) for one in made.parts)
        judged.note = f"only the first {count:,} mistakes were tried"
    flows = [node for one in made.parts for node in (one.flow, *(flow for _, flow in one.wrong))]
    values = judged.values([sides.right, sides.claimed, *flows], judged.with_directions(sides.inputs))
    found = likeliest(made, sides, values) if values else []
    return [written(one, sure, judged.case) for one, sure in confirmed(judged, sides, found)]


def likeliest(made: Derivation, sides: Sides, values: Mapping[Node, Floats]) -> list[Mistake]:
    """The mistakes whose result is the claim at every place: at most three, one for each name and node."""
    right, claimed = values[sides.right], values[sides.claimed]
    scale = np.maximum(np.abs(right), np.abs(claimed))
    good = np.isfinite(scale) & (scale > 0)
    gap, scale = (claimed - right)[good], scale[good]
    if len(gap) < 2 or not (np.abs(gap) > SMALL * scale).any():
        return []
    known = Comparison(gap, gap, np.minimum(1e-3 * np.abs(gap) + 1e-13 * scale, CLOSE * scale))
    factors: dict[Fraction, list[Mistake]] = {}
    others: dict[tuple[Node, Node], Mistake] = {}
    for part in made.parts:
        flow = values[part.flow][good]
        less = known.factor_of(flow, LARGEST) if part.whole else None
        if less is not None and abs(1 + less) <= LARGEST:
            mistake = Mistake(of_factor(part, 1 + less, made), part, part.flow * less)
            factors.setdefault(less, []).append(mistake)
        for slip, wrong in sorted(part.wrong, key=lambda one: one[0].cost):
            if known.fits(values[wrong][good] - flow):
                first = others.setdefault((part.node, wrong), Mistake(told(slip, part.edge), part, wrong - part.flow))
                if first.slip.name != slip.name:
                    others[part.node, wrong] = first._replace(cause=slip.name)
    found = []
    for ways in factors.values():  # the same factor of another part has the same effect
        ordered = sorted(ways, key=lambda one: (one.slip.cost, -one.part.node.serial))
        same = [(one.slip.name, one.part.node) for one in ordered if one.part.node is not ordered[0].part.node]
        found.append(ordered[0]._replace(places=tuple(dict.fromkeys(same))[: MOST_PLACES - 1]))
    found = sorted([*found, *others.values()], key=lambda one: (one.slip.cost, -one.part.node.serial))
    kept: dict[tuple[str, Node], Mistake] = {}
    for one in found:
        if one.slip.cost <= found[0].slip.cost + MARGIN:
            kept.setdefault((one.slip.name, one.part.node), one)
    return list(kept.values())[:MOST]


def confirmed(judged: Judgement, sides: Sides, found: Sequence[Mistake]) -> list[tuple[Mistake, bool]]:
    """The mistakes that are not refuted in balls, and whether each is confirmed there."""
    good: list[tuple[Mistake, bool]] = []
    if not found:
        return good
    results = [sides.right + one.change for one in found]
    places = judged.with_directions(sides.inputs)
    places = places[:: len(places) // len(judged.places)][:CONFIRMED_AT]
    with judged.case.exact.meanwhile([sides.claimed, *results]) as exact:
        for one, result in zip(found, results, strict=True):
            answer = exact.compare(sides.claimed, places, left=result, wide=True)
            relations = [set(point["relations"]) for point in answer.get("points", ())]
            if not any("!" in here for here in relations):
                good.append((one, bool(relations) and all(here <= RIGHT for here in relations)))
    return good


def written(found: Mistake, sure: bool, case: Case) -> Reading:
    """A reading that says where the mistake is and what it is."""
    node = found.part.node
    places = dict.fromkeys(f"`{node_text(one, 40)}`" for one in (node, *(other for _, other in found.places)))
    more = f" (or at {counted(len(places) - NAMED, 'other place')})" if len(places) > NAMED else ""
    text = f"consistent with a mistake at {' or '.join([*places][:NAMED])}{more}: {found.slip.told}"
    also = [{"name": name, "node": node_text(other), "span": span_of(other)} for name, other in found.places]
    return Reading(
        found.slip.name,
        text,
        node=node_text(node),
        span=span_of(node),
        rule=rule_of(found.part.edge, case),
        cause=found.cause,
        confirmed=sure,
        places=also or None,
    )


def rule_of(edge: Edge | None, case: Case, longest: int = 80) -> str | None:
    """The right local rule at an edge; None where no short text for it is known."""
    if edge is None or edge.partial is None or edge.arg.primitive is CONSTANT:
        return None
    right, names = edge.partial, readable(case)
    if isinstance(right, Node):
        said = as_typed(case, names, right, longest)
        said = said or next(valid(case, names, shorter(names, right), right, longest), None)
        if said is None:
            return None
        right = said[0]
    by, whole = node_text(edge.arg, longest // 2), node_text(edge.node, longest // 2)
    return f"the derivative of `{whole}` by `{by}` is `{right}`"


def told(slip: Slip, edge: Edge | None) -> Slip:
    """A mistake of the error model, with the formulas of its place filled into the sentence."""
    if edge is None:
        return slip
    nodes = {"node": edge.node, "arg": edge.arg, "other": edge.other, "target": edge.target, "right": edge.partial}
    texts = {name: f"`{node_text(x, 40) if isinstance(x, Node) else x}`" for name, x in nodes.items()}
    return slip._replace(told=slip.told.format(**texts, n=edge.n))


def of_factor(part: Part, factor: Fraction, made: Derivation) -> Slip:
    """What a wrong factor of a part of the derivative means: a dropped term, a wrong sign, a forgotten constant."""
    edge, arg = part.edge, f"`{node_text(part.edge.arg if part.edge else part.node, 40)}`"
    text = f"the part through {arg} has an extra factor {factor}"
    if 0 < abs(factor) < 1:
        text = f"the factor {1 / factor} is missing in the part through {arg}"
    other = Slip("factor of a part", text, 3)
    if edge is None:
        if factor == 0:
            return Slip("held constant", f"{arg} was held constant", 1)
        return Slip("wrong sign", f"the sign of the part through {arg} is wrong", 3) if factor == -1 else other
    node, position, operation = edge.node, edge.position, edge.node.primitive.name
    number = node.args[1 - position].constant if operation in ("mul", "div") else None
    number = number if isinstance(number, int | Fraction) else 0
    divisor = operation == "div" and position == 1
    if factor == 0:
        several = sum(one.edge is not None and one.edge.node is node for one in made.parts) > 1
        if several and operation in RULES:
            return Slip("product term dropped", f"the term of {arg} in the {RULES[operation]} rule is missing", 1)
        if operation in ("add", "sub", "concat"):
            return Slip("term dropped", f"the derivative of the term {arg} is missing", 1)
        return Slip("held constant", f"`{node_text(node, 40)}` was held constant", 3)
    if factor == -1:
        brings = operation in SIGNED or divisor or (operation == "sub" and position == 1) or number < 0
        brings = brings or (operation == "power" and node.params["n"] < 0)
        text = f"the derivative with respect to {arg} has the wrong sign"
        return Slip("quotient sign" if divisor else "wrong sign", text, 1 if brings else 2)
    if number and not divisor and factor == (number if operation == "div" else 1 / Fraction(number)):
        name = "mean factor forgotten" if operation == "div" and _counts(node, number) else "constant factor"
        name = name if node in made.outer else "chain factor dropped"
        return Slip(name, f"the factor {'1/' if operation == 'div' else ''}{number} is missing", 1)
    return other


def _counts(node: Node, number: Any) -> bool:
    """Whether a number is the count of the entries that a sum below has added up."""
    top = node.args[0]
    return top.primitive.name == "sum" and top.args[0].type.size == number * top.type.size


# --- the derivation ------------------------------------------------------------------------------------------------

OUTER = ("add", "sub", "neg", "mul", "div", "sum", "name")

INNER = Slip("inner derivative dropped", "the inner derivative is missing")
PRODUCTS = Slip("product of derivatives", "the derivative of a product is not a product of derivatives")
QUOTIENTS = Slip("quotient of derivatives", "the derivative of a quotient is not a quotient of derivatives")
UNSQUARED = Slip("denominator not squared", "the denominator of the quotient rule was not squared")


class Derivation:
    """The derivation of a scalar along a direction, in parts, with the mistakes that could have been made in each.

    `outer` are the nodes that the output is a combination of. `complete` is False where there were more mistakes than
    could be tried.
    """

    def __init__(self, judged: Judgement, sides: Sides) -> None:
        self.builder = builder = judged.builder
        self.target, self.direction = sides.target, sides.direction
        self.parts: list[Part] = []
        self.complete = True
        self.outer: set[Node] = {sides.output}
        self._flows: dict[Node, Flow] = {}
        self._edges: list[tuple[Edge, Node | None]] = []
        one = builder.constant(1, sides.output.shape)
        sweep(builder, [(sides.output, (one, None))], [self.target], observer=self._observe)
        order = [node for node in between([sides.output], [self.target]) if node.type.kind == "float"]
        found = push(builder, order, {self.target: self.direction}, stops=[self.target])
        self.tangents = {node: t for node, t in zip(order, found, strict=True) if t is not None}
        nodes, entries = builder.count + MOST_NEW, 4 * MOST_ENTRIES // len(judged.places)
        for part in self._parts():
            self.parts.append(part)
            entries -= (1 + len(part.wrong)) * part.node.type.size
            if builder.count > nodes or entries < 0:
                self.complete = False
                break

    def _observe(self, node: Node, flow: Flow, sent: list[tuple[Node, Flow]]) -> None:
        self._flows[node] = flow
        primitive = node.primitive
        if node in self.outer and primitive.name in OUTER:
            self.outer.update(node.args)
        partials: Sequence[Any] = [None] * len(node.args)
        if primitive.kind == "elementwise":
            assert primitive.partials is not None
            partials = primitive.partials(*node.args, out=node, **node.params)
        elif primitive.kind == "composite" and primitive.pointwise and len(node.args) == 1:
            partials = [error_model.partial_of(node, node.args[0])]
        arrives = flow[0] if primitive.pointwise else clean(self.builder, flow)
        pending = list(sent)
        for position, (arg, partial) in enumerate(zip(node.args, partials, strict=True)):
            constant = primitive.kind == "elementwise" and (partial is None or is_zero(partial))
            if pending and pending[0][0] is arg and not constant:
                _, below = pending.pop(0)
                own = clean(self.builder, below)
                self._edges.append((Edge(node, position, arg, arrives, partial, own, self.target), below[1]))

    def _parts(self) -> Iterator[Part]:
        uses: dict[Node, int] = {}
        for edge, _ in self._edges:
            uses[edge.arg] = uses.get(edge.arg, 0) + 1
        for edge, mask in self._edges:
            tangent = self.tangents.get(edge.arg)
            if tangent is not None:
                wrong = [(slip, paired(tangent, sent)) for slip, sent in self._wrong(edge, mask)]
                renamed = edge.arg is self.target and edge.node.primitive.name == "name"
                yield Part(edge, edge.node, paired(tangent, edge.sent), wrong, not renamed)
        for node, flow in self._flows.items():
            tangent = self.tangents.get(node)
            if tangent is not None:
                cotangent = clean(self.builder, flow)
                instead = [(slip, paired(cotangent, moved)) for slip, moved in self._instead(node, tangent)]
                yield Part(None, node, paired(cotangent, tangent), instead, uses.get(node, 0) > 1)

    def _wrong(self, edge: Edge, mask: Node | None) -> Iterator[tuple[Slip, Node]]:
        """What mistakes would pass on to the argument of an edge."""
        node, builder = edge.node, self.builder
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
        """How a node would move along the direction by mistake."""
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
