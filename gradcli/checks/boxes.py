"""A verdict at points and a box around them go in, the verdict for the whole box comes out.

A box is settled piece by piece, in balls. Where all pieces of it are, and a proof holds on each region that they lie
in, the claim is proved on the box; without a proof the claim is certified to a stated bound. What no piece can settle
is a kink, and the point of it is looked at, or stays open.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.checks.bracketing import Bracket, brackets, classified, parts_between
from gradcli.checks.case import Outcome
from gradcli.checks.points import nearby
from gradcli.checks.verdict import judge
from gradcli.diagnostics import did_you_mean, error, visible

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gradcli.checks.exact import Exact
    from gradcli.checks.subjects import Subject

    Box = Mapping[str, tuple[float, float]]
    Values = Mapping[str, Any]

GOOD = ("PROVED", "CERTIFIED", "IMPRECISE", "AGREES")
ROUGH = ("KINK", "BOUNDARY", "DISCONTINUOUS", "UNDEFINED", "DISAGREES")
TOLERANCE = 1e-3
MOST_ENTRIES = 6
MOST_PIECES = 20_000
MOST_REGIONS = 8


def checked_box(box: Box, leaves: Mapping[str, Any]) -> Box:
    """The box, if all its names are leaves; raises GradcliError (GC206) for another name."""
    for name in box:
        if name not in leaves:
            guess = did_you_mean(name, leaves)
            hint = f"did you mean `{guess}`?" if guess else "the leaves are: " + (", ".join(leaves) or "none")
            raise error("GC206", f"there is no leaf `{visible(name)}` for --box", help=hint)
    return box


def centred(box: Box, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, Any]:
    """A point inside a box, of few digits: for leaves that have no value of their own."""
    found = {}
    for name, (low, high) in box.items():
        middle = (low + high) / 2
        short = next((x for x in (float(f"{middle:.{n}g}") for n in (1, 2, 3)) if low < x < high), middle)
        found[name] = np.full(shapes[name], short)
    return found


def outside(box: Box, values: Values) -> None:
    """Raises GradcliError (GC735) where the point of a check lies outside its box."""
    for name, (low, high) in box.items():
        if not ((values[name] >= low) & (values[name] <= high)).all():
            raise error(
                "GC735",
                f"the point {name} = {values[name].tolist()} lies outside the box [{low:g}, {high:g}]",
                help=f"give a point inside it, --at {name}=..., or another --box",
            )


def on_box(
    exact: Exact,
    subject: Subject,
    outcome: Outcome,
    box: Box,
    seed: int,
    samples: int,
    dtype: str,
    backend: str = "numpy",
) -> Outcome:
    """The verdict on a box, of a subject that has one at its point."""
    names = [name for name in box if name in subject.values and name in exact.leaves_of(subject.nodes())]
    if outcome.verdict not in GOOD or subject.output is None or subject.target is None or not names:
        return outcome
    told = {name: list(box[name]) for name in names}
    if sum(subject.values[name].size for name in names) > MOST_ENTRIES:
        return outcome._replace(
            verdict="INCONCLUSIVE", message=f"a box of more than {MOST_ENTRIES} entries", evidence={**outcome.evidence}
        )
    sides = {name: box[name] for name in names}

    parts = [sides]

    def asked(tolerance: float | None) -> Any:
        exact.begin()
        answers: list[Any] = []
        for part in parts:
            answers.append(exact.cover(subject, part, tolerance=tolerance, most=MOST_PIECES))
            if answers[-1].get("state") != "settled":
                break
        return together(answers)

    def at(place: list[float]) -> dict[str, Any]:
        values, start = dict(subject.values), 0
        for name in names:
            size = values[name].size
            values[name] = np.array(place[start : start + size], dtype=float).reshape(values[name].shape)
            start += size
        return values

    def elsewhere(place: list[float]) -> Outcome:
        return judge(exact, subject.at(at(place)), seed, samples, dtype, backend)

    answer = asked(None)
    if "problem" in answer:
        return open_box(outcome, told, f"the box could not be covered: {answer['reason']}", {})
    evidence = {"box": told, "pieces": answer["pieces"]}
    told_of, proved_at_ties = "", True
    if answer["state"] in ("refuted", "undefined"):
        return moved(elsewhere(answer["at"]), outcome, evidence, names, at(answer["at"]))
    if answer["state"] == "open":
        for sides_of in answer["open"]:
            place = [shortest_inside(low, high) for low, high in sides_of]
            found = elsewhere(place)
            if found.verdict in ROUGH:
                return moved(found, outcome, evidence, names, at(place))
        if sum(subject.values[name].size for name in names) == 1 and answer["left"] == len(answer["open"]):
            low, high = sides[names[0]]
            found_at: list[Bracket] = []
            for piece_low, piece_high in merged([piece[0] for piece in answer["open"]]):
                for one in brackets(exact, subject, piece_low, piece_high, at):
                    if one.low == one.high:
                        found = elsewhere([one.low])
                        if found.verdict not in GOOD:
                            return moved(found, outcome, evidence, names, at([one.low]))
                        proved_at_ties = proved_at_ties and found.verdict == "PROVED"
                    else:
                        found = classified(exact, subject, one, low, high, at)
                        if found.verdict not in GOOD:
                            return near(found, outcome, evidence, names[0], one)
                    found_at.append(one)
            if found_at:
                parts = [{names[0]: part} for part in parts_between(low, high, found_at)]
                answer = asked(None)
                across = [shortest_inside(one.low, one.high) for one in found_at]
                evidence |= {"smooth_across": across, "pieces": answer.get("pieces", 0)}
                told_of = f"; smooth across {names[0]} = {', '.join(f'{x:g}' for x in across)}"
    if "problem" in answer:
        return open_box(outcome, told, f"the box could not be covered: {answer['reason']}", {})
    if answer["state"] in ("refuted", "undefined"):
        return moved(elsewhere(answer["at"]), outcome, evidence, names, at(answer["at"]))
    if answer["state"] == "open":
        left = f"{1 - answer['settled']:.1g} of it is open after {answer['pieces']:,} pieces"
        return open_box(outcome, told, f"{left}: {pieces_told(names, answer['open'])}", evidence)
    if outcome.verdict != "AGREES" and proved_everywhere(exact, subject, answer["regions"], at):
        evidence["regions"] = len(answer["regions"])
        return outcome._replace(
            verdict=outcome.verdict if outcome.verdict == "IMPRECISE" else "PROVED" if proved_at_ties else "CERTIFIED",
            message=f"equal by algebra on the whole box {box_told(told)}{told_of}",
            evidence={**outcome.evidence, **evidence},
        )
    answer = asked(TOLERANCE)
    if answer.get("state") == "settled":
        evidence |= {"pieces": answer["pieces"], "bound_on_the_box": answer["bound"]}
        close = f"the claim is within {answer['bound']:.1e} of the derivative, relative to its largest size there"
        message = f"on the whole box {box_told(told)} {close}{told_of}"
        return outcome._replace(message=f"{outcome.message}; {message}", evidence={**outcome.evidence, **evidence})
    share = answer.get("settled", 0.0)
    message = f"no proof, and enclosures to {TOLERANCE:g} cover only {100 * share:.3g} % of the box"
    return open_box(outcome, told, message, evidence)


def together(answers: list[Any]) -> Any:
    """The answers for parts of a box as one."""
    last = answers[-1]
    if "problem" in last or len(answers) == 1:
        return last
    return {
        **last,
        "pieces": sum(one["pieces"] for one in answers),
        "regions": [region for one in answers for region in one["regions"]],
        "bound": max(one["bound"] for one in answers),
    }


def merged(pieces: list[Any]) -> list[tuple[float, float]]:
    """Intervals in ascending order, those that touch as one."""
    found: list[tuple[float, float]] = []
    for low, high in sorted(pieces):
        if found and low <= found[-1][1]:
            found[-1] = (found[-1][0], max(high, found[-1][1]))
        else:
            found.append((low, high))
    return found


def near(found: Outcome, before: Outcome, evidence: dict[str, Any], name: str, one: Bracket) -> Outcome:
    """A singularity between two neighbouring floats of the box."""
    place = shortest_inside(one.low, one.high)
    if found.verdict not in ROUGH:
        return open_box(before, evidence["box"], f"near {name} = {place!r}: {found.message}", evidence)
    known = {**before.evidence.get("at", {}), name: place}
    message = f"in the box, near {name} = {place!r}: {found.message}"
    return found._replace(message=message, evidence={**found.evidence, **evidence, "at": known})


def proved_everywhere(exact: Exact, subject: Subject, regions: list[Any], at: Any) -> bool:
    """Whether a proof holds on every region of the box."""
    assert subject.output is not None and subject.target is not None
    if len(regions) > MOST_REGIONS:
        return False
    for region in regions:
        proof = exact.prove(
            subject.judged,
            at(region["at"]),
            output=subject.output,
            target=subject.target,
            moving=subject.moving,
            entries=list(range(subject.target.type.size)),
        )
        if not proof.get("proved") or not proof.get("everywhere"):  # else it need not reach through the box
            return False
    return True


def moved(found: Outcome, before: Outcome, evidence: dict[str, Any], names: list[str], values: Values) -> Outcome:
    """What was found at another point of the box."""
    place = {name: values[name].tolist() for name in names}
    where = ", ".join(f"{name} = {value}" for name, value in place.items())
    if found.verdict not in ROUGH:
        return open_box(before, evidence["box"], f"undecided around {where}", evidence)
    told = {**found.evidence, **evidence, "at": {**{k: v.tolist() for k, v in values.items() if v.size <= 8}, **place}}
    return found._replace(message=f"in the box, at {where}: {found.message}", evidence=told, inside=False)


def open_box(outcome: Outcome, box: Mapping[str, Any], reason: str, evidence: Mapping[str, Any]) -> Outcome:
    """A box that is not settled: the verdict at the point stands in the message."""
    message = f"{outcome.verdict} at the point, but not on the box: {reason}"
    return Outcome("INCONCLUSIVE", message, {**outcome.evidence, "box": box, **evidence})


def shortest_inside(low: float, high: float) -> float:
    """The number with the fewest digits between two others: where somebody would look for a kink."""
    if low <= 0 <= high:
        return 0.0
    middle = (low + high) / 2
    for digits in range(1, 17):
        short = float(f"{middle:.{digits}g}")
        if low <= short <= high:
            return short
    return middle


def box_told(box: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} in [{low:g}, {high:g}]" for name, (low, high) in box.items())


def pieces_told(names: list[str], pieces: list[Any]) -> str:
    """Where open pieces lie, by their first interval."""
    return ", ".join(f"{names[0]} in [{piece[0][0]:.6g}, {piece[0][1]:.6g}]" for piece in pieces[:2])


def dodged(
    exact: Exact, subject: Subject, outcome: Outcome, seed: int, samples: int, dtype: str, backend: str = "numpy"
) -> tuple[Subject, Outcome]:
    """The verdict at a point beside a kink, if there is a smooth one; else the old one."""
    if outcome.verdict not in ("KINK", "BOUNDARY", "DISCONTINUOUS") or subject.target is None:
        return subject, outcome
    name = next((name for name in (subject.leaf, subject.text) if name in subject.values), None)
    if name is None:
        return subject, outcome
    for value in nearby(subject.values[name], subject.domain, max(samples, 3), seed):
        other = subject.at({**subject.values, name: value})
        found = judge(exact, other, seed, samples, dtype, backend)
        if found.verdict not in ("KINK", "BOUNDARY", "DISCONTINUOUS", "UNDEFINED"):
            was = {"verdict": outcome.verdict, "at": {name: subject.values[name].tolist()}, "text": outcome.message}
            message = f"{found.message}; dodged a {outcome.verdict} at {name} = {subject.values[name].tolist()}"
            return other, found._replace(message=message, evidence={**found.evidence, "dodged": was})
    return subject, outcome
