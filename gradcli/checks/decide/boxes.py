"""The verdict on a whole box of points.

A box is settled piece by piece, in balls. Where all pieces of it are, and a proof holds on each region that they lie
in, the claim is proved on the box; without a proof the claim is certified to a stated bound. What no piece can settle
is a singularity: where the argument of a kink or a divisor has other signs at both ends of an interval, bisection
narrows its zero to a float, or to two neighbouring ones. Between these the zero is an exact number, at which the
function jumps, has a kink, grows without a bound, or is smooth, as at any tie.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gradcli.base.diagnostics import Diagnostic, did_you_mean, error, visible
from gradcli.checks.decide.assumptions import by_normal_forms
from gradcli.checks.decide.case import RIGHT, Outcome
from gradcli.checks.decide.chosen_points import nearby
from gradcli.checks.decide.granting import granted_on_set
from gradcli.checks.decide.nonsmooth import jump, slopes
from gradcli.checks.differences.step_sequences import LocalBehaviour
from gradcli.checks.formatting import node_text
from gradcli.checks.oracle.oracle_client import leaf_names
from gradcli.checks.report import GOOD, NONSMOOTH
from gradcli.graph.node import Node, reachable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from gradcli.checks.oracle.oracle_client import Exact
    from gradcli.checks.subjects import Subject

    Side = tuple[float, float]
    Box = Mapping[str, Side]
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


class Bracket(NamedTuple):
    """Two neighbouring floats between which a singularity lies, or twice the float at which it is.

    `node` is the operation that may be singular there, `where` says in words that something is 0: an `entry` of `zero`.
    """

    node: Node
    where: str
    zero: Node
    entry: int
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


def point_inside(box: Box, values: Values, leaves: Mapping[str, Any]) -> dict[str, Any]:
    """Values for the leaves of a box: their own, or in the middle of the box, of few digits.

    Raises GradcliError (GC735) where a value lies outside the box.
    """
    chosen = {}
    for name, (low, high) in box.items():
        middle = (low + high) / 2
        short = next((x for x in (float(f"{middle:.{n}g}") for n in (1, 2, 3)) if low < x < high), middle)
        chosen[name] = value = values.get(name, np.full(leaves[name].node.shape, short))
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
        joins: list[tuple[Bracket, Side]] = []
        if self.size == 1 and answer["left"] == len(pieces):
            per_part = [self.joins(*ends) for ends in merged([piece[0] for piece in pieces])]
            joins = [join for part in per_part for join in part] if all(per_part) else []
        return self.across(joins, answer) if joins else self.concluded([self.sides], answer)

    def joins(self, low: float, high: float) -> list[tuple[Bracket, Side]]:
        """The singularities in an interval of a box of one entry, each with its part of the interval; [] if none."""
        brackets = {bracket.low: bracket for bracket in self.brackets(low, high, self.line([0.0], 0))[::-1]}
        places = [brackets[start] for start in sorted(brackets)]
        cuts = [low, *((left.high + right.low) / 2 for left, right in pairwise(places)), high]
        return [*zip(places, pairwise(cuts), strict=True)] if places else []

    def across(self, joins: Sequence[tuple[Bracket, Side]], answer: Any) -> Outcome:
        """The verdict on a box of one entry: what is singular at a join, else that on the parts beside the joins."""
        sure, axis = True, self.line([0.0], 0)
        for join, reach in joins:
            outcome, known = self.at_bracket(join, axis, 0, reach)
            if outcome.verdict not in GOOD:
                return self.near_bracket(outcome, join, axis)
            sure = sure and known
        ((name, ends),) = self.sides.items()
        starts, stops = [ends[0], *(reach[1] for _, reach in joins)], [*(reach[0] for _, reach in joins), ends[1]]
        parts = [{name: part} for part in zip(starts, stops, strict=True) if part[0] < part[1]]
        places = [join.place for join, _ in joins]
        self.evidence["smooth_across"] = places
        text = f"; smooth across {name} = {', '.join(f'{x:g}' for x in places)}"
        text += "" if sure else ", as far as exact numbers show"
        regions = [*answer["regions"], *({"at": [reach[0]]} for _, reach in joins[1:])]
        return self.concluded(parts, {**answer, "state": "settled", "regions": regions}, sure, text)

    def concluded(self, parts: Sequence[Box], answer: Any, sure: bool = True, across: str = "") -> Outcome:
        """The verdict on subdivided parts of the box; on settled ones by a proof on each region, else to a bound."""
        if answer["state"] in ("refuted", "undefined"):
            place = self.at(answer["at"])
            return self.moved(self.judge(self.subject.at(place)), "at", place)
        if answer["state"] == "open":
            text = f"{answer['left']:,} pieces are undecided after {answer['pieces']:,} subdivisions, "
            text += f"{100 * (1 - answer['settled']):.3g} % of the box: {pieces_text([*self.sides], answer['open'])}"
            return self.left_open(text)
        outcome, regions = self.outcome, answer["regions"]
        self.evidence["pieces"] = answer["pieces"]
        sides = ", ".join(f"{name} in [{low:g}, {high:g}]" for name, (low, high) in self.sides.items())
        where = f"on the whole box {sides}"
        first = [self.at(region["at"]) for region in regions[:MOST_REGIONS]]
        unproved = [place for place in first if not self.is_proved(place)]
        if outcome.verdict != "AGREES" and not unproved and len(regions) <= MOST_REGIONS:
            outcome = outcome._replace(evidence={**outcome.evidence, **self.evidence, "regions": len(regions)})
            outcome = granted_on_set(outcome, True, f"equal by algebra {where}{across}")
            return outcome if sure else outcome._replace(verdict="AGREES")
        for place in unproved:
            there = self.judge(self.subject.at(place))
            if there.verdict in DECISIVE:
                return self.moved(there, "at", place)
        answer = self.cover(parts, TOLERANCE)
        if answer.get("state") != "settled":
            share = 100 * answer.get("settled", 0.0)
            return self.left_open(f"no proof, and enclosures to {TOLERANCE:g} cover only {share:.3g} % of the box")
        self.evidence |= {"pieces": answer["pieces"], "bound_on_the_box": answer["bound"]}
        close = f"the claim is within {answer['bound']:.1e} of the derivative, relative to its largest size there"
        message, evidence = f"{outcome.message}; {where} {close}{across}", {**outcome.evidence, **self.evidence}
        if across or outcome.verdict == "AGREES":
            return outcome._replace(verdict="AGREES", message=message, evidence=evidence)
        return granted_on_set(outcome._replace(evidence=evidence), False, message)

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

    def is_proved(self, place: Values) -> bool:
        """Whether there is a proof at a point that holds throughout its region of the box.

        Where it assumes that the region is connected, what bounds it is singular: a join, whose parts are proved apart.
        """
        about: Any = {"output": self.output, "target": self.target, "entries": list(range(self.target.type.size))}
        moving = list(dict.fromkeys((*self.subject.moving, *self.sides)))
        proof = by_normal_forms(self.exact.prove(self.subject.judged, place, moving=moving, **about))
        return proof is not None and self.sides.keys().isdisjoint(proof.texts("fixed"))

    def signs(self, nodes: Sequence[Node], values: Values) -> list[Any]:
        """The signs of the entries of nodes: -1, 0, 1, or None where they are not known."""
        answer = self.exact.values(nodes, values)
        if "problem" in answer:
            return [[None] * node.type.size for node in nodes]
        return [[entry.get("sign") for entry in row] for row in answer["entries"]]

    # --- zeros of kinks and divisors ------------------------------------------------------------------------------

    def singular_on_lines(self, pieces: Sequence[Any]) -> Outcome | None:
        """What is found on lines through the point and through open pieces, along the entries of the box."""
        count = 0
        middle = [float(x) for name in self.sides for x in self.subject.values[name].reshape(-1)]
        ends = [self.sides[name] for name in self.sides for _ in range(self.subject.values[name].size)]
        own = [name for name in self.sides for _ in range(self.subject.values[name].size)]
        order = sorted(range(self.size), key=lambda entry: own[entry] != self.target.name)[:MOST_LINES]
        for through in (middle, *[[shortest_inside(*side) for side in pieces[place]] for place in (0, -1)]):
            for entry in order:
                line = self.line(through, entry)
                for bracket in self.brackets(*ends[entry], line):
                    outcome, _ = self.at_bracket(bracket, line, entry)
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
                        brackets.append(Bracket(*singular, node, entry, *narrow))
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

    def bisected(self, node: Node, entry: int, low: float, high: float, sign: int, line: Line) -> Side | None:
        """The neighbouring floats between which an entry changes its sign, or twice the float at which it is 0."""
        for _ in range(MOST_STEPS):
            middle = 0.0 if low < 0 < high else low + (high - low) / 2
            if not low < middle < high:
                return low, high
            there = self.signs([node], line(middle))[0][entry]
            if there is None:
                return None
            if there == 0:
                return middle, middle
            low, high = (middle, high) if there == sign else (low, middle)
        return None

    def at_bracket(self, bracket: Bracket, line: Line, place: int, reach: Side | None = None) -> tuple[Outcome, bool]:
        """The verdict at a float, or between two neighbours, good if smooth; and whether that is sure up to the reach.

        `place` is that of the entry of the box along which the line runs.
        """
        values, below, above = line(bracket.place), bracket.low, bracket.high
        outcome = self.judge(self.subject.at(values)) if below == above else None
        if outcome is not None and (outcome.verdict not in GOOD or reach is None):
            return outcome, False
        names = [(name, i) for name in self.sides for i in range(self.subject.values[name].size)]
        about: dict[str, Any] = {"leaf": names[place][0], "position": names[place][1], "point": values}
        about |= {"zero": bracket.zero, "entry": bracket.entry, "ends": [below, above], "reach": reach}
        about |= {"derivative": self.subject.derivative(values), "right": self.subject.judged}
        answer = self.exact.ask("join", **about)
        if outcome is None:
            outcome = self.between(bracket, answer)
        if outcome.verdict in GOOD and reach is not None and not answer.get("followed"):
            outcome = Outcome("INCONCLUSIVE", f"{bracket.where}: another branch may be taken close to it", {})
        return outcome, bool(answer.get("sure"))

    def between(self, bracket: Bracket, answer: Any) -> Outcome:
        """The verdict on a zero that is no float, from exact numbers."""
        evidence: dict[str, Any] = {"between": [bracket.low, bracket.high], "basis": "series"}
        evidence |= {"operation": bracket.node.primitive.name, "node": node_text(bracket.node), "where": bracket.where}
        value, tie = answer.get("ball", {}), answer.get("tie")
        if "problem" in answer or tie is None or tie["kind"] == "unknown":
            reason = (tie or answer)["reason"] if "problem" in answer or tie else value["reason"]
            verdict = "UNDEFINED" if value.get("failure") == "undefined" else "INCONCLUSIVE"
        elif tie["kind"] == "smooth":
            relations, first = answer["given"]["relations"], answer["given"]["details"][0]
            verdict = "AGREES" if set(relations) <= RIGHT else "DISAGREES" if "!" in relations else "UNDEFINED"
            reason = f"the exact derivative is {first['exact']}, the claim {first['claimed']}"
        else:
            verdict = tie["kind"]
            seen = LocalBehaviour(verdict, tie["left"], tie["right"], 0.0, tie["value"], tuple(tie["limits"]))
            reason = jump(seen, tie["gap"]) if verdict == "DISCONTINUOUS" else slopes(seen, (), tie)
            evidence |= {name: tie[name] for name in ("left", "right", "value", "limits")}
        message = f"{bracket.where}: {reason}"
        note = Diagnostic("GC410", message, bracket.node.span, severity="note")
        return Outcome(verdict, message, {**evidence, "place": answer.get("place")}, (note,))


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
