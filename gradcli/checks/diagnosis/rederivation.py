"""Finds the single mistake in a rule that gives exactly the claim, and describes it.

The gradient is differentiated again with each mistake of the error model at each node, in floats, and confirmed in
balls.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gradcli.checks.diagnosis import derivation
from gradcli.checks.diagnosis.derivation import Both, Derivation, Everywhere, Inner, Passed, Wrong
from gradcli.checks.formatting import node_text
from gradcli.diagnostics import GradcliError
from gradcli.execution.evaluate import Tape
from gradcli.graph.node import CONSTANT, LEAF, Node, reachable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from gradcli.graph.builder import Builder

    Floats = NDArray[np.floating[Any]]
    Places = Mapping[str, Floats]  # leaves at several points, which are the first axis

KEPT = "only one part kept"
MARGIN = 1  # mistakes that are less likely than the likeliest by more than this are not told
MOST = 3
RULES = {"mul": "product", "matmul": "product", "div": "quotient", "pow": "power"}
SIGNED = ("neg", "cos", "acos", "rsqrt", "erfc")  # operations whose derivative brings a sign


class Found(NamedTuple):
    """A mistake that produces the claim, with its place: the text tells what is wrong, `rule` what is right."""

    name: str
    told: str
    cost: int
    node: Node
    slip: Wrong | Passed | Inner | Both | Everywhere
    factor: Fraction | None = None
    places: tuple[tuple[str, Node], ...] = ()  # where else a mistake has the same effect, by the name that it has there
    cause: str | None = None  # another name for the same wrong formula
    scale: float = 1.0  # of the claim, where it lacks a constant factor beside

    def result(self, builder: Builder, right: Node) -> Node:
        """The directional derivative with this mistake in it."""
        if self.kept and isinstance(self.slip, Passed):
            return derivation.dot(builder, self.slip.sent, self.slip.tangent)
        return builder.call("add", right, derivation.change(builder, self.slip, self.factor))

    @property
    def kept(self) -> bool:
        """Whether all but this part of the derivative is missing."""
        return self.name == KEPT


def likeliest(found: Iterable[Found]) -> list[Found]:
    """At most three mistakes: the likeliest, one for each name and node."""
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


def describe(one: Wrong) -> str:
    """The sentence of a mistake in a local rule."""
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
    """The right local rule at the node of a mistake; None where `write` knows no short text for it."""
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


MOST_STEPS = 1200  # operations of a program that is searched
MOST_NEW = 24_000  # nodes that mistakes may take
MOST_ENTRIES = 4_000_000  # entries of all of them at all points
CLOSE = 1e-9
SMALL = 1e-6  # a claim that is nearer than this is a rounded one, and no mistake
MANY = 6  # places at which a mistake beside a constant factor must be seen
LARGEST = 60  # numerators and denominators of a factor
MOST_PARTS = 200  # that are tried in pairs
MOST_PLACES = 4


class Weighing:
    """One derivation at some places: single mistakes first, and what else may be tried if none gives the claim.

    `right` and `claimed` are scalars: both gradients along the direction of `made`. `tried` counts the mistakes.
    """

    def __init__(self, made: Derivation, right: Node, claimed: Node, places: Places) -> None:
        nodes = derivation.needed(made)
        count = max((len(value) for value in places.values()), default=1)
        total = 0
        for position, node in enumerate(nodes):
            total += node.type.size * count
            if total > MOST_ENTRIES:
                nodes = nodes[:position]
                made.complete = False
                break
        values = at_places([right, claimed, *nodes], places, count)
        self.tried = len(made.passed) + len(made.wrong) + len(made.inner)
        self.weighed = None if values is None else _Weighed(made, values, values[right], values[claimed])
        if self.weighed is not None and not self.weighed.usable:
            self.weighed = None

    def single(self) -> list[Found]:
        """The single mistakes whose result is the claim at every place, likeliest first."""
        if self.weighed is None:
            return []
        with np.errstate(all="ignore"):
            return likeliest([*self.weighed.passed(), *self.weighed.wrong(), *self.weighed.inner()])

    def several(self) -> list[Found]:
        """The same mistake at several nodes, two parts missing, one mistake beside a constant factor."""
        if self.weighed is None:
            return []
        with np.errstate(all="ignore"):
            found = [*self.weighed.everywhere(), *self.weighed.kept(), *self.weighed.both()]
            return likeliest(found or self.weighed.scaled())


class _Weighed:
    """The directional derivatives at all places, and what each mistake makes of them."""

    def __init__(self, made: Derivation, values: Mapping[Node, Floats], right: Floats, claimed: Floats) -> None:
        self.made = made
        self.values = values
        self.right = right
        self.gap = claimed - right
        self.scale = np.maximum(np.abs(right), np.abs(claimed))
        good = np.isfinite(right) & np.isfinite(claimed)
        self.good = good & (self.scale > 0)
        gap, scale = self.gap[self.good], self.scale[self.good]
        self.good_gap, self.good_scale = gap, scale
        self.most = 1e-3 * np.abs(gap) + 1e-13 * scale
        self.parts: list[tuple[Passed, Floats]] | None = None
        self.usable = len(gap) >= 2 and bool((np.abs(gap) > SMALL * scale).any())

    def product(self, one: Node, other: Node, away: Node | None = None) -> Floats | None:
        """The sums of products of entries at each place; what is passed on as 0 counts 0. `away` is subtracted."""
        if one not in self.values or other not in self.values or (away is not None and away not in self.values):
            return None
        first = self.values[one] if away is None else self.values[one] - self.values[away]
        found = first * self.values[other]
        if not np.isfinite(found).all():
            found = np.where(first == 0, 0.0, found)
        total: Floats = found if found.ndim == 1 else found.reshape(len(found), -1).sum(axis=1)
        return total

    def meets(self, change: Floats | None) -> bool:
        """Whether a change of the right derivative gives the claim, at every good place."""
        if change is None:
            return False
        change = change[self.good]
        off = np.abs(self.good_gap - change)
        if not (off <= self.most).all():  # so it is where the change is not finite
            return False
        return bool((off <= CLOSE * np.maximum(self.good_scale, np.abs(change))).all())

    def factor(self, flow: Floats | None) -> Fraction | None:
        """The simple factor of a part of the derivative that gives the claim at every place, other than 1."""
        if flow is None:
            return None
        flow = flow[self.good]
        gap = self.good_gap
        if not np.isfinite(flow).all() or not flow.any():
            return None
        with np.errstate(all="ignore"):
            largest = int(np.argmax(np.abs(flow)))
            raw = 1 + float(gap[largest] / flow[largest])
        if not abs(raw) < 1e6:
            return None
        simple = Fraction(raw).limit_denominator(LARGEST)
        if simple == 1 or abs(simple.numerator) > LARGEST:
            return None
        whole = np.zeros(self.gap.shape)
        whole[self.good] = float(simple - 1) * flow
        return simple if self.meets(whole) else None

    def passed(self) -> list[Found]:
        """Parts of the derivative that are missing, or have a wrong sign or factor: of the same part, the best told."""
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

    def wrong(self) -> list[Found]:
        """Slips in a local rule."""
        found: dict[tuple[Node, Node], Found] = {}
        for one in sorted(self.made.wrong, key=lambda one: one.slip.cost):
            if self.meets(self.product(one.sent, one.tangent, one.edge.sent)):
                same = (one.edge.node, one.sent)
                if same not in found:
                    found[same] = Found(one.slip.name, describe(one), one.slip.cost, one.edge.node, one)
                elif found[same].name != one.slip.name:
                    found[same] = found[same]._replace(cause=one.slip.name)
        return list(found.values())

    def inner(self) -> list[Found]:
        """Derivatives of nodes that are missing, or were put together wrongly."""
        found = []
        for one in self.made.inner:
            first, second = self.product(one.cotangent, one.instead), self.product(one.cotangent, one.tangent)
            if first is not None and second is not None and self.meets(first - second):
                found.append(Found(one.slip.name, one.slip.told, one.slip.cost, one.node, one))
        return found

    def everywhere(self) -> list[Found]:
        """The same mistake at every node of an operation, on parallel paths."""
        groups: dict[Any, list[Wrong]] = {}
        for one in self.made.wrong:
            groups.setdefault((one.slip.name, one.slip.told, one.edge.node.primitive, one.edge.position), []).append(
                one
            )
        found = []
        for group in groups.values():
            changes = [self.product(one.sent, one.tangent, one.edge.sent) for one in group]
            known = [change for change in changes if change is not None]
            if len(group) > 1 and len(known) == len(group) and self.meets(np.sum(known, axis=0)):
                first, *rest = group
                text = f"at each of these: {describe(first)}"
                cost = first.slip.cost + 1
                places = tuple((one.slip.name, one.edge.node) for one in rest)[:MOST]
                found.append(
                    Found(first.slip.name, text, cost, first.edge.node, Everywhere(tuple(group)), None, places)
                )
        return found

    def _flows(self) -> list[tuple[Passed, Floats]]:
        """The parts of the derivative that differ, with what they contribute at the good places."""
        if self.parts is not None:
            return self.parts
        found: dict[bytes, tuple[Passed, Floats]] = {}
        for one in self.made.passed:
            flow = self.product(one.sent, one.tangent)
            if flow is not None and np.isfinite(flow[self.good]).all() and (flow[self.good] != 0).any():
                found.setdefault(np.float32(flow[self.good]).tobytes(), (one, flow))
        self.parts = list(found.values())[:MOST_PARTS]
        return self.parts

    def kept(self) -> list[Found]:
        """All parts of the derivative but one are missing."""
        found = []
        for one, flow in self._flows():
            if self.meets(flow - self.right):
                arg = node_text(one.node, 40)
                node = one.node if one.edge is None else one.edge.node
                found.append(Found(KEPT, f"only the part through `{arg}` is there, the rest is missing", 2, node, one))
        return found

    def both(self) -> list[Found]:
        """Two parts of the derivative are missing together."""
        parts = self._flows()
        found = []
        table = np.array([flow for _, flow in parts])
        for position, (one, flow) in enumerate(parts):
            if position + 1 == len(parts):
                break
            rest = table[position + 1 :]
            with np.errstate(all="ignore"):
                off = np.abs(rest + flow + self.gap)[:, self.good] <= 1e-8 * self.scale[self.good]
            for other in np.flatnonzero(off.all(axis=1)).tolist():
                second = parts[position + 1 + other][0]
                if self.meets(-(flow + rest[other])):
                    text = f"`{node_text(one.node, 40)}` and `{node_text(second.node, 40)}` were both held constant"
                    found.append(Found("held constant", text, 3, one.node, Both(one, second)))
        return found[:MOST]

    def scaled(self) -> list[Found]:
        """One mistake and a constant factor beside it."""
        good = self.good
        found: list[Found] = []
        if good.sum() < MANY or self._constant(self.right):
            return found
        for one in self.made.wrong:
            change = self.product(one.sent, one.tangent, one.edge.sent)
            if change is not None and (factor := self._constant(self.right + change)):
                text = f"{describe(one)}; in addition, a constant factor {factor:.6g} is missing"
                found.append(Found(one.slip.name, text, one.slip.cost + 3, one.edge.node, one, scale=factor))
        for kept, flow in self._flows():
            if factor := self._constant(self.right - flow):
                text = f"`{node_text(kept.node, 40)}` was held constant"
                text += f"; in addition, a constant factor {factor:.6g} is missing"
                node = kept.node if kept.edge is None else kept.edge.node
                found.append(Found("term dropped", text, 4, node, kept, Fraction(0), scale=factor))
        return found

    def _constant(self, values: Floats) -> float:
        """The number that values are times the claim at every good place; 0 where they are no such thing."""
        with np.errstate(all="ignore"):
            ratio = (values / (self.gap + self.right))[self.good]
        if not np.isfinite(ratio).all() or not ratio.size or not ratio[0]:
            return 0.0
        same = (np.abs(ratio - ratio[0]) <= CLOSE * abs(ratio[0])).all()
        return float(ratio[0]) if same else 0.0


def at_places(nodes: Sequence[Node], places: Places, count: int) -> dict[Node, Floats] | None:
    """The values of nodes at all places, the places as first axis; None where the program cannot be run."""
    wanted = list(dict.fromkeys(nodes))
    used = {node.params["name"] for node in reachable(wanted) if node.primitive is LEAF}
    try:
        with np.errstate(all="ignore"):
            found = Tape(wanted).run({k: v for k, v in places.items() if k in used}, backend="numpy")
    except GradcliError:
        return None
    table: dict[Node, Floats] = {}
    for node, value in zip(wanted, found, strict=True):
        made = np.asarray(value, dtype=np.float64)
        shape = (count, *node.type.shape)
        table[node] = made if made.shape == shape else np.broadcast_to(made, shape)
    return table
