"""Challenges to statements about sets of points: both sides are enclosed at members of the set before one is made.

A proof for all sizes, or for all values of the inputs, rests on what it assumes. At the members branches are taken that
the point does not take: all entries are positive, negative, of both signs, far away or partly zero, in small arrays.
"""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gradcli.base.diagnostics import GradcliError
from gradcli.checks.decide.case import Case, differ
from gradcli.checks.decide.chosen_points import drawn, inside, symmetric
from gradcli.checks.evaluate.evaluation import work_of
from gradcli.checks.oracle.oracle_client import NoAnswer
from gradcli.graph.node import CONSTANT, reachable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from gradcli.checks.decide.assumptions import Assumption
    from gradcli.checks.oracle.oracle_client import Exact
    from gradcli.checks.subjects import Subject
    from gradcli.graph.program import Leaf
    from gradcli.lowering import Lowered

    Sizes = Mapping[str, int]
    ClaimAt = Callable[[tuple[int, ...]], tuple[Sizes, Lowered, Subject]]

CHOICES = ((1,), (2, 3, 5), (3, 2, 1), (5, 1, 2))  # of sizes, each taken in turn
RANGES = {  # of all inputs
    "positive entries": (0.3, 2.0),
    "negative entries": (-2.0, -0.3),
    "entries of both signs": (-2.0, 2.0),
    "zero entries": (-2.0, 2.0),  # half of them
}
BESIDE = "entries beside numbers of the script"  # which it may compare with
KINDS = (*list(RANGES)[:-1], "entries of any size", BESIDE, *list(RANGES)[-1:])
POWERS, NEAR, LARGEST = (-9, 6), 2.0**-20, 1e300  # of 10, of those sizes; how near numbers, and numbers up to it
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
            try:
                answer = Case(other, member).compare([member.values])
            except NoAnswer:
                return None
            if "points" in answer and differ(answer["points"][0]):
                return Member(member, sizes, entries)
    return None


def members(
    lowered: Lowered, subject: Subject, zeros: bool = False, draws: int = 1, known: Iterable[str] = ()
) -> Iterator[tuple[str, Subject]]:
    """A claim at points where the leaves without values have entries of each kind, also with zeros if these count.

    A leaf with a domain is one of them, unless it has another value than its default, and what is `known` is not.
    """
    values, leaves, plane = lowered.values, lowered.program.leaves, subject.settings.plane
    fixed = {name for name in values if leaves[name].domain is None or values[name] is not leaves[name].default}
    free = [leaf for name, leaf in leaves.items() if name not in {*known, *fixed}]
    read = [node.params["value"] for node in reachable(subject.nodes()) if node.primitive is CONSTANT]
    numbers = [1.0, *(float(abs(x)) for x in read if not isinstance(x, str) and 0 < abs(x) < LARGEST)]
    for seed, entries in product(range(1, draws + 1), KINDS[: None if zeros else -1] if free else ()):
        generator = np.random.default_rng(seed)
        moved = {leaf.name: entries_of(generator, leaf, entries, numbers, plane) for leaf in free}
        yield entries, subject.at({**subject.values, **moved})


def entries_of(random: np.random.Generator, leaf: Leaf, kind: str, numbers: Sequence[float], plane: bool) -> Any:
    """Random entries of a kind for a leaf, in its domain; of any size, or beside numbers, often of one sign."""
    shape, usual = leaf.node.shape, drawn(random, leaf, *RANGES.get(kind, (-2.0, 2.0)), plane)
    each = shape if random.uniform() < 0.5 else ()
    signs = random.choice([-1.0, 1.0], each)
    if kind == BESIDE:
        value = signs * random.choice(numbers, each) * (1.0 + random.choice([-NEAR, NEAR], shape))
    elif kind == "zero entries":
        value = np.where(random.uniform(size=shape) < 0.5, 0.0, usual)
    else:
        value = usual if kind in RANGES else signs * 10.0 ** random.uniform(*POWERS, shape)
    return symmetric(leaf, np.where(inside(leaf.domain, value), value, usual))
