"""The verdict from values alone, by finite differences: on scripts that no oracle can read, and on black boxes.

At best AGREES. Differences that contradict the gradient of a script leave it INCONCLUSIVE. Of a black box they find
kinks too, and how a claim is wrong: "DISAGREES (numerical)" needs steps over two decades and a second direction, and a
function that gives the same values when called twice.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING

import numpy as np

from gradcli.checks.decide.case import Outcome, parts_of
from gradcli.checks.decide.chosen_points import EQUAL
from gradcli.checks.decide.floats import moving
from gradcli.checks.decide.nonsmooth import nonsmooth_outcome
from gradcli.checks.decide.precision import float_tie
from gradcli.checks.decide.refutation import disagrees
from gradcli.checks.diagnosis.ratios import Comparison, ErrorReading, Subexpression, of_entries, of_parts, readings
from gradcli.checks.differences import step_sequences
from gradcli.checks.differences.step_sequences import EPSILON, STILL, UNMOVED, Estimate, LocalBehaviour, suspicious
from gradcli.checks.differences.survey import COMBINED, MEASURED, Survey, contradicted, together
from gradcli.checks.formatting import counted
from gradcli.checks.witnesses import of_black_box
from gradcli.graph.arrays import subscript
from gradcli.recording.calls.box import JACOBIAN
from gradcli.recording.calls.failures import OutOfTime

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gradcli.checks.decide.case import Case, Evidence, Floats, Values
    from gradcli.checks.differences.survey import MovedEntries, SlopeFinding
    from gradcli.recording.calls.box import BlackBox

SHOWN = 5  # of the worst entries
# a smaller relative gap is a matter of digits: IMPRECISE
DIGITS = {"float64": 1e-8, "float32": 1e-5, "float16": 1e-2, "bfloat16": 0.1}
SINGLE = 2.0**-23  # the relative spacing of float32
SLIGHT = 3e-7  # smaller relative gaps: f or the gradient may be the approximation, and values do not show which
ALIKE = 1e-4  # a smaller relative gap may come from a solver or an iteration in f
EXAMINED = 6  # entries whose sides are examined, or that are looked at beside the point
STATIONARY, LEAST_BESIDE = 1e-3, 2  # a slope of 0, to this part of those nearby, at so many points
LARGEST = 64  # numerators and denominators of a constant factor
SO_NEAR = "f has a kink so near the point that finite differences cannot decide on which side it lies"
FEW = 3  # numbers at one point: they are in some simple ratio by chance
SHARP = 4e-5  # the largest slope has to be known at least so well


# --- scripts ------------------------------------------------------------------------------------------------------


def by_differences(case: Case) -> Outcome:
    """The verdict on a gradient in a script: AGREES, or INCONCLUSIVE."""

    def nearby() -> list[Survey]:
        points = [values for values, _ in case.nearby] or case.beside([case.own_leaf], case.subject.settings.samples)
        return [surveyed(case, values).look_along() for values in points]

    survey = surveyed(case, case.values)
    survey.look()
    name = case.entry if case.plane else None
    judged = ByDifferences(survey, case.target_name, case.target.type.shape, nearby, case.role, entry_name=name)
    outcome = judged.verdict()
    if outcome.verdict == "AGREES" and not case.smooth_tie:
        tie = float_tie(case)
        exact = case.tried.get("series", case.tried.get("balls"))
        if tie is not None:
            reason = f"the point lies on a kink ({tie.where}), where finite differences cannot decide"
            outcome = Outcome("INCONCLUSIVE", reason, {**judged.basis(), "float_kink": tie.where})
        elif exact is not None:
            outcome = outcome._replace(message=f"{outcome.message}; not certified: {exact}")
    points = counted(outcome.evidence.get("points", 0), "point")
    case.tried["differences"] = f"agree at {points}" if outcome.verdict == "AGREES" else outcome.message
    return outcome._replace(evidence={**outcome.evidence, "steps": step_sequences.STEPS})


def surveyed(case: Case, values: Values) -> Survey:
    """The survey of one point; nothing has been measured."""
    f, x = moving(case.output, case.target, values)
    claims = parts_of(case.doubles([case.subject.judged], values)[0])
    rtol, domain = case.subject.rtol or 0.0, None if case.plane else case.subject.domain
    return Survey(f, x, {case.target_name: slice(0, x.size)}, claims[None], case.seed, rtol, domain=domain)


# --- a verdict from surveys ---------------------------------------------------------------------------------------


@dataclass
class ByDifferences:
    """The verdict on the gradient with respect to one argument, from surveys of the point and of points nearby.

    `role` is what gives the judged gradient, `row_names` name the judged combinations of outputs, `entry_name` the
    entries of the point; `doubt` is why no contradiction refutes, "" where one may. Relative gaps up to `precise` are
    a matter of digits, which what is judged loses by the format `lost`. Of a black `box` kinks are looked for, and how
    a refuted gradient is wrong.
    """

    survey: Survey
    name: str
    shape: tuple[int, ...]
    look_nearby: Callable[[], list[Survey]] = list
    role: str = "the gradient"
    row_names: Sequence[str] = ("",)
    doubt: str = "no exact oracle could decide"
    precise: float = 0.0
    lost: str = ""
    entry_name: Callable[[int], str] | None = None
    box: BlackBox | None = None

    def __post_init__(self) -> None:
        self.part = self.survey.slices[self.name]
        self.own, self.findings = self.survey.findings(self.name)

    @cached_property
    def nearby(self) -> list[Survey]:
        """Surveys of points nearby, along one direction each."""
        return self.look_nearby()

    def verdict(self) -> Outcome:
        """The verdict. Raises OutOfTime where the survey was not finished: how far it came depends on the machine."""
        if self.survey.unfinished:
            raise OutOfTime
        outcome = self.where_smooth() if self.box is None else self.not_smooth() or self.where_smooth()
        return outcome._replace(evidence={**self.basis(), **outcome.evidence})

    def where_smooth(self) -> Outcome:
        """The verdict where f looks smooth."""
        wrong, near, agreeing = (
            [finding for finding in self.findings if finding.state in states]
            for states in (("differs", "not finite"), ("near",), ("agrees",))
        )
        if wrong:  # a wrong entry says more than a wrong sum of them
            return self.contradicted(sorted(wrong, key=lambda finding: (finding.entry is None, -finding.ratio)))
        if near:
            return self.nearly(max(near, key=lambda finding: finding.ratio))
        return self.not_measured() or self.agreeing([*agreeing, *self.flat], bool(self.flat))

    @cached_property
    def hidden(self) -> list[SlopeFinding]:
        """The slopes that rounding hides."""
        single = [finding for finding in self.own if self.row_names[finding.row] != COMBINED]
        return [finding for finding in single or self.findings if finding.state in ("silent", "still")]

    @cached_property
    def flat(self) -> list[SlopeFinding]:
        """Those that are 0 as nearly as steps show; [] unless all are."""
        return self.stationary(self.hidden)

    def not_measured(self) -> Outcome | None:
        """INCONCLUSIVE where not every slope was measured, or is 0."""
        open_slopes = len(self.flat) < len(self.hidden) or self.count < self.part.stop - self.part.start
        return self.unseen(self.hidden) if open_slopes else None

    def contradicted(self, wrong: Sequence[SlopeFinding]) -> Outcome:
        """Differences contradict the claim: how surely, and how it is wrong; the entry farthest off comes first."""
        plain = [w for w in wrong if w.entry is not None and w.state == "differs"]
        single = [w for w in plain if self.row_names[w.row] != COMBINED]
        farthest = next(iter((*single, *plain, *wrong)))
        reason = farthest.seen.estimate.reason
        if farthest.state == "not finite" and reason not in (None, STILL):
            text = f"{self.label(farthest)} is {farthest.claimed}, and finite differences cannot decide: {reason}"
            return Outcome("INCONCLUSIVE", text, {})
        precise = max(self.precise, SINGLE if in_single(farthest.claimed) else 0.0)
        if all(w.gap <= precise * max(abs(w.claimed), abs(w.slope)) < math.inf for w in wrong):
            return self.imprecise(farthest)
        evidence = {
            **self.worst([*wrong, *self.own]),
            "ladder": farthest.seen.convergence(self.label(farthest), farthest.claimed).evidence(),
        }
        text, relative = f"{self.label(farthest)}: {self.both_numbers(farthest)}", relative_gap(farthest)
        if relative < ALIKE and self.box is not None:
            if outcome := of_differences(self.box, relative, text):
                return outcome._replace(evidence=evidence)
            text += remark_on(relative)
        doubt = self.doubts(farthest, evidence)
        if doubt or relative < SLIGHT:
            wrong_beside = None if doubt else self.only_here()
            return wrong_beside or Outcome("INCONCLUSIVE", f"{text}; {doubt}" if doubt else text, evidence)
        return disagrees(f"(numerical) {text}", evidence, self.readings())

    def doubts(self, finding: SlopeFinding, evidence: Evidence) -> str:
        """Why a contradiction is not a refutation; "" where it is one."""
        if self.doubt or finding.state == "not finite":
            return self.doubt
        seen = step_sequences.decades(finding.seen, finding.claimed, finding.slack)
        evidence["decades"] = round(math.log10(seen), 1) if seen else 0.0
        if finding.gap <= step_sequences.doubt(finding.seen):
            return "but larger steps see another slope: f is not smooth on the scale of the small ones"
        if seen < step_sequences.DECADES:
            return "but only steps within one decade tell them apart, which rounding or noise may do"
        if self.survey.seen_closer(finding, finding.claimed, finding.slope):
            return f"but smaller steps see the claimed slope: {step_sequences.JUMPS}"
        try:
            return "" if self.confirmed(finding) else "but not along a second direction"
        except OutOfTime:
            return "time ran out before a second direction was tried"

    def confirmed(self, finding: SlopeFinding) -> bool:
        """Whether a second direction, with other steps, contradicts the claim too."""
        other = self.survey.along([self.survey.second(finding)])[finding.row]
        return other.state in ("near", "differs") and other.ratio > step_sequences.CLEAR

    def nearly(self, finding: SlopeFinding) -> Outcome:
        """IMPRECISE where the gap is a matter of digits, else INCONCLUSIVE: neither called wrong nor right."""
        if finding.gap <= self.precise * abs(finding.claimed):
            return self.imprecise(finding)
        text = f"{self.label(finding)}: {self.both_numbers(finding)}, too close to tell them apart"
        return Outcome("INCONCLUSIVE", text, self.worst(self.findings))

    def imprecise(self, finding: SlopeFinding) -> Outcome:
        """IMPRECISE: the claim is right to many digits, but not to all; every slope was measured, nearby too."""
        if decided := self.only_here() or self.not_measured():
            return decided
        digits = max(1, math.floor(-math.log10(max(relative_gap(finding), 1e-16))))
        text = f"{self.label(finding)} agrees to {digits} digits only: rounding, or a constant with too few digits"
        return Outcome("IMPRECISE", text, self.worst([finding]))

    def unseen(self, unseen: Sequence[SlopeFinding]) -> Outcome:
        """INCONCLUSIVE, since a slope could not be measured: it may be anything that is claimed."""
        size = self.part.stop - self.part.start
        few = f"{size - self.count:,} of {size:,} entries change too little"
        reason = unseen[0].seen.estimate.reason if unseen else few
        text = f"finite differences cannot decide: {UNMOVED if reason == STILL else reason}"
        if 0 < len(unseen) < len(self.findings):
            more = f" and {counted(len(unseen) - 1, 'other slope')}" if len(unseen) > 1 else ""
            text = f"{self.label(unseen[0])}{more} could not be measured: {text}"
        return Outcome("INCONCLUSIVE", text, {})

    def stationary(self, unseen: Sequence[SlopeFinding]) -> list[SlopeFinding]:
        """Slopes that are 0 as nearly as steps show, and that are measured and agree at points nearby; [] otherwise.

        At a stationary point rounding hides the slope itself.
        """
        if not 0 < len(unseen) <= EXAMINED or not all(finding.seen.errors.size for finding in unseen):
            return []
        if any(finding.seen.estimate.reason in step_sequences.STAIRS for finding in unseen):
            return []
        surveys, findings = [survey for survey in self.nearby if not survey.lacks], []
        for finding in unseen:
            best = int(np.argmin(finding.seen.errors))
            known = Estimate(float(finding.seen.slopes[best]), 4.0 * float(finding.seen.errors[best]))
            near = [survey.along_entries([finding.entry or 0])[finding.row] for survey in surveys]
            steep = max((abs(other.slope) for other in near), default=0.0)
            flat = abs(finding.claimed - known.value) <= known.bound <= STATIONARY * steep
            if not flat or len(near) < LEAST_BESIDE or any(other.state != "agrees" for other in near):
                return []
            findings.append(finding._replace(state="agrees", seen=finding.seen._replace(estimate=known)))
        return findings

    def agreeing(self, spoken: Sequence[SlopeFinding], stationary: bool) -> Outcome:
        """AGREES, unless points nearby say otherwise."""
        if wrong := self.only_here():
            return wrong
        nearby = [(survey, state) for survey, state in self.around if survey.lacks in ("", EQUAL)]
        against = [survey for survey, state in nearby if state == "differs"]
        points = 1 + sum(1 for _, state in nearby if state == "agrees")
        bound, bound_text = self.bound(spoken)
        evidence: Evidence = {"points": points, "bound": bound}
        covered = self.covered()
        message = f"finite differences agree at {counted(points, 'point')} to {bound_text}"
        message += f" ({covered})" if covered else ""
        if against:
            evidence["beside"] = f"differs at {len(against)} of {len(nearby)} points nearby: is there a branch?"
            return Outcome("INCONCLUSIVE", f"{message}, but {self.role} {evidence['beside']}", evidence)
        off = [w for survey, _ in nearby for w in survey.joint if w.state in ("near", "differs")]
        only = len(nearby) > 1 and all(state in ("near", "differs") for _, state in nearby)
        if off and (self.lost or only):
            far = max(map(relative_gap, off))
            if far > ALIKE and not self.lost:
                return self.nearly(max(off, key=relative_gap))
            how = f"returns {self.lost}, and is" if self.lost else "is"
            text = f"{self.role} {how} off by a relative {far:.1g} near the point; {message}"
            return Outcome("IMPRECISE", text, {**evidence, "sent_off": far})
        special = next((survey for survey, state in self.around if survey.lacks and state == "differs"), None)
        if special is not None and not self.doubt:
            worst = max(special.joint, key=lambda finding: finding.ratio)
            kind = f"{self.name} is not {special.lacks}"
            evidence["not_in_general"] = {"where": kind, **self.both_at(special, worst)}
            message += f"; warning: wrong where {kind}: {self.both_numbers(worst, ' along a direction')}"
        if stationary:
            message += "; it is about 0 here, and was measured at points nearby"
        return Outcome("AGREES", message, evidence)

    @cached_property
    def around(self) -> list[tuple[Survey, str]]:
        """The surveys nearby, each with whether it agrees or differs."""
        return [(survey, together(survey.joint, self.sure)) for survey in self.nearby]

    def only_here(self) -> Outcome | None:
        """The verdict where a gradient that is right at the point is wrong at all points nearby, or of a kind."""
        for lacks in ("", EQUAL):
            alike = [(survey, state) for survey, state in self.around if survey.lacks == lacks]
            if len(alike) > 1 and all(state == "differs" for _, state in alike):
                where = alike[0][0]
                break
        else:
            return None
        worst = max(where.joint, key=lambda finding: finding.ratio)
        place = f"where entries of {self.name} are equal or 0" if where.lacks else "at the given point"
        close = relative_gap(worst) <= SINGLE  # a constant of float32 in f, which some numbers hide
        text = f"(numerical) it {'agrees' if close else 'is right'} {place} only: near it, "
        text += self.both_numbers(worst, " along a direction")
        if self.box is not None and (outcome := of_differences(self.box, relative_gap(worst), text)):
            return outcome._replace(evidence=self.worst(where.joint))
        counterexample = {**self.both_at(where, worst), "bound": worst.bound}
        evidence = {"counterexample": counterexample, "ladder": worst.seen.convergence("", worst.claimed).evidence()}
        return Outcome("INCONCLUSIVE" if self.doubt or close else "DISAGREES", text, evidence)

    def both_at(self, other: Survey, finding: SlopeFinding) -> Evidence:
        """The value of the argument at a point near the given one, and both slopes there."""
        moved = other.x[self.part].reshape(self.shape).tolist()
        return {"at": {self.name: moved}, "claimed": finding.claimed, "differences": finding.slope}

    def sure(self, finding: SlopeFinding) -> bool:
        """Whether a finding contradicts the claim for certain, over two decades of steps and by more than digits."""
        claimed, seen = finding.claimed, finding.seen
        digits = max(self.precise * max(abs(claimed), abs(finding.slope)), seen.still * self.survey.dust)
        decades = step_sequences.decades(seen, claimed, finding.slack)
        return finding.gap > digits and decades >= step_sequences.DECADES and contradicted(finding)

    # --- what a verdict shows ---------------------------------------------------------------------------------------

    def basis(self) -> Evidence:
        """What every verdict carries: Taylor's rates, noise, coverage, of several outputs how far pullbacks are off."""
        survey = self.survey
        alone = [finding for finding in survey.joint if finding.row == 0]
        rates = [step_sequences.taylor_rate(finding.seen, finding.claimed) for finding in alone]
        evidence: Evidence = {"basis": "numerical"}
        if any(rate is not None for rate in rates):
            evidence["taylor_rates"] = rates
        noise = [n / abs(h) if h else n for n, h in zip(survey.noise, survey.center, strict=True) if n]
        if noise:
            evidence["noise"] = float(f"{max(noise):.1g}")
        if covered := self.covered():
            evidence["covered"] = covered
        joint = [finding for finding in survey.joint if finding.state in ("agrees", "differs")]
        if len(self.row_names) > 1 and joint:
            off = max(finding.gap / max(abs(finding.claimed), 1e-300) for finding in joint)
            evidence["dot_product"] = float(f"{off:.1g}")
        single = [finding for finding in self.own if finding.state in MEASURED]
        if self.box is not None and single:
            worst = max(single, key=lambda finding: finding.ratio)
            evidence["witnesses"] = of_black_box(self.role, worst, self.label(worst) if len(single) > 1 else "")
        return evidence

    def label(self, finding: SlopeFinding) -> str:
        """What a finding is about: `x[2]`, `output 1 with respect to x[2]`, `x along a direction`."""
        by = f"{self.name} along a direction" if finding.entry is None else self.entry_label(finding.entry)
        row = self.row_names[finding.row]
        jacobian = self.box is not None and self.box.kind == JACOBIAN and row not in ("", COMBINED)
        if self.box is not None and jacobian and finding.entry is not None:
            at = subscript(int(row.rpartition(" ")[2]), self.box.shape or ())
            row = f"J{at}{subscript(finding.entry - self.part.start, self.shape)}, ".replace("][", ", ") + row
        return f"{row} with respect to {by}" if row else by

    def entry_label(self, entry: int) -> str:
        """The name of an entry of the point: `x[2]`."""
        if self.entry_name is not None:
            return self.entry_name(entry)
        return f"{self.name}{subscript(entry - self.part.start, self.shape)}"

    def both_numbers(self, finding: SlopeFinding, where: str = "") -> str:
        """The claim and the differences in one sentence."""
        value, bound, _ = finding.seen.estimate
        return f"{self.role} gives {finding.claimed!r}{where}, finite differences give {value!r} +- {bound:.1g}"

    def covered(self) -> str:
        """How much of the array was checked, and how much was not; "" where each entry had steps of its own."""
        groups, size, count = self.agreeing_groups(), self.part.stop - self.part.start, self.count
        if len({finding.entry for finding in self.own}) == size:
            return ""
        text = f"all {size:,} entries" if count == size else f"{count:,} of {size:,} entries"
        text += f" in {counted(len(groups), 'group')}" if groups else ""
        text += f" and {counted(len(self.survey.joint) // len(self.row_names), 'random direction')}"
        return text + (f"; {size - count:,} not checked individually" if count < size else "")

    @cached_property
    def count(self) -> int:
        """How many entries had steps of their own, or of a group in which something agrees."""
        seen = {finding.entry for finding in self.own}
        return len(seen.union(*(group.entries.tolist() for group in self.agreeing_groups())))

    def agreeing_groups(self) -> list[MovedEntries]:
        """The groups of entries of a large array in which something was seen that agrees."""
        groups = self.survey.groups.get(self.name, ())
        return [group for group in groups if any(finding.state == "agrees" for finding in group.findings)]

    def bound(self, spoken: Sequence[SlopeFinding]) -> tuple[float, str]:
        """The relative bound to which claims hold, and its text; of what is 0 up to its bound the absolute one.

        Of a large array, whose entries were seen in groups, it is relative to the largest one.
        """
        groups = self.agreeing_groups()
        if groups:
            alone = [finding for finding in self.own if finding.state == "agrees"]
            largest = max((abs(finding.claimed) for finding in alone), default=0.0) or 1.0
            bound = max([*(finding.bound / largest for finding in alone), *(group.bound for group in groups)])
            return bound, f"{bound:.1g} of the largest entry"
        bounds = [finding.bound / abs(finding.claimed) for finding in spoken if finding.bound < abs(finding.claimed)]
        if bounds:
            return max(bounds), f"{max(bounds):.1g}"
        bound = max(finding.bound for finding in spoken)
        return bound, f"{bound:.1g} (absolute: the gradient is zero)"

    def worst(self, findings: Sequence[SlopeFinding]) -> Evidence:
        """The entries farthest from their claims, with both numbers and the bound; and how many are wrong."""
        entries = range(self.part.start, self.part.stop)
        seen = {(finding.row, finding.entry): finding for finding in findings if finding.entry in entries}
        single = {key: finding for key, finding in seen.items() if self.row_names[finding.row] != COMBINED}
        seen = single or seen  # an output by itself says more than a combination of all of them
        wrong = [finding for finding in seen.values() if finding.state in ("near", "differs", "not finite")]
        rows = []
        for finding in sorted(wrong, key=lambda finding: -finding.ratio)[:SHOWN]:
            row = {"entry": self.label(finding), "claimed": finding.claimed, "differences": finding.slope}
            rows.append({**row, "bound": float(f"{finding.bound:.1g}")})
        what = "slopes" if len(self.row_names) > 1 else "entries"
        return {"worst": rows, "wrong": f"{len(wrong)} of {len(seen)} {what} that were checked"} if rows else {}

    # --- kinks -----------------------------------------------------------------------------------------------

    def not_smooth(self) -> Outcome | None:
        """KINK, BOUNDARY or DISCONTINUOUS where f is not smooth at the point by this argument."""
        survey, part = self.survey, self.part
        near = (seen for seen in self.own if step_sequences.straddling(seen.seen))
        if any(not self.bends(seen, 0.0, float(np.median(step_sequences.between_sides(seen.seen)))) for seen in near):
            return Outcome("INCONCLUSIVE", SO_NEAR, {})
        suspects = [finding for finding in self.findings if suspicious(finding.seen) or self.invisible(finding)]
        if survey.x.size == 1:  # a direction is the entry once more
            suspects = [finding for finding in suspects if finding.entry is not None]
        axes = [finding for finding in suspects if finding.entry is not None]
        if not suspects or (not axes and part.stop - part.start > EXAMINED):
            return None
        row = suspects[0].row
        examined = [finding for finding in axes or self.own if finding.row == row][:EXAMINED]
        around = [] if axes else [finding for finding in survey.joint if finding.row == row]
        seen = step_sequences.sides_along([finding.seen for finding in examined], [finding.seen for finding in around])
        if seen.verdict == "smooth" or not self.shown_by(suspects, seen):  # a kink nearby, or steps of rounding
            return None
        lines = zip(examined, seen.left, seen.right, strict=True)
        if seen.verdict == "KINK" and not any(self.bends(*line) for line in lines):
            return Outcome("INCONCLUSIVE", SO_NEAR, {})
        slopes = [side for side in (*seen.left, *seen.right) if side is not None and math.isfinite(side)]
        clear = seen.verdict == "KINK" and max(slopes) - min(slopes) > 0.01 * max(map(abs, slopes))
        if survey.noise[row] and not clear:
            return None
        labels = [self.entry_label(finding.entry or 0) for finding in examined]
        pairs = [*zip(seen.left, seen.right, strict=True)]
        gaps = [0.0 if x == y else math.inf if x is None or y is None else abs(x - y) for x, y in pairs]
        least = int(np.argmax(gaps)) if any(gaps) else None
        what = "f has a kink here" if seen.verdict == "KINK" else "f has no derivative here"
        if seen.verdict == "DISCONTINUOUS":
            below, above = ("undefined" if limit is None else f"{limit + 0.0:.6g}" for limit in seen.limits)
            what = f"{below} from below, {seen.value:.6g} at the point, {above} from above"
        elif self.shape and least is not None:
            what += f" with respect to {labels[least]}"
        returned = [finding.claimed for finding in examined]
        tie = {"reason": "", "gap": None, "least": least}
        return nonsmooth_outcome(seen, returned, what, {"bound": seen.bound, "entries": labels}, (), tie)

    def bends(self, finding: SlopeFinding, left: float | None, right: float | None) -> bool:
        """Whether slopes on both sides stay apart down to steps that rounding limits: else a kink is near the point."""
        gap = abs((right or 0.0) - (left or 0.0))
        if finding.entry is None or not 0 < gap < math.inf:
            return True
        slopes = self.survey.closest(finding, gap)
        return not (np.abs(slopes[1] - slopes[0]) <= 0.2 * gap).all()

    def invisible(self, finding: SlopeFinding) -> bool:
        """Whether a finding has no slope, and a kink may be the reason."""
        if finding.state == "not finite":
            return finding.seen.estimate.reason is not None
        return finding.state == "silent" and not (self.survey.noise[finding.row] > 0 and finding.seen.errors.size)

    def shown_by(self, suspects: Sequence[SlopeFinding], seen: LocalBehaviour) -> bool:
        """Whether the steps of the suspects show that too."""
        if seen.verdict == "BOUNDARY":
            return True
        pairs = [pair for pair in zip(seen.left, seen.right, strict=True) if None not in pair and pair[0] != pair[1]]
        entries = [finding for finding in suspects if finding.entry is not None]
        bent = (step_sequences.bent(own.seen, left or 0.0, right or 0.0) for own in entries for left, right in pairs)
        if seen.verdict == "KINK" and pairs and entries and not any(bent):
            return False
        return any(suspicious(finding.seen) for finding in suspects)

    # --- how it is wrong -----------------------------------------------------------------------------------------

    def readings(self) -> list[ErrorReading]:
        """How the gradient of a scalar, or a Jacobian, may be wrong; needs every entry of the argument."""
        box, known = self.box, self.known(self.name)
        if box is None or known is None or known.fits(known.claimed):
            return []
        shapes = [box.shape_of(other) for other in box.slices]
        sizes = [*map(math.prod, shapes), *(n for shape in shapes for n in shape)]
        twins = {}
        for other in box.slices if box.size == 1 else ():
            twin = self.known(other)
            if other != self.name and twin is not None and twin.right.shape == known.right.shape:
                twins[other] = Comparison(twin.right, known.claimed, twin.slack)
        what = "Jacobian" if box.size > 1 else "gradient"
        causes = readings(known, sizes, twins, what, "arguments: the claim is the gradient with respect to", LARGEST)
        if known.right.size < FEW:
            joint = [finding for survey in self.nearby for finding in survey.joint]
            elsewhere = [finding for finding in joint if finding.state not in ("silent", "still", "not finite")]
            again = [reading.factor for reading in readings(comparison(elsewhere), sizes, largest=LARGEST)]
            causes = [reading for reading in causes if reading.factor in (None, "-1", *again)]
        return causes or missing_factor(box, known) or of_entries(known, what)

    def known(self, name: str) -> Comparison | None:
        """Slopes, bounds and claims of an argument, of several outputs as their Jacobian.

        None where not every entry was seen, and where bounds are too wide to distinguish patterns.
        """
        survey, part = self.survey, self.survey.slices[name]
        rows = [k for k, row in enumerate(self.row_names) if row != COMBINED]
        measured = (finding for finding in survey.entries if finding.state not in ("silent", "still"))
        seen = {(finding.row, finding.entry): finding for finding in measured}
        cells = [(k, i) for k in rows for i in range(part.start, part.stop)]
        if self.box is None or len(rows) < self.box.size or not seen.keys() >= {*cells}:
            return None
        shape = (len(rows), part.stop - part.start) if len(rows) > 1 else self.box.shape_of(name)
        slopes = comparison([seen[cell] for cell in cells], (1, *shape))
        largest = float(np.abs(slopes.right).max(initial=0.0))
        sharp = largest > 0 and float(slopes.slack.max()) <= SHARP * largest
        return slopes if sharp else None


AS_DIFFERENCES = "{}: it has a noise of {:.0e}, as finite differences have"
NOISE = 1e-12  # relative scatter of a derivative over tiny steps that an exact formula does not have
NOISIER = 4e3  # times the scatter of f, from which an exact formula has its own
STEPPED = 32.0  # times their noise, and the step that makes it: so far off may finite differences be
TINY, TRIALS = (1e-9, 1e-12), 6  # those steps, on each side


def of_differences(box: BlackBox, gap: float, text: str) -> Outcome | None:
    """IMPRECISE where a derivative scatters as finite differences do, and is off by no more than they are.

    Their noise is that of f divided by their step, which their error is about as large as. INCONCLUSIVE where it is off
    by more; None where it does not scatter, or is off by too much for any.
    """
    if gap >= ALIKE:
        return None
    noise = scatter_of(box)
    if not NOISE < noise < ALIKE or noise <= NOISIER * max(scatters(box, box.value)):
        return None
    verdict = "IMPRECISE" if gap <= STEPPED * (noise + EPSILON / noise) else "INCONCLUSIVE"
    return Outcome(verdict, AS_DIFFERENCES.format(text, noise), {})


def scatter_of(box: BlackBox) -> float:
    """How far the derivative lies from parabolas through its values over tiny steps, relatively.

    The least of both sides and of two sizes of steps: noise is in all of them, and a jump is not.
    """
    weights = np.random.default_rng(1).uniform(0.5, 1.5, box.size)
    return min(scatters(box, partial(box.pullback, weights=weights)))


def scatters(box: BlackBox, of: Callable[[Floats], Floats]) -> list[float]:
    """How far a function lies from parabolas through its values, relatively, by size of steps and side."""
    d = np.random.default_rng(2).uniform(0.5, 1.5, box.x.size) * np.maximum(np.abs(box.x), 1e-3)
    steps, gaps = np.arange(1, TRIALS + 1), []
    for step in (sign * tiny for tiny in TINY for sign in (-1.0, 1.0)):
        rows = np.array([of(box.x + step * k * d) for k in steps])
        fitted = np.polynomial.polynomial.polyval(steps, np.polynomial.polynomial.polyfit(steps, rows, 2)).T
        size = float(np.abs(rows).max())
        gaps.append(float(np.abs(rows - fitted).max()) / size if size and np.isfinite(size) else 0.0)
    return gaps


def in_single(value: float) -> bool:
    """Whether a number has the digits of float32, and all of them."""
    with np.errstate(all="ignore"):
        return float(np.float32(value)) == value != float(np.float16(value))


def remark_on(gap: float) -> str:
    """How small the relative difference is that refutes: a solver or an iteration may make it."""
    allows = f"gradcli.check(..., rtol={10.0 ** math.ceil(math.log10(2 * max(gap, 1e-300))):.0e}) allows for it"
    return f" (a relative {gap:.0g}: if f is computed approximately, {allows})"


def relative_gap(finding: SlopeFinding) -> float:
    """How far the claim is off, relative to the slope by differences."""
    return finding.gap / max(abs(finding.slope), 1e-300)


def comparison(findings: Sequence[SlopeFinding], shape: tuple[int, ...] = (-1,)) -> Comparison:
    """Slopes by differences, with their error bounds, beside the claims."""
    columns = np.array([(*finding.seen.estimate[:2], finding.claimed) for finding in findings]).reshape(-1, 3).T
    slopes, bounds, claimed = (column.reshape(shape) for column in columns)
    return Comparison(slopes, claimed, 4.0 * bounds + 1e-9 * np.abs(slopes))


def missing_factor(box: BlackBox, known: Comparison) -> list[ErrorReading]:
    """What the claim, or its wrong columns of a Jacobian, has to be multiplied with or divided by.

    That is an argument, the value of f or the claim, or 1 minus one of them or its square; of three numbers or more.
    """
    claimed, where = known.claimed, ""
    arrays = {argument.name: argument.array for argument in box.arguments if argument.array is not None}
    data = [argument for argument in box.arguments if getattr(argument.value, "dtype", None) == np.float64]
    arrays |= {argument.name: argument.value for argument in data}
    arrays["f"] = np.asarray(box.value(box.x))
    shapes: list[tuple[int, ...]] = [claimed.shape]
    if box.size == 1:
        arrays["the claim"] = claimed
    else:
        shapes = [(1, claimed.shape[1], 1), (1, 1, claimed.shape[2])]
    parts = []
    for name, array in arrays.items():
        fitting = [array.reshape(shape) for shape in shapes if array.size == math.prod(shape)]
        for value in fitting if np.unique(array).size >= FEW else ():
            ways = {name: value, f"(1 - {name})": 1 - value, f"(1 - {name}**2)": 1 - value**2}
            parts += [Subexpression(partial(str, text), np.broadcast_to(x, claimed.shape)) for text, x in ways.items()]
    if box.size > 1 and not (wrong := known.misses(claimed).any(axis=(0, 1))).all():
        columns = np.flatnonzero(wrong)
        where = f" in the column{'s' * (columns.size > 1)} {', '.join(map(str, columns))}"
        known = Comparison(*(x[..., wrong] for x in (known.right, claimed, known.slack)))
        parts = [part._replace(value=part.value[..., wrong]) for part in parts]
    return [reading._replace(text=reading.text + where) for reading in of_parts(known, parts)]
