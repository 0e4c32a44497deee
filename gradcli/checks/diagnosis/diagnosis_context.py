"""Evaluates both sides of a refuted claim at some points, for everything that explains it."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gradcli.base.diagnostics import GradcliError
from gradcli.checks.decide import chosen_points
from gradcli.checks.decide.floats import evaluator
from gradcli.checks.diagnosis.ratios import Comparison
from gradcli.checks.oracle.oracle_client import leaf_names
from gradcli.checks.subjects import cotangent, paired
from gradcli.execution.evaluate import Tape
from gradcli.graph.loop import written_nodes
from gradcli.graph.node import LEAF, Node, reachable
from gradcli.primitives.movement import reshape
from gradcli.transforms import derivatives
from gradcli.transforms.unroll import unrolled

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from fractions import Fraction

    from gradcli.checks.decide.case import Case, Floats, Values
    from gradcli.checks.diagnosis.ratios import ErrorReading


PLACES = 4  # points near the given one at which a reading must hold
TRUSTED = 1e-7  # relative to the largest entry
CLOSE = 1e-9  # two formulas of one value in floats, relative to the entry
SMALL = 1e-4  # smaller entries, beside the largest one, are as far off as one of this size
DIRECTIONS = 2  # along which an array is looked at
MOST_STEPS = 1200  # operations of a program that is searched
MOST_ENTRIES = 4_000_000  # entries of what is evaluated at once, at all points


class ScalarSides(NamedTuple):
    """A scalar of what is right and of what is claimed, and the derivation that leads to the first.

    The derivation goes from `output` to `target` along `direction`; `inputs` are leaves that take random values.
    """

    output: Node
    target: Node
    direction: Node
    right: Node
    claimed: Node
    inputs: tuple[Node, ...]


class Candidate(NamedTuple):
    """A change of one side, or of both, that explains a claim if it makes them equal; the likelier, the cheaper."""

    reading: Callable[[], ErrorReading]
    left: Node
    right: Node
    cost: int = 0


class RefutedClaim:
    """Both sides of a refuted claim, and what else its readings are made from. The builder must be open.

    `places` are the given point, the refuting one and others where the leaves have moved, and `known` both sides there.
    `derived` is the derivative that the right side is or contains, its kind, and of what by what it is taken; `note` is
    why not every mistake was tried.
    """

    def __init__(self, case: Case, refuting: Values) -> None:
        self.case = case
        self.builder = case.subject.judged.builder
        self.note: str | None = None
        subject = case.subject
        self.claimed = subject.judged
        right = subject.left or subject.engine
        self.right: Node = derivatives.grad(case.output, [case.target])[0] if right is None else right
        self.derived: tuple[Any, ...] | None = None
        if subject.output is None:
            self._find_derived()
        elif subject.target is not None:
            self.derived = self.right, "grad", subject.output, subject.target
        sides = [self.right] if subject.output is not None and leaf_names([self.right]) else [self.right, self.claimed]
        used = leaf_names(sides)  # what the claim alone reads, such as `dx = 1`, stays
        own = [] if case.own_leaf is None else [case.own_leaf]
        self.names = [name for name in dict.fromkeys((*own, *subject.moving)) if name in used]
        self._both = evaluator([self.right, self.claimed])
        self.places = self._moved(self.names)
        self.places += [] if refuting is case.values else [refuting]
        values = self.values([self.right, self.claimed])
        nothing = np.zeros((0, 1))
        self.known = Comparison(values[self.right], values[self.claimed]) if values else Comparison(nothing, nothing)

    @property
    def by(self) -> Node | None:
        """What the derivative is taken by, if the right side is a gradient and nothing else."""
        node, kind, _, target, *_ = self.derived or (None, "", None, None)
        return target if kind == "grad" and node is self.right and target.shape == self.right.shape else None

    def doubtful(self, known: Sequence[Values], exact: Sequence[Floats]) -> bool:
        """Whether the engine's value is not the exact one at a known point, so that floats explain nothing."""
        for value, place in zip(exact, known, strict=False):
            engine = self._both(place)[0]
            if value.shape == engine.shape:
                there = ~np.isnan(value)
                scale = float(np.abs(value[there]).max(initial=0.0))
                if not (np.abs(engine - value)[there] <= TRUSTED * scale).all():
                    return True
        return False

    def sides(self) -> ScalarSides | None:
        """The derivation of the right side, its loops written out; None where it has no derivative or is too long."""
        if self.derived is None:
            return None
        node, kind, output, target, *_ = self.derived
        if kind == "grad":
            sides = self._through(node, output, target)
        elif kind in ("jacobian", "hessian") and node is self.right:
            sides = self._of_jacobian(output if kind == "jacobian" else derivatives.grad(output, [target])[0], target)
        else:
            return None
        if written_nodes(reachable([sides.output])) > MOST_STEPS:
            self.note = f"the program has more than {MOST_STEPS:,} steps"
            return None
        return sides._replace(output=unrolled(self.builder, [sides.output])[sides.output])

    def others(self) -> dict[str, Node]:
        """The gradients with respect to other leaves of the same shape, whose place a claim may have taken."""
        subject = self.case.subject
        if subject.output is None or subject.target is None:
            return {}
        twins = {
            node.params["name"].rpartition(".")[2]: node
            for node in reachable([subject.output])
            if node.primitive is LEAF and node is not subject.target and node.type == subject.target.type
        }
        return dict(zip(twins, derivatives.grad(subject.output, list(twins.values())), strict=True)) if twins else {}

    def values(self, nodes: Iterable[Node], places: Sequence[Values] = ()) -> dict[Node, Floats] | None:
        """The values of nodes at the moved points, or others, as first axis; None where they cannot be computed."""
        places, wanted = places or self.places, list(dict.fromkeys(nodes))
        used = leaf_names(wanted)
        feeds = {name: np.stack([at[name] for at in places]) for name in places[0] if name in used}
        try:
            with np.errstate(all="ignore"):
                results = Tape(wanted).run(feeds, backend="numpy")
        except GradcliError:
            return None
        floats = [np.asarray(result, np.float64) for result in results]
        return {node: np.broadcast_to(x, (len(places), *node.shape)) for node, x in zip(wanted, floats, strict=True)}

    def likeliest(self, candidates: Iterable[Candidate]) -> list[ErrorReading]:
        """The reading of the cheapest candidate whose sides are equal, and not all 0, at every moved point."""
        good: list[Candidate] = []
        tried = list(candidates)
        count = max(1, MOST_ENTRIES // (len(self.places) * self.right.type.size))
        for start in range(0, len(tried), count):
            some = tried[start : start + count]
            values = self.values(node for candidate in some for node in (candidate.left, candidate.right))
            good += [x for x in some if values is not None and agree(values[x.left], values[x.right])]
        return [min(good, key=lambda candidate: candidate.cost).reading()] if good else []

    def with_directions(self, inputs: Sequence[Node]) -> list[Values]:
        """The moved points, each several times with random values of the inputs."""
        draws = DIRECTIONS + 2 * (len(self.places) == 1) if inputs else 1
        places = [place for place in self.places for _ in range(draws)]
        for position, leaf in enumerate(inputs):
            values = cotangent((len(places), *leaf.type.shape), self.case.seed + position)
            places = [{**at, leaf.params["name"]: value} for at, value in zip(places, values, strict=True)]
        return places

    def holds_elsewhere(self, factor: Fraction) -> bool:
        """Whether the right side is this multiple of the claim at moved data too.

        What is one number at held data may be another subexpression, and no constant.
        """
        wide = sorted(leaf_names([self.right, self.claimed]) - {*self.names})
        values = self.values([self.right, self.claimed], self._moved([*self.names, *wide]))
        return values is None or agree(values[self.right], float(factor) * values[self.claimed])

    def _moved(self, names: Sequence[str]) -> list[Values]:
        """The given point, and others where all these leaves have moved; a bare number stays where it is."""
        case = self.case

        def moved(draw: int) -> Values:
            near = enumerate(names, case.seed + 31 * draw)
            steps = {x: chosen_points.nearby(case.values[x], case.domains.get(x), 1, seed) for seed, x in near}
            return {**case.values, **{name: next(values, case.values[name]) for name, values in steps.items()}}

        places = map(moved, range(0 if case.number or case.subject.rtol is not None else 4 * PLACES))
        finite = (place for place in places if all(np.isfinite(value).all() for value in self._both(place)))
        return [case.values, *islice(finite, PLACES)]

    def _find_derived(self) -> None:
        """The derivative in an equality; its side is the right one."""
        for side, other in ((self.right, self.claimed), (self.claimed, self.right)):
            derivative = next((x for x in reversed(reachable([side])) if x in self.case.subject.derived), None)
            if derivative is not None:
                self.right, self.claimed = side, other
                self.derived = (derivative, *self.case.subject.derived[derivative])
                return

    def _of_jacobian(self, rows: Node, target: Node) -> ScalarSides:
        """A Jacobian along a random row and a random column: the gradient of a combination of its rows."""
        left, right = self.builder.fresh_leaf(rows.type), self.builder.fresh_leaf(target.type)
        outer = reshape(left, shape=(rows.type.size, 1)) @ reshape(right, shape=(1, target.type.size))
        weight = reshape(outer, shape=(*rows.shape, *target.shape))
        sides = paired(self.right, weight), paired(self.claimed, weight)
        return ScalarSides(paired(rows, left), target, right, *sides, (left, right))

    def _through(self, node: Node, output: Node, target: Node) -> ScalarSides:
        """A gradient, or one inside another expression: the direction is what the expression makes of the gradient."""
        weight = self.builder.fresh_leaf(self.right.type) if self.right.shape else self.builder.constant(1)
        direction = weight if node is self.right else derivatives.vjp([self.right], [weight], [node])[0]
        right, claimed = paired(self.right, weight), paired(self.claimed, weight)
        return ScalarSides(output, target, direction, right, claimed, (weight,) if self.right.shape else ())


def agree(left: Floats, right: Floats) -> bool:
    """Whether two arrays are the same up to rounding, and not all 0; points are the first axis."""
    size = np.maximum(np.abs(left), np.abs(right))
    largest = size.max(axis=tuple(range(1, size.ndim)), initial=0.0, keepdims=True)
    near = np.abs(left - right) <= CLOSE * np.maximum(size, SMALL * largest)
    return bool(largest.any() and np.isfinite(largest).all() and near.all())
