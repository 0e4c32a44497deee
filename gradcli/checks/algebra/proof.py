"""Proves that a claim about nodes at a point is an identity, or says why it could not.

A claimed derivative is compared with the derivation of the value's form, an equality with the other side's form. A
difference that is not zero refutes nothing. A proof names the signs on which it rests, and the leaves that it took as
constants at their values.
"""

from __future__ import annotations

from fractions import Fraction
from math import gcd
from typing import TYPE_CHECKING, Any, NamedTuple

from flint import fmpq

from gradcli.checks.algebra.differential_field import (
    MOST_APART,
    MOST_WORK,
    SIZES,
    Form,
    Full,
    Generator,
    Spent,
    Tower,
    leading,
)
from gradcli.checks.algebra.elementary_functions import HALF, POWERS, WRITTEN_OUT, Derivation, equal_angles, released
from gradcli.checks.algebra.form_field import FormField
from gradcli.checks.algebra.real_forms import NotReal, made_real
from gradcli.checks.evaluate.evaluation import Reading
from gradcli.checks.evaluate.interpretation import Entries, Failure, Undecided, Unsupported
from gradcli.checks.formatting import position
from gradcli.graph.node import LEAF, Node, reachable

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Sequence

    from gradcli.checks.evaluate.balls import Point

    Answer = dict[str, Any]
    Pairs = Iterable[tuple[Any, Any]]
    Failed = dict[Hashable, tuple[type[Exception], str]]  # what ended the reading of a value


MOST_SYMBOLS = 24
FAILED = (Failure, Unsupported, OverflowError)


class Options(NamedTuple):
    """How a claim is read: with symbols for `every` leaf, data too, or with denominators `apart`, as generators."""

    every: bool = False
    apart: bool = False


PLAIN = Options()


class Claim:
    """Forms of nodes in one tower, with symbols for the leaves that move."""

    def __init__(self, tower: Tower, point: Point, options: Options) -> None:
        self.tower = tower
        self.values = point
        self.options = options
        tower.inverting = options.apart
        self.plain = FormField(tower)
        self.holding = FormField(tower, hold=True)
        self.point: dict[str, Entries] = {}
        self.frozen: list[str] = []

    def leaves(self, nodes: Sequence[Node], moving: Sequence[str], target: Node | None, entries: Sequence[int]) -> None:
        """Entries for the leaves among some nodes, with symbols for as many as there may be: the target's first."""
        self.frozen = []
        free = MOST_SYMBOLS - len(entries)
        for node in nodes:
            if node.primitive is not LEAF:
                continue
            name = node.params["name"]
            if node is target:
                self.point[name] = self.leaf(node, entries)
                continue
            moves = (self.options.every or name in moving) and node.type.size <= free
            free -= node.type.size if moves else 0
            if name in moving and not moves:
                self.frozen.append(name)
            self.point[name] = self.leaf(node, None if moves else ())

    def leaf(self, node: Node, chosen: Sequence[int] | None) -> Entries:
        """Symbols for the chosen entries of a leaf (None: all), exact constants for the others."""
        name = node.params["name"]
        flat, shape = self.values[name]
        made = [self.plain.datum(value) for value in flat]
        for i, value in enumerate(made):
            if (chosen is None or i in chosen) and not isinstance(value, Failure):
                made[i] = self.plain.symbol(name + position(i, shape), value)
        return Entries(made, shape)

    def unknown(self, name: str, node: Node) -> Entries:
        """Symbols without a value for all entries of a node: what holds for them holds for what the node is."""
        symbols = [self.plain.symbol(f"{name}[{i}]", None, "unknown") for i in range(node.type.size)]
        return Entries(symbols, node.type.shape)

    def region(self) -> list[str]:
        """The signs that were used, in words."""
        known: dict[int, Form] = {}
        signs = [(released(form, known, True), side) for form, side in list(self.tower.region.values())]
        telling = [(form, side) for form, side in signs if self.tower.moves(form) and not always_positive(form)]
        return list(dict.fromkeys(relation(form, side) for form, side in telling))


def prove_derivative(
    output: Node,
    target: Node,
    right: Node,
    moving: Sequence[str],
    point: Point,
    entries: Sequence[int],
    failed: Failed | None = None,
) -> Answer:
    """Whether entries of the right node are the derivatives of a scalar node by the same entries of the target.

    `failed` are the values that were not read at this point for other claims: they are not tried again.
    """
    known = {} if failed is None else failed
    nodes = reachable([output, target, right])

    def attempt(claim: Claim) -> Answer:
        claim.leaves(nodes, moving, target, entries)
        return answered(claim, derivative_pairs(claim, output, target, right, entries, known))

    return attempted(attempt, moving, point)


def prove_equal(left: Node, right: Node, moving: Sequence[str], point: Point) -> Answer:
    """Whether two nodes are equal, entry by entry."""

    def attempt(claim: Claim) -> Answer:
        claim.leaves(reachable([left, right]), moving, None, ())
        one, other = Reading(claim.plain, claim.point).read([left, right])
        return answered(claim, zip(one.flat, other.flat, strict=True))

    return attempted(attempt, moving, point)


def attempted(attempt: Callable[[Claim], Answer], moving: Sequence[str], point: Point) -> Answer:
    """The answer of an attempt with the first options that give a proof; else the plain one."""
    plain, problem = in_rings(attempt, point)
    others = []
    if problem is not None:  # over a budget
        others.append(Options(apart=True))
    if not isinstance(problem, Spent) and not set(point) <= set(moving):
        others.append(Options(every=True))
    answers = (in_rings(attempt, point, options)[0] for options in others if not plain["proved"])
    return next((answer for answer in answers if answer["proved"]), plain)


def in_rings(
    attempt: Callable[[Claim], Answer], point: Point, options: Options = PLAIN
) -> tuple[Answer, Exception | None]:
    """The answer of an attempt in the first ring that is large enough, and what ended it where it was over a budget."""
    problem: Exception | None = None
    for size in SIZES[1:] if options.apart else SIZES:
        try:
            return attempt(Claim(Tower(size, MOST_APART if options.apart else MOST_WORK), point, options)), None
        except FAILED as reason:
            problem = reason
            if not isinstance(reason, Full):
                break
    return {"proved": False, "reason": str(problem)}, problem


def derivative_pairs(
    claim: Claim, output: Node, target: Node, judged: Node, entries: Sequence[int], failed: Failed
) -> Pairs:
    """For each entry: the derivative of the form of a scalar node, and the form of what is judged."""
    fixed = {}
    if target.primitive is LEAF:
        variables = claim.point[target.params["name"]].flat
    else:
        own = Reading(claim.plain, claim.point)[target]
        variables = [claim.holding.held(f"value{target.serial}[{i}]", x) for i, x in enumerate(own.flat)]
        fixed[target] = Entries(variables, own.shape)
    key = (output, *fixed, claim.options, claim.tower.size, frozenset(one.name for one in claim.tower.generators))
    if key in failed:
        kind, reason = failed[key]
        raise kind(reason)
    reading = Reading(claim.holding, claim.point, fixed)
    try:
        value = form_of(claim.tower, reading[output].flat[0])
    except FAILED as problem:
        failed[key] = type(problem), str(problem)
        raise
    alike = not (fixed or claim.holding.held_any or claim.holding.ties or claim.tower.refined)
    claimed = Reading(claim.plain, claim.point, reading.known if alike else None)[judged].flat
    for i in entries:
        yield Derivation(form_of(claim.tower, variables[i])).of(value), claimed[i]


def answered(claim: Claim, pairs: Pairs) -> Answer:
    """Whether all pairs are equal; the hardest step that one of them needed."""
    tower, hardest, local = claim.tower, "structure", False
    known: dict[int, Form] = {}
    for one, other in pairs:
        exact, claimed = form_of(tower, one), form_of(tower, other)
        if exact.same(claimed):
            continue
        hardest = "normal form"
        difference = exact - claimed
        if not difference.is_zero and any(one.kind in WRITTEN_OUT for one in tower.generators):
            difference = released(exact, known, False) - released(claimed, known, False)
        if not difference.is_zero:
            local = equal_angles(difference)
            if not local:
                reason = f"the difference {text(difference)} is not identically zero"
                return {"proved": False, "reason": reason, "budget": False}
    ties = [*claim.plain.ties, *claim.holding.ties]
    if ties:
        reason = f"a branch depends on an exact zero at this point: {text(ties[0])}"
        return {"proved": False, "reason": reason, "tie": True}
    return {"proved": True, "how": hardest, "region": claim.region(), "frozen": claim.frozen, "local": local}


def form_of(tower: Tower, entry: Any) -> Form:
    """The form of an entry; raises the failure of one that has no value."""
    if isinstance(entry, Failure):
        raise entry
    form: Form = tower.lift(int(entry) if isinstance(entry, bool) else entry)
    return form


# --- forms as text ----------------------------------------------------------------------------------------------------

MOST_SHOWN = 40  # terms
HUGE = 10**300
LONG_NUMBER = 10**9  # a fraction of larger numbers is shown rounded
LONG = "a long expression"
RELATIONS = ("= 0", "> 0", "< 0")  # by sign

Term = tuple[fmpq, tuple[str, ...]]  # a coefficient and its factors


def text(form: Form, most: int = 100) -> str:
    """An expression as people read it, cut where it is long."""
    shown = whole_text(form)
    return shown if len(shown) <= most else shown[: most - 4] + " ..."


def whole_text(form: Form) -> str:
    """An expression as people read it."""
    found = _parts(form)
    return LONG if found is None else _fraction(*found)


def relation(form: Form, side: int) -> str:
    """A form and its sign, without a constant factor and with a first term that is added."""
    found = _parts(form)
    if found is None:
        return f"{LONG} {RELATIONS[side]}"
    top, bottom = found
    if not bottom[0][1]:
        bottom = [(fmpq(1), ())]
    scale = max(abs(c.q) for c, _ in top) / fmpq(gcd(*(int(c.p) for c, _ in top)))
    if top[0][0] < 0:
        scale, side = -scale, -side
    shown = _fraction([(c * scale, factors) for c, factors in top], bottom)
    return f"{shown if len(shown) <= 60 else shown[:56] + ' ...'} {RELATIONS[side]}"


def always_positive(form: Form) -> bool:
    """Whether a form is positive wherever it is defined, as it is written: a sum of squares and exponentials."""
    tower = form.tower
    positive = {i for i, one in enumerate(tower.generators) if one.kind in ("root", "pi", "exp")} - tower.complex
    for poly in (form.num, form.den):
        strict = False
        for powers, coefficient in poly.terms():
            others = [i for i, n in enumerate(powers) if n and i not in positive]
            if coefficient < 0 or any(int(powers[i]) % 2 or i in tower.complex for i in others):
                return False
            strict = strict or not others
        if not strict:
            return False
    return True


def _parts(form: Form) -> tuple[list[Term], list[Term]] | None:
    """The terms of numerator and denominator; None where there are too many."""
    if max(len(form.num), len(form.den)) > MOST_SHOWN:
        return None
    tower = form.tower
    try:
        bottom = made_real(tower.poly(form.den))
        return _terms(form * bottom if tower.is_complex(form) else tower.poly(form.num)), _terms(bottom)
    except Undecided:
        return None


def _fraction(top: list[Term], bottom: list[Term]) -> str:
    if len(bottom) == 1 and not bottom[0][1]:
        return _sum([(c / bottom[0][0], factors) for c, factors in top])
    above, below = _sum(top), _sum(bottom)
    above = f"({above})" if len(top) > 1 else above
    plain = len(bottom) == 1 and bottom[0][0] == 1 and len(bottom[0][1]) == 1
    return f"{above}/{below}" if plain else f"{above}/({below})"


def _sum(terms: Iterable[Term]) -> str:
    found = ""
    for coefficient, factors in terms:
        size = abs(coefficient)
        shown = "*".join(([_number(size)] if size != 1 or not factors else []) + list(factors))
        sign = "-" if coefficient < 0 else "+"
        found += f" {sign} {shown}" if found else shown if sign == "+" else f"-{shown}"
    return found or "0"


def _number(value: fmpq) -> str:
    if abs(value) > HUGE:
        return "a large number"
    if max(abs(value.p), value.q) > LONG_NUMBER:
        return f"{float(Fraction(int(value.p), int(value.q))):.6g}"
    return str(value)


def _terms(form: Form) -> list[Term]:
    """The terms of a real form over a monomial; each exponential with its conjugate is a cosine or a sine."""
    tower = form.tower
    if len(form.den) != 1:
        raise NotReal
    below, scale = form.den.degrees(), leading(form.den)
    found: list[Term] = []
    for powers, coefficient in form.num.terms():
        turn, argument, value, factors = 0, tower.zero, fmpq(coefficient, scale), []
        for i, (above, under) in enumerate(zip(powers, below, strict=True)):
            n = int(above) - int(under)
            if n and tower.generators[i].kind == "i":
                turn += n
            elif n and i in tower.complex:
                argument = argument - tower.i * tower.generators[i].args[0] * tower.generators[i].unit * n
            elif n:
                name = generator_text(tower.generators[i])
                factors.append(name if n == 1 else f"{name}**{n}")
        value = -value if turn % 4 >= 2 else value
        if argument.is_zero:
            found.append((value, tuple(factors)))
        elif leading(argument.num) > 0:
            wave = f"{'sin' if turn % 2 else 'cos'}({whole_text(argument)})"
            found.append((-2 * value if turn % 2 else 2 * value, (*factors, wave)))
    return found


def generator_text(one: Generator) -> str:
    """A generator as people write it."""
    args = [whole_text(arg) for arg in one.args]
    if one.kind == "exp":
        return f"exp({whole_text(one.args[0] * one.unit)})"
    if one.kind in POWERS:
        return f"sqrt({args[0]})" if one.unit == HALF else f"({args[0]})**({one.unit})"
    if one.kind == "angle":
        return f"atan({args[0]})" if args[1] == "1" else f"atan2({args[0]}, {args[1]})"
    if one.kind == "named":
        return f"({args[0]})"
    return one.name or (f"{one.kind}({', '.join(args)})" if args else one.kind)
