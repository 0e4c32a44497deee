"""Nodes at a point go in, whether a claim about them is an identity comes out: proved, or why not.

A claimed derivative is compared with the derivation of the value's form, an equality with the other side's form. A
difference that is not zero refutes nothing. A proof names the signs on which it rests, and the leaves that it took as
constants at their values.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from gradcli.checks.entries import Entries, Failure, Undecided, UndefinedAt, Unsupported
from gradcli.checks.forms import injective
from gradcli.checks.forms.derivation import Derivation
from gradcli.checks.forms.field import FormField
from gradcli.checks.forms.polynomials import Full, Spent
from gradcli.checks.forms.rebuild import WRITTEN_OUT, released
from gradcli.checks.forms.ring import Form
from gradcli.checks.forms.text import always_positive, relation, text
from gradcli.checks.forms.tower import LARGE, SIZES, Tower
from gradcli.checks.reading import Reading
from gradcli.checks.shown import position
from gradcli.graph.node import LEAF, Node, reachable

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Sequence

    from gradcli.checks.balls import Point

    Answer = dict[str, Any]
    Pairs = Iterable[tuple[Any, Any]]
    Failures = dict[Hashable, tuple[type[Exception], str]]  # of readings of values: what was raised

MOST_SYMBOLS = 24
MOST_ROWS = 6


class NoValue(Exception):
    """An entry that has no value at the point, and why."""


FAILED = (Full, NoValue, Spent, Undecided, UndefinedAt, Unsupported, OverflowError)


class Reader(NamedTuple):
    """How a claim is read: with symbols for data too, with denominators apart, or with matrices kept symmetric."""

    every: bool = False
    apart: bool = False
    symmetric: tuple[str, ...] = ()


class Claim:
    """Forms of nodes in one tower, with symbols for the leaves that move."""

    def __init__(self, tower: Tower, point: Point, decimal: bool, reader: Reader) -> None:
        self.tower = tower
        self.values = point
        self.reader = reader
        self.decimal = decimal
        self.every = reader.every
        self.symmetric = reader.symmetric
        tower.inverting = reader.apart
        self.plain = FormField(tower, decimal=decimal)
        self.holding = FormField(tower, decimal=decimal, hold=True)
        self.point: dict[str, Entries] = {}
        self.frozen: list[str] = []

    def leaves(self, nodes: Sequence[Node], moving: Sequence[str], free: int) -> None:
        """Entries for the leaves that some nodes read; at most so many symbols."""
        for node in reachable(nodes):
            if node.primitive is not LEAF or node.params["name"] in self.point:
                continue
            name = node.params["name"]
            moves = (self.every or name in moving) and node.type.size <= free
            free -= node.type.size if moves else 0
            if name in moving and not moves:
                self.frozen.append(name)
            self.point[name] = self.leaf(node, None if moves else ())

    def leaf(self, node: Node, chosen: Sequence[int] | None) -> Entries:
        """Symbols for the chosen entries of a leaf (None: all), exact constants for the others."""
        name = node.params["name"]
        flat, shape = self.values[name]
        made = [self.plain.fixed(value) for value in flat]
        for i, value in enumerate(made):
            if (chosen is None or i in chosen) and not isinstance(value, Failure):
                made[i] = self.plain.symbol(name + position(i, shape), value)
        if name in self.symmetric:  # what is below the diagonal moves alone, and has the value of what is above
            n = shape[0]
            for i in range(n * n):
                above = i % n * n + i // n
                if above < i and isinstance(made[i], Form):
                    made[i] = self.plain.held(name + position(i, shape), made[above])
        return Entries(made, shape)

    def setting(self) -> Hashable:
        """All that a reading depends on but the node and the point; the order of the symbols does not count."""
        symbols = frozenset((one.kind, one.name) for one in self.tower.generators)
        return self.tower.size, self.reader, self.decimal, symbols

    def region(self) -> list[str]:
        """The signs that were used, in words."""
        known: dict[int, Form] = {}
        signs = [(released(form, known, True), side) for form, side in list(self.tower.region.values())]
        telling = [(form, side) for form, side in signs if self.tower.moves(form) and not always_positive(form)]
        found = list(dict.fromkeys(relation(form, side) for form, side in telling))
        return [*found, *(f"{name} is symmetric" for name in self.symmetric)]


def prove_derivative(
    output: Node,
    target: Node,
    right: Node,
    moving: Sequence[str],
    point: Point,
    entries: Sequence[int],
    decimal: bool = False,
    failures: Failures | None = None,
) -> Answer:
    """Whether entries of the right node are the derivatives of a scalar node by the same entries of the target.

    `failures` are those of values at this point that were read for other claims: they are not tried again.
    """
    known = {} if failures is None else failures

    def attempt(claim: Claim) -> Answer:
        return answered(claim, derivative_pairs(claim, output, target, right, moving, entries, known))

    return attempted(attempt, moving, point, decimal)


def prove_equal(left: Node, right: Node, moving: Sequence[str], point: Point, decimal: bool = False) -> Answer:
    """Whether two nodes are equal, entry by entry."""

    def attempt(claim: Claim) -> Answer:
        claim.leaves([left, right], moving, MOST_SYMBOLS)
        one, other = Reading(claim.plain, claim.point).read([left, right])
        return answered(claim, zip(one.flat, other.flat, strict=True))

    return attempted(attempt, moving, point, decimal)


def attempted(attempt: Callable[[Claim], Answer], moving: Sequence[str], point: Point, decimal: bool) -> Answer:
    """The answer of an attempt, in the first reading of the claim that gives a proof; else that of the plain one."""
    symmetric = tuple(name for name, value in point.items() if is_symmetric(*value))
    readers = [Reader(), *([] if set(point) <= set(moving) else [Reader(every=True)])]
    readers += [Reader(symmetric=symmetric)] if symmetric else []
    first = None
    while readers:
        reader = readers.pop(0)

        def claim(size: int, reader: Reader = reader) -> Claim:
            return Claim(Tower(size), point, decimal, reader)

        answer, over = in_rings(attempt, claim, LARGE if reader.apart else SIZES)
        if answer["proved"]:
            return answer
        if over and reader == Reader():
            readers.insert(0, Reader(apart=True))
        first = first or answer
    assert first is not None
    return first


def in_rings(
    attempt: Callable[[Claim], Answer], claim: Callable[[int], Claim], sizes: Sequence[int]
) -> tuple[Answer, bool]:
    """The answer of an attempt in a small ring, or in a large one where that is full; whether it was over a budget."""
    reason: object = ""
    for size in sizes:
        try:
            return attempt(claim(size)), False
        except Full as problem:
            reason = problem
        except FAILED as problem:
            reason = problem
            break
    return {"proved": False, "reason": str(reason)}, True


def is_symmetric(flat: Sequence[float], shape: Sequence[int]) -> bool:
    """Whether the value of a leaf is a symmetric matrix of two rows or more."""
    if len(shape) != 2 or shape[0] != shape[1] or not 2 <= shape[0] <= MOST_ROWS:
        return False
    n = shape[0]
    return all(flat[i] == flat[i % n * n + i // n] for i in range(n * n))


def derivative_pairs(
    claim: Claim,
    output: Node,
    target: Node,
    judged: Node,
    moving: Sequence[str],
    entries: Sequence[int],
    failures: Failures,
) -> Pairs:
    """For each entry: the derivative of the value's form, and the form of what is judged."""
    tower = claim.tower
    if target.primitive is LEAF:
        claim.point[target.params["name"]] = claim.leaf(target, entries)
    claim.leaves([output, target, judged], moving, MOST_SYMBOLS - len(entries))
    fixed = {}
    if target.primitive is LEAF:
        variables = claim.point[target.params["name"]].flat
    else:
        own = Reading(claim.plain, claim.point)[target]
        variables = [claim.holding.held(f"value{target.serial}[{i}]", x) for i, x in enumerate(own.flat)]
        fixed[target] = Entries(variables, own.shape)
    key = (output, *fixed, claim.setting())
    if key in failures:
        kind, reason = failures[key]
        raise kind(reason)
    reading = Reading(claim.holding, claim.point, fixed)
    try:
        value = form_of(tower, reading[output].flat[0])
    except FAILED as problem:
        failures[key] = type(problem), str(problem)
        raise
    alike = not (fixed or claim.holding.held_any or claim.holding.ties or tower.refined)
    told = Reading(claim.plain, claim.point, reading.known if alike else None)[judged].flat
    for i in entries:
        yield Derivation(form_of(tower, variables[i])).of(value), told[i]


def answered(claim: Claim, pairs: Pairs) -> Answer:
    """Whether all pairs are equal; the hardest step that one of them needed."""
    tower, hardest = claim.tower, "structure"
    known: tuple[dict[int, Form], dict[int, Form]] = ({}, {})
    for one, other in pairs:
        exact, claimed = form_of(tower, one), form_of(tower, other)
        if exact.same(claimed):
            continue
        hardest = "normal form"
        difference = exact - claimed
        for naming in (True, False):  # with long powers as generators again, then all written out
            if not difference.is_zero and any(one.kind in WRITTEN_OUT for one in tower.generators):
                exact, claimed = released(exact, known[naming], naming), released(claimed, known[naming], naming)
                difference = exact - claimed
        if not difference.is_zero and not injective.equal(exact, claimed):
            return {
                "proved": False,
                "reason": f"the difference {text(difference)} is not zero by algebra",
                "budget": False,
            }
    ties = [*claim.plain.ties, *claim.holding.ties]
    if ties:
        reason = f"a branch hangs on an exact zero at this point, of {text(ties[0])}"
        return {"proved": False, "reason": reason}
    region = claim.region()
    reach = {"everywhere": tower.everywhere, "local": tower.local}
    return {"proved": True, "how": hardest, "region": region, "frozen": claim.frozen, **reach}


def form_of(tower: Tower, entry: Any) -> Form:
    """The form of an entry; raises NoValue where it has no value."""
    if isinstance(entry, Failure):
        raise NoValue(entry.reason)
    return tower.lift(int(entry) if isinstance(entry, bool) else entry)
