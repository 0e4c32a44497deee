"""Challenges to statements about sets of points: both sides are enclosed at members of the set before one is made.

A proof for all sizes, or for all values of the inputs, rests on what it assumes. At the members branches are taken that
the point does not take: all entries are positive, negative, of both signs, far away or partly zero, in small arrays.
"""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gradcli.base.diagnostics import GradcliError
from gradcli.checks.decide.case import differ
from gradcli.checks.decide.chosen_points import drawn
from gradcli.checks.evaluate.evaluation import work_of
from gradcli.checks.oracle.oracle_client import NoAnswer
from gradcli.graph.node import reachable
from gradcli.lowering.points import array_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from gradcli.checks.decide.assumptions import Assumption
    from gradcli.checks.oracle.oracle_client import Exact
    from gradcli.checks.subjects import Subject
    from gradcli.lowering import Lowered

    Sizes = Mapping[str, int]
    ClaimAt = Callable[[tuple[int, ...]], tuple[Sizes, Lowered, Subject]]

CHOICES = ((1,), (2, 3, 5), (3, 2, 1), (5, 1, 2))  # of sizes, each taken in turn
RANGES = {  # of all inputs
    "positive entries": (0.3, 2.0),
    "negative entries": (-2.0, -0.3),
    "entries of both signs": (-2.0, 2.0),
    "large entries": (-128.0, 128.0),
    "large positive entries": (8.0, 128.0),
    "large negative entries": (-128.0, -8.0),
    "zero entries": (-2.0, 2.0),  # half of them
}
MOST_WORK = 400_000  # operations on entries of a member that is looked at


class Member(NamedTuple):
    """A claim at a member of the set that it is about."""

    subject: Subject
    sizes: Sizes
    entries: str

    @property
    def place(self) -> str:
        """Which member it is: n = 2 and negative entries."""
        return " and ".join(filter(None, (sizes_text(self.sizes), self.entries)))


def sizes_text(sizes: Sizes) -> str:
    """Sizes in words: m = 2, n = 3."""
    return ", ".join([f"{name} = {size}" for name, size in sizes.items()])


def counterexample(
    exact: Exact, claim_at: ClaimAt, assumed: Sequence[Assumption], choices: Sequence[tuple[int, ...]] = CHOICES
) -> Member | None:
    """The first member at which both sides of a claim are certainly different, except at ties that are left out.

    `claim_at` makes the claim at a choice of sizes; a script that cannot have them has no member there.
    """
    ties = all(assumption.kind == "defined" for assumption in assumed)
    exact.begin()
    for choice in choices:
        try:
            sizes, lowered, subject = claim_at(choice)
        except GradcliError:
            continue
        if subject.judged.type.size * work_of(reachable(subject.nodes())) > MOST_WORK:
            continue
        other = exact.beside(subject.nodes())
        for entries, member in members(lowered, subject, zeros=ties):
            derivative = None if subject.output is None else member.derivative()
            about: dict[str, Any] = {"left": subject.left, "plane": False, "rtol": subject.rtol, "rounding": 0.0}
            try:
                answer = other.compare(member.judged, [member.values], derivative=derivative, **about)
            except NoAnswer:
                return None
            if "points" in answer and differ(answer["points"][0]):
                return Member(member, sizes, entries)
    return None


def members(lowered: Lowered, subject: Subject, zeros: bool = False, draws: int = 1) -> Iterator[tuple[str, Subject]]:
    """A claim at points where the leaves without values have entries of each kind, also with zeros if these count."""
    for seed, entries in product(range(1, draws + 1), RANGES if zeros else list(RANGES)[:-1]):
        yield entries, subject.at(values_of(lowered, entries, seed, subject.settings.plane))


def values_of(lowered: Lowered, entries: str, seed: int, plane: bool) -> dict[str, Any]:
    """A value for every leaf: the one that it has, else random entries of a kind."""
    generator = np.random.default_rng(seed)
    values: dict[str, Any] = {}
    for name, leaf in lowered.program.leaves.items():
        value, zero = drawn(generator, leaf, *RANGES[entries]), generator.uniform(size=leaf.node.shape) < 0.5
        if entries == "zero entries" and (leaf.domain is None or leaf.domain.contains(0.0)):
            value = np.where(zero, 0.0, value)
        known = lowered.values.get(name)
        value = value + 1j * drawn(generator, leaf, *RANGES[entries]) if plane else value
        values[name] = value if known is None else np.asarray(array_of(known), dtype=value.dtype)
    return values
