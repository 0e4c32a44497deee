"""A wrong gradient goes in, single slips that produce exactly it come out: where, which rule, and what is right.

The gradient is derived again with one rule damaged at one node, for every node and every slip, at several points
at once. Floats find the candidates; that one of them is the claim is confirmed in balls by `slips`. A slip
that produces the claim is a way to read it, no proof that it was made.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.checks.diagnosis import derivation
from gradcli.checks.diagnosis.derivation import Both, Derivation, Everywhere, Passed, Wrong
from gradcli.checks.diagnosis.findings import KEPT, MOST, Found, likeliest, part, told
from gradcli.checks.shown import node_text
from gradcli.diagnostics import GradcliError
from gradcli.execution.evaluate import Tape
from gradcli.graph.node import LEAF, Node, reachable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    Floats = NDArray[np.floating[Any]]
    Places = Mapping[str, Floats]  # leaves at several points, which are the first axis

MOST_STEPS = 1200  # operations of a program that is searched
MOST_NEW = 24_000  # nodes that slips may take
MOST_ENTRIES = 4_000_000  # entries of all of them at all points
CLOSE = 1e-9
SMALL = 1e-6  # a claim that is nearer than this is a rounded one, and no slip
MANY = 6  # places at which a slip beside a constant factor must be seen
LARGEST = 60  # numerators and denominators of a factor
MOST_PARTS = 200  # that are tried in pairs
MOST_PLACES = 4


class Weighing:
    """One derivation at some places: single slips first, and what else may be tried if none gives the claim.

    `right` and `claimed` are scalars: both gradients along the direction of `made`. `tried` counts the slips.
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
        """The single slips whose result is the claim at every place, likeliest first."""
        if self.weighed is None:
            return []
        with np.errstate(all="ignore"):
            return likeliest([*self.weighed.passed(), *self.weighed.wrong(), *self.weighed.inner()])

    def several(self) -> list[Found]:
        """The same slip at several nodes, two parts missing, one slip beside a constant factor."""
        if self.weighed is None:
            return []
        with np.errstate(all="ignore"):
            found = [*self.weighed.everywhere(), *self.weighed.kept(), *self.weighed.both()]
            return likeliest(found or self.weighed.scaled())


class _Weighed:
    """The directional derivatives at all places, and what each slip makes of them."""

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
                    found[same] = Found(one.slip.name, told(one), one.slip.cost, one.edge.node, one)
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
        """The same slip at every node of an operation, on parallel paths."""
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
                text = f"at each of these: {told(first)}"
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
        """One slip and a constant factor beside it."""
        good = self.good
        found: list[Found] = []
        if good.sum() < MANY or self._constant(self.right):
            return found
        for one in self.made.wrong:
            change = self.product(one.sent, one.tangent, one.edge.sent)
            if change is not None and (factor := self._constant(self.right + change)):
                text = f"{told(one)}; beside it, a constant factor {factor:.6g} is missing"
                found.append(Found(one.slip.name, text, one.slip.cost + 3, one.edge.node, one, scale=factor))
        for kept, flow in self._flows():
            if factor := self._constant(self.right - flow):
                text = f"`{node_text(kept.node, 40)}` was held constant"
                text += f"; beside it, a constant factor {factor:.6g} is missing"
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
