"""The verdict on a whole box of points.

A box is settled piece by piece, in balls. Where all pieces of it are, and a proof holds on each region that they lie
in, the claim is proved on the box; without a proof the claim is certified to a stated bound. What no piece can settle
is a singularity: where the argument of a kink or a divisor has other signs at both ends of an interval, bisection
narrows its zero to a float, or to two neighbouring ones, and values and slopes enclosed there and some way off say
whether the function jumps, has a kink, grows without a bound, or is smooth as far as any float can tell.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gradcli.checks.decide.assumptions import by_normal_forms
from gradcli.checks.decide.case import Outcome
from gradcli.checks.decide.granting import granted_on_set
from gradcli.checks.decide.sample_points import nearby
from gradcli.checks.formatting import node_text
from gradcli.checks.oracle.oracle_client import leaf_names
from gradcli.checks.report import GOOD, NONSMOOTH
from gradcli.diagnostics import Diagnostic, did_you_mean, error, visible
from gradcli.graph.node import Node, reachable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from gradcli.checks.oracle.oracle_client import Exact
    from gradcli.checks.subjects import Subject

    Box = Mapping[str, tuple[float, float]]
    Values = Mapping[str, Any]
    Line = Callable[[float], dict[str, Any]]  # the point at a place on a line
    Judge = Callable[[Subject], Outcome]

DECISIVE = (*NONSMOOTH, "UNDEFINED", "DISAGREES")  # verdicts on one point that decide a box
TOLERANCE = 1e-3
MOST_ENTRIES = 64
MOST_PIECES = 20_000
FIRST_PIECES = 64  # of a box of several entries, before lines through it are looked at
FIRST_PLACES = 4  # of these pieces that are judged before more are cut
MOST_LINES = 20  # through one point, and
MOST_BRACKETS = 4  # on all of them
MOST_REGIONS = 8
DIVISORS = {"div": 1, "reciprocal": 0, "log": 0, "log1p": 0, "pow": 0, "power": 0, "sqrt": 0}  # the argument's place
POLES = frozenset(("tan",))  # they change their sign where they have a pole
FACTORS = {"mul": 2, "div": 1, "pow": 1, "power": 1, "abs": 1, "sqrt": 1, "cbrt": 1, "neg": 1}  # 0 where one of them is
MOST_CANDIDATES = 64
MOST_STEPS = 80  # bisections: from any interval of floats to two neighbours
MANY_FLOATS = 256.0  # so far off are the places that a bracket is compared with, in floats
STEADY = (0.3, 1.1)  # a bend that shrinks to less of what it is far off is none; one that does not shrink is a kink
GROWTH = 4.0  # of a slope that has no bound; 16 for a square root, 256 for a logarithm
ROUNDING = 2.0**-48


class Bracket(NamedTuple):
    """Two neighbouring floats between which a singularity lies, or twice the float at which it is.

    `node` is the operation that may be singular there, `where` says in words that something is 0.
    """

    node: Node
    where: str
    low: float
    high: float

    @property
    def place(self) -> float:
        """Its likely place."""
        return shortest_inside(self.low, self.high)


def checked_box(box: Box, leaves: Mapping[str, Any]) -> Box:
    """The box; raises GradcliError: GC206 for a name that is no leaf, GC735 for what is not a pair of rising ends."""
    if not hasattr(box, "items"):
        raise error("GC735", f"{visible(repr(box))} is no box", help='write box={"x": (0.5, 2)}')
    for name, ends in box.items():
        if np.shape(ends) != (2,) or np.asarray(ends).dtype.kind not in "iuf" or not 0 < ends[1] - ends[0] < math.inf:
            message = f"the box of `{visible(name)}` is {visible(repr(ends))}, not (low, high)"
            raise error("GC735", message, help="give two finite numbers, the lower one first")
        if name not in leaves:
            guess = did_you_mean(name, leaves)
            hint = f"did you mean `{guess}`?" if guess else "the leaves are: " + (", ".join(leaves) or "none")
            raise error("GC206", f"unknown leaf `{visible(name)}` for --box", help=hint)
    return box


def point_inside(box: Box, values: Values, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, Any]:
    """Values for the leaves of a box: their own, or in the middle of the box, of few digits.

    Raises GradcliError (GC735) where a value lies outside the box.
    """
    chosen = {}
    for name, (low, high) in box.items():
        middle = (low + high) / 2
        short = next((x for x in (float(f"{middle:.{n}g}") for n in (1, 2, 3)) if low < x < high), middle)
        chosen[name] = value = values.get(name, np.full(shapes[name], short))
        if not ((value >= low) & (value <= high)).all():
            message = f"the point {name} = {value.tolist()} lies outside the box [{low:g}, {high:g}]"
            raise error("GC735", message, help=f"give a point inside it, --at {name}=..., or another --box")
    return chosen


def dodged(subject: Subject, outcome: Outcome, judge: Judge) -> tuple[Subject, Outcome]:
    """The subject at a smooth point near a kink, and its verdict there; unchanged where none is found."""
    name = next((name for name in (subject.leaf, subject.text) if name in subject.values), None)
    if outcome.verdict not in NONSMOOTH or subject.target is None or name is None:
        return subject, outcome
    count, seed = max(subject.settings.samples, 3), subject.settings.seed or 0
    for value in nearby(subject.values[name], subject.domain, count, seed):
        other = subject.at({**subject.values, name: value})
        verdict = judge(other)
        if verdict.verdict not in (*NONSMOOTH, "UNDEFINED"):
            before = subject.values[name].tolist()
            was = {"verdict": outcome.verdict, "at": {name: before}, "text": outcome.message}
            message = f"{verdict.message}; moved off a {outcome.verdict} at {name} = {before} to {value.tolist()}"
            return other, verdict._replace(message=message, evidence={**verdict.evidence, "dodged": was})
    return subject, outcome


# --- the box ----------------------------------------------------------------------------------------------------


def on_box(exact: Exact, subject: Subject, outcome: Outcome, box: Box, judge: Judge) -> Outcome:
    """The verdict on a box, given the one at the point of the subject; `judge` gives those at other points."""
    names = [name for name in box if name in subject.values and name in leaf_names(subject.nodes())]
    if outcome.verdict not in GOOD or subject.output is None or subject.target is None or not names:
        return outcome
    if sum(subject.values[name].size for name in names) > MOST_ENTRIES:
        return outcome._replace(verdict="INCONCLUSIVE", message=f"a box of more than {MOST_ENTRIES} entries")
    return BoxCheck(exact, subject, outcome, {name: box[name] for name in names}, judge).verdict()


class BoxCheck:
    """The search for the verdict on a box."""

    def __init__(self, exact: Exact, subject: Subject, outcome: Outcome, sides: Box, judge: Judge) -> None:
        assert subject.output is not None and subject.target is not None
        self.exact, self.subject, self.outcome, self.sides, self.judge = exact, subject, outcome, sides, judge
        self.output, self.target = subject.output, subject.target
        self.size = sum(subject.values[name].size for name in sides)
        self.evidence: dict[str, Any] = {"box": {name: list(ends) for name, ends in sides.items()}}

    def verdict(self) -> Outcome:
        """The outcome at the point with what holds on the box, or what was found elsewhere in it."""
        for budget in (FIRST_PIECES, MOST_PIECES) if self.size > 1 else (MOST_PIECES,):
            answer = self.cover([self.sides], pieces=budget)
            if "problem" in answer:
                return self.left_open(f"the box could not be subdivided: {answer['reason']}")
            pieces = answer["open"] if answer["state"] == "open" else []
            first = budget == FIRST_PIECES
            if first and pieces and (singular := self.singular_on_lines(pieces)):
                return singular
            self.evidence["pieces"] = answer["pieces"]
            for piece in pieces[:FIRST_PLACES] if first else pieces:
                place = self.at([shortest_inside(*ends) for ends in piece])
                outcome = self.judge(self.subject.at(place))
                if outcome.verdict in DECISIVE:
                    return self.moved(outcome, "at", place)
            if not pieces:
                break
        joins, axis = [], self.line([0.0], 0)
        if self.size == 1 and answer["left"] == len(pieces):
            joins = [join for ends in merged([piece[0] for piece in pieces]) for join in self.brackets(*ends, axis)]
        return self.across(joins, axis) if joins else self.concluded([self.sides], answer)

    def across(self, joins: Sequence[Bracket], axis: Line) -> Outcome:
        """The verdict on a box of one entry: what is singular at a join, else that on the parts between the joins."""
        proved = True
        for join in joins:
            outcome = self.at_bracket(join, axis)
            if outcome.verdict not in GOOD:
                return self.near_bracket(outcome, join, axis)
            proved = proved and (join.low < join.high or outcome.verdict == "PROVED")
        ((name, ends),) = self.sides.items()
        parts = [{name: part} for part in parts_between(*ends, joins)]
        answer = self.cover(parts)
        places = [join.place for join in joins]
        self.evidence |= {"smooth_across": places, "pieces": answer.get("pieces", 0)}
        text = f"; smooth across {name} = {', '.join(f'{x:g}' for x in places)}"
        return self.concluded(parts, answer, proved, text)

    def concluded(self, parts: Sequence[Box], answer: Any, proved: bool = True, across: str = "") -> Outcome:
        """The verdict on subdivided parts of the box; on settled ones by a proof on each region, else to a bound."""
        if answer["state"] in ("refuted", "undefined"):
            place = self.at(answer["at"])
            return self.moved(self.judge(self.subject.at(place)), "at", place)
        if answer["state"] == "open":
            text = f"{answer['left']:,} pieces are undecided after {answer['pieces']:,} subdivisions, "
            text += f"{100 * (1 - answer['settled']):.3g} % of the box: {pieces_text([*self.sides], answer['open'])}"
            return self.left_open(text)
        outcome, regions = self.outcome, answer["regions"]
        sides = ", ".join(f"{name} in [{low:g}, {high:g}]" for name, (low, high) in self.sides.items())
        where = f"on the whole box {sides}"
        if outcome.verdict != "AGREES" and self.proved_everywhere(regions):
            evidence = {**outcome.evidence, **self.evidence, "regions": len(regions)}
            return granted_on_set(outcome._replace(evidence=evidence), proved, f"equal by algebra {where}{across}")
        answer = self.cover(parts, TOLERANCE)
        if answer.get("state") != "settled":
            share = 100 * answer.get("settled", 0.0)
            return self.left_open(f"no proof, and enclosures to {TOLERANCE:g} cover only {share:.3g} % of the box")
        self.evidence |= {"pieces": answer["pieces"], "bound_on_the_box": answer["bound"]}
        close = f"the claim is within {answer['bound']:.1e} of the derivative, relative to its largest size there"
        message = f"{outcome.message}; {where} {close}{across}"
        return outcome._replace(message=message, evidence={**outcome.evidence, **self.evidence})

    # --- points, and what is reported of them ---------------------------------------------------------------------

    def at(self, place: Sequence[float]) -> dict[str, Any]:
        """The point with these entries of the leaves that have a box."""
        values, start = dict(self.subject.values), 0
        for name in self.sides:
            size = values[name].size
            values[name] = np.array(place[start : start + size], dtype=float).reshape(values[name].shape)
            start += size
        return values

    def line(self, through: Sequence[float], place: int) -> Line:
        """The line through a point of the box along an entry."""
        return lambda x: self.at([*through[:place], x, *through[place + 1 :]])

    def near_bracket(self, outcome: Outcome, bracket: Bracket, line: Line) -> Outcome:
        """What was found at a bracket on a line."""
        return self.moved(outcome, "at" if bracket.low == bracket.high else "near", line(bracket.place))

    def moved(self, outcome: Outcome, word: str, values: Values) -> Outcome:
        """What was found at or near another point of the box."""
        place = {name: values[name].tolist() for name in self.sides}
        message = f"{word} {', '.join(f'{name} = {value!r}' for name, value in place.items())}: {outcome.message}"
        if outcome.verdict not in DECISIVE:
            return self.left_open(message)
        evidence = {**outcome.evidence, **self.evidence, "at": {**self.outcome.evidence.get("at", {}), **place}}
        return outcome._replace(message=f"in the box, {message}", evidence=evidence, inside=False)

    def left_open(self, reason: str) -> Outcome:
        """INCONCLUSIVE on a box that is not settled; the message begins with the verdict at the point."""
        message = f"{self.outcome.verdict} at the point, but not decided on the box: {reason}"
        return Outcome("INCONCLUSIVE", message, {**self.outcome.evidence, **self.evidence})

    # --- questions to the oracle ----------------------------------------------------------------------------------

    def cover(self, parts: Sequence[Box], tolerance: float | None = None, pieces: int = MOST_PIECES) -> Any:
        """What balls say of the subject on parts of the box: settled, open, refuted or undefined; see `subdivision`."""
        self.exact.begin()
        subject = self.subject
        about = {"derivative": subject.derivative(), "right": subject.judged, "point": subject.values}
        sides = [{name: list(ends) for name, ends in part.items()} for part in parts]
        return self.exact.ask("cover", parts=sides, tolerance=tolerance, pieces=pieces, **about)

    def proved_everywhere(self, regions: list[Any]) -> bool:
        """Whether there is a proof for every region of the box that holds throughout the region."""
        about: Any = {"output": self.output, "target": self.target, "moving": self.subject.moving}
        about["entries"] = list(range(self.target.type.size))
        answers = (self.exact.prove(self.subject.judged, self.at(region["at"]), **about) for region in regions)
        proofs = map(by_normal_forms, answers)
        return len(regions) <= MOST_REGIONS and all(proof and not proof.assumes("connected") for proof in proofs)

    def signs(self, nodes: Sequence[Node], values: Values) -> list[Any]:
        """The signs of the entries of nodes: -1, 0, 1, or None where they are not known."""
        answer = self.exact.values(nodes, values)
        if "problem" in answer:
            return [[None] * node.type.size for node in nodes]
        return [[entry.get("sign") for entry in row] for row in answer["entries"]]

    # --- zeros of kinks and divisors ------------------------------------------------------------------------------

    def singular_on_lines(self, pieces: Sequence[Any]) -> Outcome | None:
        """What is found on lines through the point and through open pieces, along an entry of the checked leaf."""
        own, count = self.target.name or "", 0
        if own not in self.sides:
            return None
        order = list(self.sides)
        start = sum(self.subject.values[name].size for name in order[: order.index(own)])
        middle = [float(x) for name in self.sides for x in self.subject.values[name].reshape(-1)]
        for through in (middle, *[[shortest_inside(*side) for side in pieces[place]] for place in (0, -1)]):
            for entry in range(min(self.target.type.size, MOST_LINES)):
                line = self.line(through, start + entry)
                for bracket in self.brackets(*self.sides[own], line):
                    outcome = self.at_bracket(bracket, line, entry)
                    count += 1
                    if outcome.verdict in DECISIVE:
                        return self.near_bracket(outcome, bracket, line)
                    if count == MOST_BRACKETS:
                        return None
        return None

    def brackets(self, low: float, high: float, line: Line) -> list[Bracket]:
        """Where arguments of kinks and divisors change their sign between two floats, in ascending order."""
        brackets, nodes = [], self.candidates()
        below, above = (self.signs(list(nodes), line(end)) for end in (low, high))
        for (node, singular), left, right in zip(nodes.items(), below, above, strict=True):
            for entry, signs in enumerate(zip(left, right, strict=True)):
                if None not in signs and signs[0] * signs[1] < 0:
                    narrow = self.bisected(node, entry, low, high, signs[0], line)
                    if narrow is not None:
                        brackets.append(Bracket(*singular, *narrow))
        return sorted(brackets, key=lambda bracket: bracket.low)

    def candidates(self) -> dict[Node, tuple[Node, str]]:
        """Nodes at whose zeros the output may be singular, with the operation and where that is in words."""
        zeros = {surface.zero: (surface.node, surface.where) for surface in self.subject.surfaces}
        for node in reachable([self.output]):
            place = DIVISORS.get(node.primitive.name)
            if place is not None and place < len(node.args):
                zeros.setdefault(node.args[place], (node, f"{node_text(node.args[place])} = 0"))
            elif node.primitive.name in POLES:
                zeros.setdefault(node, (node, f"a pole of {node_text(node)}"))
        pending = list(zeros)
        while pending:  # a product is 0 where a factor is, which changes its sign also where its square does not
            node = pending.pop()
            for factor in node.args[: FACTORS.get(node.primitive.name, 0)]:
                if factor not in zeros:
                    zeros[factor] = zeros[node]
                    pending.append(factor)
        small = [pair for pair in zeros.items() if pair[0].type.size <= MOST_ENTRIES and pair[0] in self.exact.rows]
        return dict(small[:MOST_CANDIDATES])

    def bisected(
        self, node: Node, entry: int, low: float, high: float, sign: int, line: Line
    ) -> tuple[float, float] | None:
        """The neighbouring floats between which an entry changes its sign, or twice the float at which it is 0."""
        for _ in range(MOST_STEPS):
            middle = low + (high - low) / 2
            if not low < middle < high:
                return low, high
            there = self.signs([node], line(middle))[0][entry]
            if there is None:
                return None
            if there == 0:
                return middle, middle
            low, high = (middle, high) if there == sign else (low, middle)
        return None

    def at_bracket(self, bracket: Bracket, line: Line, entry: int = 0) -> Outcome:
        """What happens at a float, or between two neighbours: KINK, BOUNDARY, DISCONTINUOUS, or AGREES if smooth.

        `entry` is the one of the derivative along the line. Slopes and values that change little from some floats away
        to the nearest one are taken for their limits.
        """
        node, where, below, above = bracket
        if below == above:
            return self.judge(self.subject.at(line(below)))
        low, high = self.sides.get(self.target.name or "") or next(iter(self.sides.values()))
        far = (MANY_FLOATS - 1) * (above - below) / 2
        places = (max(low, below - far), below, above, min(high, above + far))
        slopes, heights = zip(*(self.slope_and_value(line(x), entry) for x in places), strict=True)
        verdict, reason = "INCONCLUSIVE", ""
        if None not in slopes and None not in heights:
            verdict, reason = between(slopes, heights, above - below)
        if verdict in ("INCONCLUSIVE", "AGREES"):
            return Outcome(verdict, reason or f"undecided around {where}", {})
        message = f"{where}: {reason}"
        sides = {"left": [slopes[1]], "right": [slopes[2]], "between": [below, above], "basis": "series"}
        evidence = {**sides, "operation": node.primitive.name, "node": node_text(node), "where": where}
        return Outcome(verdict, message, evidence, (Diagnostic("GC410", message, node.span, severity="note"),))

    def slope_and_value(self, place: Values, entry: int) -> tuple[Any, Any]:
        """An entry of the derivative and the value at a point; None for what is not known."""
        answer = self.exact.compare(self.subject.judged, [place], derivative=self.subject.derivative(place))
        slope = answer.get("points", [{}])[0].get("exact", {entry: None})[entry]
        (value,) = self.exact.values([self.output], place).get("entries", [[{}]])[0]
        return slope, float(value["digits"]) if value.get("digits") in ("inf", "-inf") else value.get("value")


def between(slopes: Sequence[float], heights: Sequence[float], gap: float) -> tuple[str, str]:
    """The verdict on the gap between two neighbouring floats, which are `gap` apart, and the reason for it.

    The slopes and values are those some floats below, at the two floats, and some floats above.
    """
    far_left, left, right, far_right = slopes
    largest, far, bent = max(abs(left), abs(right)), max(abs(far_left), abs(far_right)), abs(right - left)
    varied = max(abs(far_right - far_left), abs(far_left - left), abs(far_right - right))
    step = 0.0 if heights[1] == heights[2] else abs(heights[2] - heights[1])
    if largest > GROWTH * far:
        return "BOUNDARY", f"slopes {left:.6g} below it, {right:.6g} above it, no finite derivative"
    if step == math.inf or step > 4 * largest * gap + ROUNDING * max(abs(heights[1]), abs(heights[2])):
        return "DISCONTINUOUS", f"the value jumps from {heights[1]:.6g} to {heights[2]:.6g}"
    if bent <= max(STEADY[0] * varied, ROUNDING * largest):
        return "AGREES", "smooth as far as floats show"
    if largest > STEADY[1] * far or bent < varied / STEADY[1]:
        return "INCONCLUSIVE", ""
    return "KINK", f"slopes {left:.6g} from below, {right:.6g} from above"


def shortest_inside(low: float, high: float) -> float:
    """The number with the fewest digits between two others: the likely place of a kink."""
    if low <= 0 <= high:
        return 0.0
    middle = (low + high) / 2
    for digits in range(1, 17):
        short = float(f"{middle:.{digits}g}")
        if low <= short <= high:
            return short
    return middle


def pieces_text(names: list[str], pieces: list[Any]) -> str:
    """Where open pieces lie, by the intervals of a few entries."""
    shown = []
    for piece in pieces[:2]:
        sides = [f"{low:.6g} to {high:.6g}" for low, high in piece[:3]]
        shown.append(" x ".join([*sides, "..."] if len(piece) > 3 else sides))
    return f"{', '.join(names)} in " + " and ".join(shown)


def merged(pieces: list[Any]) -> list[tuple[float, float]]:
    """Intervals in ascending order, those that touch as one."""
    joined: list[tuple[float, float]] = []
    for low, high in sorted(pieces):
        start, end = joined.pop() if joined and low <= joined[-1][1] else (low, high)
        joined.append((start, max(end, high)))
    return joined


def parts_between(low: float, high: float, brackets: Sequence[Bracket]) -> Iterator[tuple[float, float]]:
    """The parts of an interval between brackets, which together hold all its floats but zeros at a float."""
    start = low
    for bracket in brackets:
        below, above = bracket.low, bracket.high
        if below == above:
            below, above = math.nextafter(below, -math.inf), math.nextafter(above, math.inf)
        if start < below:
            yield start, below
        start = max(start, above)
    if start < high:
        yield start, high
