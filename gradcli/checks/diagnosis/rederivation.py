"""Derives the gradient once more with a single mistake in it, and names the mistake that gives exactly the claim.

The directional derivative is derived edge by edge, with every mistake of the error model as a graph: the cotangent that
arrives, what is passed on, how the argument moves along the direction, and what would be passed on by mistake. So one
sweep back and one forward serve all mistakes: each changes the derivative by (wrong - sent) * tangent. What gives the
claim in floats is dropped if balls refute it.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gradcli.checks.decide.case import RIGHT
from gradcli.checks.diagnosis import error_model
from gradcli.checks.diagnosis.diagnosis_context import at_places, drawn
from gradcli.checks.diagnosis.error_model import Edge, Slip
from gradcli.checks.diagnosis.formula_text import readable, script_text
from gradcli.checks.diagnosis.ratios import MOST, Reading, span_of
from gradcli.checks.formatting import counted, node_text
from gradcli.checks.subjects import paired
from gradcli.diagnostics import GradcliError
from gradcli.graph.node import CONSTANT, Node
from gradcli.transforms.flows import clean
from gradcli.transforms.forward import push
from gradcli.transforms.reverse import between, chain, is_zero, sweep

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from gradcli.checks.decide.case import Case
    from gradcli.checks.diagnosis.diagnosis_context import Judgement, Sides
    from gradcli.graph.builder import Builder
    from gradcli.transforms.flows import Flow

    Floats = NDArray[np.floating[Any]]

MARGIN = 1  # mistakes whose cost is larger than the smallest by more than this are left out
RULES = {"mul": "product", "matmul": "product", "div": "quotient", "pow": "power"}
SIGNED = ("neg", "cos", "acos", "rsqrt", "erfc")  # operations whose derivative brings a sign
MOST_NEW = 24_000  # nodes that mistakes may take
MOST_ENTRIES = 4_000_000  # entries of all of them at all points
CLOSE = 1e-9
SMALL = 1e-6  # a claim that is nearer than this is a rounded one, and no mistake
LARGEST = 60  # numerators and denominators of a factor
MOST_PLACES = 4
NAMED = 2  # places that a mistake may be at; the evidence has them all
CONFIRMED_AT = 3  # points


class Part(NamedTuple):
    """What one edge of a derivation, or a node with all its edges, contributes to the result: `sent` * `tangent`.

    `wrong` is what stands in place of `sent` by some mistake: it changes the result by (wrong - sent) * tangent.
    `whole` says whether a wrong factor of the contribution itself is looked for.
    """

    edge: Edge | None
    node: Node
    sent: Node
    tangent: Node
    wrong: Sequence[tuple[Slip, Node]]
    whole: bool = True


class Found(NamedTuple):
    """A mistake that produces the claim, with its place, and what it sends: a node, or so many times the right one.

    `places` are where else a mistake has the same effect, by the name that it has there; `cause` is another name for
    the same wrong formula.
    """

    slip: Slip
    node: Node
    part: Part
    wrong: Node | Fraction
    places: tuple[tuple[str, Node], ...] = ()
    cause: str | None = None


def single_mistakes(judged: Judgement) -> list[Reading]:
    """The single mistakes in the derivation whose result is the claim at every point, as far as balls do not refute it.

    Where not every mistake could be tried, `judged.note` says so.
    """
    sides = judged.sides()
    if sides is None:
        return []
    made = Derivation(judged.builder, sides, MOST_NEW)
    found = MistakeSearch(made, sides, judged.batch(sides.inputs)).likeliest()
    if not made.complete:
        count = sum(one.whole + len(one.wrong) for one in made.parts)
        judged.note = f"only the first {count:,} mistakes were tried"
    return [written(one, sure, judged.case) for one, sure in confirmed(judged, sides, found)]


def confirmed(judged: Judgement, sides: Sides, found: Sequence[Found]) -> list[tuple[Found, bool]]:
    """The mistakes that are not refuted in balls, and whether each is confirmed there."""
    good: list[tuple[Found, bool]] = []
    if not found:
        return good
    case = judged.case
    results = []
    for one in found:
        sent, wrong = one.part.sent, one.wrong
        change = wrong - sent if isinstance(wrong, Node) else sent * (wrong - 1)
        results.append(sides.right + paired(one.part.tangent, change))
    places = [dict(place) for place in judged.places[:CONFIRMED_AT]]
    for position, leaf in enumerate(sides.inputs):
        for place, value in zip(places, drawn(leaf, case.seed + 7 + position, len(places)), strict=True):
            place[leaf.params["name"]] = np.asarray(value)
    with case.exact.meanwhile([sides.claimed, *results]) as exact:
        for one, result in zip(found, results, strict=True):
            answer = exact.compare(sides.claimed, places, left=result, wide=True)
            relations = [set(point["relations"]) for point in answer.get("points", ())]
            if not any("!" in here for here in relations):
                good.append((one, bool(relations) and all(here <= RIGHT for here in relations)))
    return good


def written(found: Found, sure: bool, case: Case) -> Reading:
    """A reading that says where the mistake is and what it is."""
    places = dict.fromkeys(f"`{node_text(node, 40)}`" for node in (found.node, *(node for _, node in found.places)))
    more = f" (or at {counted(len(places) - NAMED, 'other place')})" if len(places) > NAMED else ""
    text = f"consistent with a mistake at {' or '.join([*places][:NAMED])}{more}: {found.slip.told}"
    also = [{"name": name, "node": node_text(node), "span": span_of(node)} for name, node in found.places]
    return Reading(
        found.slip.name,
        text,
        node=node_text(found.node),
        span=span_of(found.node),
        rule=rule_of(found.part.edge, case),
        cause=found.cause,
        confirmed=sure,
        places=also or None,
    )


def rule_of(edge: Edge | None, case: Case, longest: int = 80) -> str | None:
    """The right local rule at an edge; None where no short text for it is known."""
    if edge is None or edge.partial is None or edge.arg.primitive is CONSTANT:
        return None
    partial = edge.partial
    right = script_text(case, readable(case), partial) if isinstance(partial, Node) else str(partial)
    if right is None or len(right) > longest:
        return None
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


class MistakeSearch:
    """The directional derivatives at all places, and what each mistake of a derivation makes of them."""

    def __init__(self, made: Derivation, sides: Sides, places: Mapping[str, Floats]) -> None:
        self.made = made
        nodes = dict.fromkeys(node for one in made.parts for node in (one.sent, one.tangent))
        nodes |= dict.fromkeys(node for one in made.parts for _, node in one.wrong)
        count = max((len(value) for value in places.values()), default=1)
        sizes = np.cumsum([node.type.size * count for node in nodes])
        kept = int(np.searchsorted(sizes, MOST_ENTRIES, side="right"))
        made.complete = made.complete and kept == len(nodes)
        self.values = at_places([sides.right, sides.claimed, *islice(nodes, kept)], places, count) or {}
        right, claimed = (self.values.get(node, np.zeros(0)) for node in (sides.right, sides.claimed))
        scale = np.maximum(np.abs(right), np.abs(claimed))
        self.good = np.isfinite(right) & np.isfinite(claimed) & (scale > 0)
        self.gap, self.scale = (claimed - right)[self.good], scale[self.good]
        self.most = 1e-3 * np.abs(self.gap) + 1e-13 * self.scale

    def likeliest(self) -> list[Found]:
        """The single mistakes whose result is the claim at every place: at most three, one for each name and node."""
        if len(self.gap) < 2 or not (np.abs(self.gap) > SMALL * self.scale).any():
            return []
        with np.errstate(all="ignore"):
            found = [*self.factors(), *self.mistakes()]
        ordered = sorted(found, key=lambda one: (one.slip.cost, -one.node.serial))
        kept: dict[Any, Found] = {}
        for one in ordered:
            if one.slip.cost <= ordered[0].slip.cost + MARGIN:
                kept.setdefault((one.slip.name, one.node), one)
        return list(kept.values())[:MOST]

    def product(self, part: Part, wrong: Node | None = None) -> Floats:
        """What a part contributes at each place, or by how much a mistake changes it; NaN where that is not known.

        0 times anything is 0.
        """
        if any(node not in self.values for node in (part.sent, part.tangent, wrong or part.sent)):
            return np.full(len(self.good), np.nan)
        first, second = self.values[part.sent], self.values[part.tangent]
        first = first if wrong is None else self.values[wrong] - first
        found = first * second
        if not np.isfinite(found).all():
            found = np.where((first == 0) | (second == 0), 0.0, found)
        total: Floats = found if found.ndim == 1 else found.reshape(len(found), -1).sum(axis=1)
        return total

    def meets(self, change: Floats) -> bool:
        """Whether a change of the right derivative gives the claim, at every good place."""
        change = change[self.good]
        off = np.abs(self.gap - change)
        if not (off <= self.most).all():  # so it is where the change is not finite
            return False
        return bool((off <= CLOSE * np.maximum(self.scale, np.abs(change))).all())

    def factor(self, flow: Floats) -> Fraction | None:
        """The simple factor of a part of the derivative that gives the claim at every place, other than 1."""
        seen = flow[self.good]
        if not np.isfinite(seen).all() or not seen.any():
            return None
        largest = int(np.argmax(np.abs(seen)))
        raw = 1 + float(self.gap[largest] / seen[largest])
        simple = Fraction(raw if abs(raw) < LARGEST + 1 else 1).limit_denominator(LARGEST)
        fits = simple != 1 and abs(simple.numerator) <= LARGEST and self.meets(float(simple - 1) * flow)
        return simple if fits else None

    def factors(self) -> list[Found]:
        """Parts of the derivative that are missing or have a wrong sign or factor: the likeliest for each factor."""
        groups: dict[Fraction, list[Found]] = {}
        for one in self.made.parts:
            renamed = one.edge is not None and one.edge.arg is self.made.target and one.node.primitive.name == "name"
            factor = self.factor(self.product(one)) if one.whole and not renamed else None
            if factor is not None:
                groups.setdefault(factor, []).append(Found(of_factor(one, factor, self.made), one.node, one, factor))
        found = []
        for ways in groups.values():
            best = min(ways, key=lambda way: (way.slip.cost, -way.node.serial))
            ordered = sorted(ways, key=lambda way: way.slip.cost)
            same = [(way.slip.name, way.node) for way in ordered if way.node is not best.node]
            found.append(best._replace(places=tuple(dict.fromkeys(same))[: MOST_PLACES - 1]))
        return found

    def mistakes(self) -> list[Found]:
        """Mistakes in a local rule, and derivatives of nodes that are missing or were put together wrongly."""
        found: dict[tuple[Node, Node], Found] = {}
        tried = [(slip, wrong, part) for part in self.made.parts for slip, wrong in part.wrong]
        for slip, wrong, part in sorted(tried, key=lambda one: one[0].cost):
            if self.meets(self.product(part, wrong)):
                same = (part.node, wrong)
                if same not in found:
                    found[same] = Found(told(slip, part.edge), part.node, part, wrong)
                elif found[same].slip.name != slip.name:
                    found[same] = found[same]._replace(cause=slip.name)
        return list(found.values())


# --- the derivation ------------------------------------------------------------------------------------------------

OUTER = ("add", "sub", "neg", "mul", "div", "sum", "name")

INNER = Slip("inner derivative dropped", "the inner derivative is missing")
PRODUCTS = Slip("product of derivatives", "the derivative of a product is not a product of derivatives")
QUOTIENTS = Slip("quotient of derivatives", "the derivative of a quotient is not a quotient of derivatives")
UNSQUARED = Slip("denominator not squared", "the denominator of the quotient rule was not squared")


class Derivation:
    """The derivation of a scalar along a direction, in parts, with the mistakes that could have been made in each.

    `outer` are the nodes that the output is a combination of. `complete` is False where there were more mistakes than
    `most` new nodes could hold.
    """

    def __init__(self, builder: Builder, sides: Sides, most: int) -> None:
        self.builder = builder
        self.target = sides.target
        self.direction = sides.direction
        self.parts: list[Part] = []
        self.complete = True
        self._end = builder.count + most
        self._flows: dict[Node, Flow] = {}
        self._edges: list[tuple[Edge, Node | None]] = []
        self.outer: set[Node] = {sides.output}
        one = builder.constant(1, sides.output.shape)
        sweep(builder, [(sides.output, (one, None))], [self.target], observer=self._observe)
        order = [node for node in between([sides.output], [self.target]) if node.type.kind == "float"]
        found = push(builder, order, {self.target: self.direction}, stops=[self.target])
        self.tangents = {node: t for node, t in zip(order, found, strict=True) if t is not None}
        self._find_parts()

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

    def _find_parts(self) -> None:
        uses: dict[Node, int] = {}
        for edge, _ in self._edges:
            uses[edge.arg] = uses.get(edge.arg, 0) + 1
        for edge, mask in self._edges:
            tangent = self.tangents.get(edge.arg)
            if tangent is None:
                continue
            wrong = [(slip, sent) for slip, sent in self._wrong(edge, mask) if sent is not edge.sent]
            wrong = [(slip, sent) for slip, sent in wrong if sent.shape == edge.arg.shape]
            self.parts.append(Part(edge, edge.node, edge.sent, tangent, wrong))
            if self.builder.count > self._end:
                self.complete = False
                return
        for node, flow in self._flows.items():
            tangent = self.tangents.get(node)
            if tangent is not None:
                cotangent = clean(self.builder, flow)
                instead = list(self._instead(node, tangent))
                self.parts.append(Part(None, node, tangent, cotangent, instead, whole=uses.get(node, 0) > 1))

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
