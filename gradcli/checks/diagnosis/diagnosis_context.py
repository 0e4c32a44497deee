"""Evaluates both sides of a refuted claim at some points, for everything that explains it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from gradcli.checks.decide import sample_points
from gradcli.checks.decide.floats import evaluator, input_like, step_like
from gradcli.checks.oracle.oracle_client import leaf_names
from gradcli.checks.subjects import paired
from gradcli.diagnostics import GradcliError
from gradcli.execution.evaluate import Tape
from gradcli.graph.loop import written_nodes
from gradcli.graph.node import LEAF, Node, reachable
from gradcli.graph.unroll import unrolled
from gradcli.primitives.broadcasting import stretch
from gradcli.primitives.movement import reshape
from gradcli.transforms import derivatives

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from fractions import Fraction

    from gradcli.checks.decide.case import Case, Floats, Values


PLACES = 4  # points near the given one at which a reading must hold
TRUSTED = 1e-7  # relative to the largest entry
DIRECTIONS = 2  # along which an array is looked at
MOST_STEPS = 1200  # operations of a program that is searched


class Sides(NamedTuple):
    """A scalar of what is right and of what is claimed, and the derivation that leads to the first.

    The derivation goes from `output` to `target` along `direction`; `inputs` are leaves that take random values.
    """

    output: Node
    target: Node
    direction: Node
    right: Node
    claimed: Node
    inputs: tuple[Node, ...]


class Judgement:
    """Both sides of a refuted claim, and what else its readings are made from. The builder must be open.

    `places` are the given point and others where the leaves have moved; `derived` is the derivative that the right
    side is or contains, its kind, and of what by what it is taken; `note` is why not every mistake was tried.
    """

    def __init__(self, case: Case) -> None:
        self.case = case
        self.builder = case.subject.judged.builder
        self.note: str | None = None
        subject = case.subject
        self.claimed = subject.judged
        right = subject.left or subject.engine
        self.right: Node = derivatives.grad(case.output, [case.target])[0] if right is None else right
        self.derived: tuple[Node, str, Node, Node] | None = None
        if subject.output is None:
            self._find_derived()
        elif subject.target is not None:
            self.derived = self.right, "grad", subject.output, subject.target
        used = leaf_names([self.right, self.claimed])
        own = [] if case.own_leaf is None else [case.own_leaf]
        self.names = [name for name in dict.fromkeys((*own, *subject.moving)) if name in used]
        self._both = evaluator([self.right, self.claimed])
        self.places = self._moved(self.names)

    def doubtful(self, known: Sequence[Values], exact: Sequence[Floats]) -> bool:
        """Whether the engine's value is not the exact one at a known point, so that floats explain nothing."""
        for value, place in zip(exact, known, strict=False):
            found = self._both(place)[0]
            if value.shape == found.shape:
                there = ~np.isnan(value)
                scale = float(np.abs(value[there]).max(initial=0.0))
                if not (np.abs(found - value)[there] <= TRUSTED * scale).all():
                    return True
        return False

    def sides(self) -> Sides | None:
        """The derivation of the right side, its loops written out; None where it has no derivative or is too long."""
        if self.derived is None:
            return None
        node, kind, output, target = self.derived
        if kind == "grad":
            made = self._through(node, output, target)
        elif kind in ("jacobian", "hessian") and node is self.right:
            made = self._of_jacobian(output if kind == "jacobian" else derivatives.grad(output, [target])[0], target)
        else:
            return None
        if written_nodes(reachable([made.output])) > MOST_STEPS:
            self.note = f"the program has more than {MOST_STEPS:,} steps"
            return None
        return made._replace(output=unrolled(self.builder, [made.output])[made.output])

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

    def values(self, nodes: Sequence[Node], places: Sequence[Values] = ()) -> dict[Node, Floats] | None:
        """The values of nodes at the moved points, or others, as first axis; None where they cannot be computed."""
        places = places or self.places
        return at_places(nodes, {name: np.stack([at[name] for at in places]) for name in places[0]}, len(places))

    def batch(self, inputs: Sequence[Node]) -> dict[str, Floats]:
        """The moved points as one batch, each with several random values of the inputs."""
        turns = (DIRECTIONS + 2 * (len(self.places) == 1)) if inputs else 1
        found = {name: np.repeat([at[name] for at in self.places], turns, axis=0) for name in self.case.values}
        for position, leaf in enumerate(inputs):
            found[leaf.params["name"]] = drawn(leaf, self.case.seed + position, len(self.places) * turns)
        return found

    def changed(
        self, roots: Sequence[Node], part: Node, instead: Floats, above: Sequence[Node], values: Mapping[Node, Floats]
    ) -> list[Floats] | None:
        """The values of some nodes where a part has others; None where they cannot be computed.

        `above` are the dependents of the part among the nodes that have `values` at the moved points, which are the
        first axis; `instead` may have axes in front of that, and so have the results.
        """
        inputs = {**self.batch(()), "~part": instead}
        made = {part: input_like(part, "~part", part.serial)}
        for node in above:
            for arg in node.args:
                if arg not in made and arg.args and arg.type.kind == "float":
                    made[arg] = input_like(arg, f"~{arg.serial}", arg.serial)
                    inputs[f"~{arg.serial}"] = values[arg]
            made[node] = step_like(node, node.primitive, tuple([made.get(arg, arg) for arg in node.args]), node.params)
        moved = [root for root in roots if root in made]
        lead = instead.shape[: instead.ndim - len(part.shape)]
        try:
            found = dict(zip(moved, Tape([made[root] for root in moved]).run(inputs, backend="numpy"), strict=True))
        except GradcliError:
            return None
        return [np.broadcast_to(found.get(root, values[root]), (*lead, *root.shape)) for root in roots]

    def holds_elsewhere(self, factor: Fraction) -> bool:
        """Whether the right side is this multiple of the claim at moved data too.

        What is one number at held data may be another subexpression, and no constant.
        """
        if self.case.number or self.case.subject.rtol is not None:
            return True
        wide = sorted(leaf_names([self.right, self.claimed]) - {*self.names})
        values = self.values([self.right, self.claimed], self._moved([*self.names, *wide])) or {}
        return all(
            bool((np.abs(right - float(factor) * claimed) <= TRUSTED * np.abs(right).max(initial=0.0)).all())
            for right, claimed in zip(values.get(self.right, ()), values.get(self.claimed, ()), strict=True)
        )

    def _moved(self, names: Sequence[str]) -> list[Values]:
        """The given point, and others where all these leaves have moved; a bare number stays where it is."""
        case = self.case
        found: list[Values] = [case.values]
        if case.number or case.subject.rtol is not None:
            return found
        for turn in range(4 * PLACES):
            place = dict(case.values)
            for position, name in enumerate(names):
                seed = case.seed + 31 * turn + position
                near = next(sample_points.nearby(case.values[name], case.domains.get(name), 1, seed), None)
                if near is not None:
                    place[name] = near
            if all(np.isfinite(value).all() for value in self._both(place)):
                found.append(place)
            if len(found) > PLACES:
                break
        return found

    def _find_derived(self) -> None:
        """The derivative in an equality; its side is the right one."""
        for side, other in ((self.right, self.claimed), (self.claimed, self.right)):
            order = reachable([side])
            found = next((node for node in reversed(order) if node in self.case.subject.derived), None)
            if found is not None:
                self.right, self.claimed = side, other
                self.derived = (found, *self.case.subject.derived[found])
                return

    def _of_jacobian(self, rows: Node, target: Node) -> Sides:
        """A Jacobian along a random row and a random column: the gradient of a combination of its rows."""
        left, right = self.builder.fresh_leaf(rows.type), self.builder.fresh_leaf(target.type)
        shape = (*rows.shape, *target.shape)
        column = stretch(reshape(left, shape=(*rows.shape, *(1,) * len(target.shape))), shape)
        weight = column * stretch(reshape(right, shape=(*(1,) * len(rows.shape), *target.shape)), shape)
        sides = paired(self.right, weight), paired(self.claimed, weight)
        return Sides(paired(rows, left), target, right, *sides, (left, right))

    def _through(self, node: Node, output: Node, target: Node) -> Sides:
        """A gradient, or one inside another expression: the direction is what the expression makes of the gradient."""
        weight = self.builder.fresh_leaf(self.right.type) if self.right.shape else self.builder.constant(1)
        direction = weight if node is self.right else derivatives.vjp([self.right], [weight], [node])[0]
        right, claimed = paired(self.right, weight), paired(self.claimed, weight)
        return Sides(output, target, direction, right, claimed, (weight,) if self.right.shape else ())


def all_dependents(order: Sequence[Node]) -> dict[Node, list[Node]]:
    """For each node of an order, those that are computed from it, in order."""
    place = {node: 1 << i for i, node in enumerate(order)}
    masks = dict.fromkeys(order, 0)
    for node in reversed(order):
        for arg in node.args:
            masks[arg] |= masks[node] | place[node]
    return {node: [other for other in order if mask & place[other]] for node, mask in masks.items()}


def drawn(leaf: Node, seed: int, count: int) -> Floats:
    """Random values of a leaf: short binary fractions, none of them 0."""
    generator = np.random.default_rng(seed)
    shape = (count, *leaf.type.shape)
    values = generator.integers(8, 64, shape) * generator.choice([-1.0, 1.0], shape) / 32
    return np.asarray(values, dtype=np.float64)


def at_places(nodes: Sequence[Node], places: Values, count: int) -> dict[Node, Floats] | None:
    """The values of nodes at all places, the places as first axis; None where the program cannot be run."""
    wanted = list(dict.fromkeys(nodes))
    used = leaf_names(wanted)
    try:
        with np.errstate(all="ignore"):
            found = Tape(wanted).run({k: v for k, v in places.items() if k in used}, backend="numpy")
    except GradcliError:
        return None
    made = [np.broadcast_to(np.asarray(x, np.float64), (count, *n.shape)) for n, x in zip(wanted, found, strict=True)]
    return dict(zip(wanted, made, strict=True))
