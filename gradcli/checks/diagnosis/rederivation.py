"""Finds the single mistake in a rule that gives exactly the claim, and describes it.

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
    Places = Mapping[str, Floats]  # leaves at several points, which are the first axis

MARGIN = 1  # mistakes that are less likely than the likeliest by more than this are not told
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


class Mistake(NamedTuple):
    """What stands at a node by mistake, and what is right there: a cotangent on an edge, or the tangent of a node.

    It changes the directional derivative by (wrong - right) * beside.
    """

    slip: Slip
    node: Node
    edge: Edge | None
    wrong: Node
    right: Node
    beside: Node


class Passed(NamedTuple):
    """What one edge, or all edges that leave a node, contribute to the result."""

    edge: Edge | None
    node: Node
    sent: Node
    tangent: Node


class Found(NamedTuple):
    """A mistake that produces the claim, with its place."""

    name: str
    told: str
    cost: int
    node: Node
    slip: Mistake | Passed
    factor: Fraction | None = None
    places: tuple[tuple[str, Node], ...] = ()  # where else a mistake has the same effect, by the name that it has there
    cause: str | None = None  # another name for the same wrong formula


def single_mistakes(judged: Judgement) -> list[Reading]:
    """The single mistakes in the derivation whose result is the claim at every point, as far as balls do not refute it.

    Where not every mistake could be tried, the note of what is judged says so.
    """
    sides = judged.sides()
    if sides is None:
        return []
    made = Derivation(judged.builder, sides.output, sides.target, sides.direction, MOST_NEW)
    found = MistakeSearch(made, sides, judged.batch(judged.places, sides.inputs)).likeliest()
    if not made.complete:
        judged.note = f"only the first {len(made.passed) + len(made.mistakes):,} mistakes were tried"
    return [written(one, sure, judged.case) for one, sure in confirmed(judged, sides, found)]


def confirmed(judged: Judgement, sides: Sides, found: Sequence[Found]) -> list[tuple[Found, bool]]:
    """The mistakes that are not refuted in balls, and whether each is confirmed there."""
    good: list[tuple[Found, bool]] = []
    if not found:
        return good
    case, builder = judged.case, judged.builder
    results = [builder.call("add", sides.right, change(builder, one.slip, one.factor)) for one in found]
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
    """A mistake as a reading: where, and what."""
    places = dict.fromkeys(f"`{node_text(node, 40)}`" for node in (found.node, *(node for _, node in found.places)))
    more = f" (or at {counted(len(places) - NAMED, 'other place')})" if len(places) > NAMED else ""
    text = f"consistent with a mistake at {' or '.join([*places][:NAMED])}{more}: {found.told}"
    also = [{"name": name, "node": node_text(node), "span": span_of(node)} for name, node in found.places]
    return Reading(
        found.name,
        text,
        node=node_text(found.node),
        span=span_of(found.node),
        rule=rule_of(found, case),
        cause=found.cause,
        confirmed=sure,
        places=also or None,
    )


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
        return Found(
            name, f"the derivative with respect to {arg} has the wrong sign", 1 if brings else 2, node, one, factor
        )
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
    return f"the part through {part} has an extra factor {factor}"


def _counts(node: Node, number: Any) -> bool:
    """Whether a number is the count of the entries that a sum below has added up."""
    top = node.args[0]
    return top.primitive.name == "sum" and top.args[0].type.size == number * top.type.size


def describe(one: Mistake) -> str:
    """The sentence of a mistake."""
    edge = one.edge
    if edge is None:
        return one.slip.told
    right = str(edge.partial) if not isinstance(edge.partial, Node) else node_text(edge.partial, 40)
    return one.slip.told.format(
        node=f"`{node_text(edge.node, 40)}`",
        arg=f"`{node_text(edge.arg, 40)}`",
        other=f"`{node_text(edge.other, 40)}`",
        target=f"`{node_text(edge.target, 40)}`",
        right=f"`{right}`",
        n=edge.n,
    )


def rule_of(found: Found, case: Case, longest: int = 80) -> str | None:
    """The right local rule at the node of a mistake; None where no short text for it is known."""
    edge = found.slip.edge
    if edge is None or edge.partial is None or edge.arg.primitive is CONSTANT:
        return None
    partial = edge.partial
    right = script_text(case, readable(case), partial) if isinstance(partial, Node) else str(partial)
    if right is None or len(right) > longest:
        return None
    by, whole = node_text(edge.arg, longest // 2), node_text(edge.node, longest // 2)
    return f"the derivative of `{whole}` by `{by}` is `{right}`"


class MistakeSearch:
    """The directional derivatives at all places, and what each mistake of a derivation makes of them."""

    def __init__(self, made: Derivation, sides: Sides, places: Places) -> None:
        self.made = made
        nodes = needed(made)
        count = max((len(value) for value in places.values()), default=1)
        sizes = np.cumsum([node.type.size * count for node in nodes])
        kept = int(np.searchsorted(sizes, MOST_ENTRIES, side="right"))
        made.complete = made.complete and kept == len(nodes)
        self.values = at_places([sides.right, sides.claimed, *nodes[:kept]], places, count) or {}
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
            ordered = sorted([*self.passed(), *self.mistakes()], key=lambda one: (one.cost, -one.node.serial))
        kept: dict[Any, Found] = {}
        for one in ordered:
            if one.cost <= ordered[0].cost + MARGIN:
                kept.setdefault((one.name, one.node), one)
        return list(kept.values())[:MOST]

    def product(self, one: Node, other: Node, away: Node | None = None) -> Floats | None:
        """The sums of products of entries at each place; 0 times anything is 0. `away` is subtracted."""
        if one not in self.values or other not in self.values or (away is not None and away not in self.values):
            return None
        first, second = self.values[one] if away is None else self.values[one] - self.values[away], self.values[other]
        found = first * second
        if not np.isfinite(found).all():
            found = np.where((first == 0) | (second == 0), 0.0, found)
        total: Floats = found if found.ndim == 1 else found.reshape(len(found), -1).sum(axis=1)
        return total

    def meets(self, change: Floats | None) -> bool:
        """Whether a change of the right derivative gives the claim, at every good place."""
        if change is None:
            return False
        change = change[self.good]
        off = np.abs(self.gap - change)
        if not (off <= self.most).all():  # so it is where the change is not finite
            return False
        return bool((off <= CLOSE * np.maximum(self.scale, np.abs(change))).all())

    def factor(self, flow: Floats | None) -> Fraction | None:
        """The simple factor of a part of the derivative that gives the claim at every place, other than 1."""
        if flow is None:
            return None
        seen = flow[self.good]
        if not np.isfinite(seen).all() or not seen.any():
            return None
        largest = int(np.argmax(np.abs(seen)))
        raw = 1 + float(self.gap[largest] / seen[largest])
        if not abs(raw) < 1e6:
            return None
        simple = Fraction(raw).limit_denominator(LARGEST)
        if simple == 1 or abs(simple.numerator) > LARGEST:
            return None
        return simple if self.meets(float(simple - 1) * flow) else None

    def passed(self) -> list[Found]:
        """Parts of the derivative that are missing or have a wrong sign or factor: the likeliest for each part."""
        groups: dict[Fraction, list[Found]] = {}
        for one in self.made.passed:
            if one.edge is not None and one.edge.arg is self.made.target and one.edge.node.primitive.name == "name":
                continue
            factor = self.factor(self.product(one.sent, one.tangent))
            if factor is not None:
                groups.setdefault(factor, []).append(part(one, factor, self.made))
        found = []
        for ways in groups.values():
            best = min(ways, key=lambda way: (way.cost, -way.node.serial))
            ordered = sorted(ways, key=lambda way: way.cost)
            same = [(way.name, way.node) for way in ordered if way.node is not best.node]
            found.append(best._replace(places=tuple(dict.fromkeys(same))[: MOST_PLACES - 1]))
        return found

    def mistakes(self) -> list[Found]:
        """Mistakes in a local rule, and derivatives of nodes that are missing or were put together wrongly."""
        found: dict[tuple[Node, Node], Found] = {}
        for one in sorted(self.made.mistakes, key=lambda one: one.slip.cost):
            if self.meets(self.product(one.wrong, one.beside, one.right)):
                same = (one.node, one.wrong)
                if same not in found:
                    found[same] = Found(one.slip.name, describe(one), one.slip.cost, one.node, one)
                elif found[same].name != one.slip.name:
                    found[same] = found[same]._replace(cause=one.slip.name)
        return list(found.values())


# --- the derivation ------------------------------------------------------------------------------------------------

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
        self.mistakes: list[Mistake] = []
        self.passed: list[Passed] = []
        self.complete = True
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
                    self.mistakes.append(Mistake(slip, edge.node, edge, sent, edge.sent, tangent))
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
                self.mistakes.append(Mistake(slip, node, None, instead, tangent, cotangent))

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
    nodes = [node for one in found.passed for node in (one.sent, one.tangent)]
    nodes += [node for one in found.mistakes for node in (one.wrong, one.right, one.beside)]
    return list(dict.fromkeys(nodes))


def change(builder: Builder, found: Mistake | Passed, factor: Any = None) -> Node:
    """By how much a mistake changes the directional derivative, as a node; `factor` for what is passed on, times it."""
    if isinstance(found, Passed):
        return paired(found.tangent, builder.call("mul", found.sent, factor - 1))
    return paired(found.beside, found.wrong - found.right)
