"""The verdict from values alone, on a script that no oracle can read and on a black box alike.

At best AGREES. Differences that contradict the gradient of a script leave it INCONCLUSIVE; that of a black box they
refute where steps over two decades along two directions do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gradcli.checks.decide.case import Outcome, leaf_names, parts_of
from gradcli.checks.decide.floats import evaluated, moving
from gradcli.checks.decide.kinks import on
from gradcli.checks.decide.precision import float_tie
from gradcli.checks.differences import step_sequences
from gradcli.checks.differences.step_sequences import STILL, UNMOVED
from gradcli.checks.differences.survey import COMBINED, Survey, contradicted, together
from gradcli.checks.formatting import counted, point_text, position
from gradcli.graph.node import reachable
from gradcli.results.curves import StepSequence

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gradcli.checks.decide.case import Answer, Case, Evidence, Values
    from gradcli.checks.differences.survey import Finding, Group

SHOWN = 5  # of the worst entries
SMALL = 1e-6  # beside the largest slope: then a bound is told beside that one


class ByDifferences:
    """The verdict on the gradient with respect to one argument, from surveys of the point and of points beside it."""

    role = "the gradient"  # whatever gives what is judged
    row_names: Sequence[str] = ("",)  # of the combinations of outputs
    refutes = False  # whether differences alone may

    def __init__(self, survey: Survey, name: str, shape: tuple[int, ...]) -> None:
        self.survey = survey
        self.name = name
        self.shape = shape
        self.part = survey.slices[name]
        self.own, self.found = survey.findings(name)
        self.evidence: Evidence = self.basis()

    def verdict(self) -> Outcome:
        """What differences say, or where f is not smooth what that does to them."""
        found = self.not_smooth() or self.by_findings()
        return found._replace(evidence={**self.evidence, **found.evidence})

    def by_findings(self) -> Outcome:
        """The verdict where f looks smooth."""
        wrong = [one for one in self.found if one.state in ("differs", "not finite")]
        if wrong:  # a wrong entry says more than a wrong sum of them
            return self.contradicted(sorted(wrong, key=lambda one: (one.entry is None, -one.ratio)))
        near = [one for one in self.found if one.state == "near"]
        if near:
            return self.nearly(max(near, key=lambda one: one.ratio))
        agreeing = [one for one in self.found if one.state == "agrees"]
        return self.agreeing(agreeing) if agreeing else self.unseen()

    # --- what scripts and black boxes have of their own -----------------------------------------------------------

    def not_smooth(self) -> Outcome | None:
        """The verdict where f is not smooth; None where it is, or where differences do not decide that."""
        return None

    def contradicted(self, wrong: Sequence[Finding]) -> Outcome:
        """The verdict where differences contradict the gradient; the entry that is farthest off comes first."""
        raise NotImplementedError

    def nearly(self, one: Finding) -> Outcome:
        """The verdict where a slope is too near to be called wrong, and not near enough to be right."""
        return Outcome(
            "INCONCLUSIVE",
            f"{self.label(one)}: {self.gap_text(one)}, too close to tell them apart",
            self.worst(self.found),
        )

    def beside(self) -> list[Survey]:
        """Surveys of points near the given one, along one direction each."""
        raise NotImplementedError

    # --- the good end ---------------------------------------------------------------------------------------------

    def unseen(self) -> Outcome:
        """INCONCLUSIVE: nothing could be compared."""
        reason = "time ran out before the first comparison"
        silent = next((one for one in self.found if one.state in ("silent", "still")), None)
        if silent is not None:
            reason = silent.seen.estimate.reason or "nothing could be compared"
            reason = UNMOVED if reason == STILL else reason
        return Outcome("INCONCLUSIVE", f"finite differences cannot decide: {reason}", {})

    def agreeing(self, spoken: Sequence[Finding]) -> Outcome:
        """AGREES, unless points nearby say otherwise."""
        survey = self.survey
        around = [(one, together(one.joint, self.sure)) for one in self.beside()]
        beside = [(one, state) for one, state in around if not one.lacks]
        against = [one for one, state in beside if state == "differs"]
        if against and (not self.refutes or len(against) == len(beside) > 1):
            return self.only_here(against[0])
        points = 1 + sum(1 for _, state in beside if state == "agrees")
        both = (*survey.joint, *survey.entries)
        largest = max((abs(one.claimed) * survey.scale_of(one) for one in both if one.state == "agrees"), default=0.0)
        bound, bound_told = self.bound(spoken, largest)
        evidence: Evidence = {"points": points, "bound": bound}
        if against:
            evidence["beside"] = f"differs at {len(against)} of {len(beside)} points nearby: is there a branch?"
        covered = self.covered()
        message = f"finite differences agree at {counted(points, 'point')} to {bound_told}" + (
            f" ({covered})" if covered else ""
        )
        special = next((one for one, state in around if one.lacks and state == "differs"), None)
        if special is not None and not against and self.refutes:
            worst = max(special.joint, key=lambda one: one.ratio)
            kind = f"{self.name} is not {special.lacks}"
            evidence["not_in_general"] = {"where": kind, **self.both_at(special, worst)}
            message += f"; warning: wrong where {kind}: {self.gap_text(worst, 'along a direction')}"
        rest = sum(1 for one in self.own if one.state in ("silent", "still"))
        if rest:
            message += f"; {counted(rest, 'slope')} could not be measured"
        return Outcome("AGREES", message, evidence)

    def only_here(self, where: Survey) -> Outcome:
        """The verdict where a gradient that is right at the point is wrong beside it."""
        worst = max(where.joint, key=lambda one: one.ratio)
        gap = self.gap_text(worst, "along a direction")
        evidence = {
            "counterexample": {**self.both_at(where, worst), "bound": worst.seen.estimate.bound},
            "ladder": steps_shown(worst),
        }
        verdict = "DISAGREES" if self.refutes else "INCONCLUSIVE"
        return Outcome(verdict, f"(numerical) it is right at the given point only: near it, {gap}", evidence)

    def both_at(self, other: Survey, one: Finding) -> Evidence:
        """The value of the argument at a point near the given one, and both slopes there."""
        moved = other.x[self.part].reshape(self.shape).tolist()
        return {"at": {self.name: moved}, "claimed": one.claimed, "differences": one.seen.estimate.value}

    def sure(self, one: Finding) -> bool:
        """Whether a finding contradicts the claim with the certainty that differences can have."""
        return contradicted(one)

    # --- what a verdict shows ---------------------------------------------------------------------------------------

    def basis(self) -> Evidence:
        """What every verdict carries: Taylor's rates, noise, coverage."""
        survey = self.survey
        rates = [step_sequences.taylor_rate(one.seen, one.claimed) for one in survey.joint if one.row == 0]
        found: Evidence = {"basis": "numerical"}
        if any(rate is not None for rate in rates):
            found["taylor_rates"] = [None if rate is None else round(rate, 2) for rate in rates]
        noise = [n / abs(h) if h else n for n, h in zip(survey.noise, survey.here, strict=True) if n]
        if noise:
            found["noise"] = float(f"{max(noise):.1g}")
        covered = self.covered()
        if covered:
            found["covered"] = covered
        return found

    def place(self, entry: int) -> str:
        """What an entry is called: `x[2]`."""
        return f"{self.name}{position(entry - self.part.start, self.shape)}"

    def label(self, one: Finding) -> str:
        """What a finding is about: `x[2]`, `output 1 with respect to x[2]`, `x along a direction`."""
        by = f"{self.name} along a direction" if one.entry is None else self.place(one.entry)
        row = self.row_names[one.row]
        return f"{row} with respect to {by}" if row else by

    def gap_text(self, one: Finding, where: str = "") -> str:
        """Both numbers in one sentence."""
        value, bound, _ = one.seen.estimate
        own = f"{self.role} gives {one.claimed!r}{f' {where}' if where else ''}"
        return f"{own}, finite differences give {value!r} +- {bound:.1g}"

    def covered(self) -> str:
        """How much of the array was looked at, and what was not; nothing where each entry had steps of its own."""
        survey = self.survey
        size = self.part.stop - self.part.start
        seen = {one.entry for one in self.own}
        groups = self.agreeing_groups()
        together = seen.union(*(group.entries.tolist() for group in groups))
        if len(seen) == size and not survey.unfinished:
            return ""
        told = f"all {size:,} entries" if len(together) == size else f"{len(together):,} of {size:,} entries"
        told += f" in {counted(len(groups), 'group')}" if groups else ""
        told += f" and {counted(len(survey.joint) // len(self.row_names), 'random direction')}"
        left = size - len(together)
        return told + (f"; {left:,} not checked individually" if left else "")

    def agreeing_groups(self) -> list[Group]:
        """The groups of entries of a large array in which something was seen that agrees."""
        groups = self.survey.groups.get(self.name, ())
        return [group for group in groups if any(one.state == "agrees" for one in group.findings)]

    def bound(self, spoken: Sequence[Finding], largest: float) -> tuple[float, str]:
        """The relative bound to which the claims hold (of a large array: of its largest entry), and its text."""
        groups = self.agreeing_groups()
        if not groups or not largest > 0:
            found = max(self.relative(one, largest) for one in spoken)
            return found, f"{found:.1g}" + ("" if largest > 0 else " (absolute: the gradient is zero)")
        size = self.survey.scale_of
        alone = [one.seen.estimate.bound * size(one) / largest for one in self.own if one.state == "agrees"]
        found = max([*alone, *(group.bound for group in groups)])
        smallest = max(group.own for group in groups)
        told = f", the smallest to {smallest:.1g} relative to itself" if smallest < 1 else ""
        return found, f"{found:.1g} of the largest entry{told}"

    def relative(self, one: Finding, largest: float) -> float:
        """The bound of a finding beside its slope, or beside the largest slope where it is itself nothing."""
        size = self.survey.scale_of(one)
        own, bound = abs(one.claimed) * size, one.seen.estimate.bound * size
        if not largest > 0:
            return bound
        return bound / (own if own > SMALL * largest else largest)

    def worst(self, found: Sequence[Finding]) -> Evidence:
        """The entries farthest from their claims, with both numbers and the bound; and how many are wrong."""
        seen = {(one.row, one.entry): one for one in found if one.entry is not None and self.holds(one.entry)}
        single = {key: one for key, one in seen.items() if self.row_names[one.row] != COMBINED}
        seen = single or seen  # an output by itself says more than a combination of all of them
        wrong = [one for one in seen.values() if one.state in ("near", "differs", "not finite")]
        rows = []
        for one in sorted(wrong, key=lambda one: -one.ratio)[:SHOWN]:
            value, bound = one.seen.estimate.value, float(f"{one.seen.estimate.bound:.1g}")
            rows.append({"entry": self.label(one), "claimed": one.claimed, "differences": value, "bound": bound})
        if not rows:
            return {}
        what = "slopes" if len(self.row_names) > 1 else "entries"
        return {"worst": rows, "wrong": f"{len(wrong)} of {len(seen)} {what} that were checked"}

    def holds(self, entry: int) -> bool:
        """Whether an entry of the point is one of this argument."""
        return bool(self.part.start <= entry < self.part.stop)


def steps_shown(one: Finding, of: str = "") -> Evidence:
    """A step sequence: the steps, the slope from each, the best estimate of it, and the claim."""
    value, bound, _ = one.seen.estimate
    steps, slopes = one.seen.steps.tolist(), one.seen.slopes.tolist()
    return StepSequence(steps, slopes, of, claimed=one.claimed, estimate=value, bound=bound).evidence()


# --- scripts ------------------------------------------------------------------------------------------------------


def by_differences(case: Case) -> Outcome:
    """The verdict on a gradient in a script from values alone."""
    if case.target not in reachable([case.output]):
        return independent(case)
    return OfScript(case).verdict()


class OfScript(ByDifferences):
    """The verdict on a gradient in a script, whose engine and kinks are known."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.name = case.own_leaf or case.subject.text
        survey = self.surveyed(case.values)
        survey.look()
        super().__init__(survey, self.name, case.target.type.shape)
        self.role = "the gradient" if case.subject.kind == "gradient" else "the claim"
        self.evidence["steps"] = step_sequences.STEPS

    def surveyed(self, values: Values) -> Survey:
        """The survey of one point; nothing has been looked at."""
        case = self.case
        f, x = moving(case.output, [case.target], values)
        claims = parts_of(evaluated([case.subject.judged], values, "complex128" if case.plane else "float64")[0])
        rtol, domain = case.subject.rtol or 0.0, None if case.plane else case.subject.domain
        one = np.ones((1, 1))
        return Survey(f, x, {self.name: slice(0, x.size)}, one, claims[None], np.zeros(1), case.seed, rtol, domain)

    def beside(self) -> list[Survey]:
        """Surveys of points near the given one, along one direction each."""
        found = list(map(self.surveyed, self.case.nearby or self.case.beside()[: self.case.samples]))
        for one in found:
            one.look_along(one.directions(1))
        return found

    def place(self, entry: int) -> str:
        """What an entry is called: `x[2]`, `real(z[2])`."""
        return self.case.part(entry) if self.case.plane else super().place(entry)

    def unseen(self) -> Outcome:
        """INCONCLUSIVE: nothing could be compared."""
        found = super().unseen()
        self.case.tried["differences"] = found.message.removeprefix("finite differences cannot decide: ")
        return found

    def nearly(self, one: Finding) -> Outcome:
        """INCONCLUSIVE: more than rounding, which differences alone cannot tell from a wrong gradient."""
        return self.contradicted([one])

    def agreeing(self, spoken: Sequence[Finding]) -> Outcome:
        """AGREES, unless the point lies on a kink in floats."""
        case = self.case
        tie = None if case.smooth_tie else float_tie(case)
        if tie is not None:
            reason = f"the point lies on a kink ({on(tie)}), where finite differences cannot decide"
            case.tried["differences"] = reason
            return Outcome("INCONCLUSIVE", reason, {"float_kink": on(tie)})
        found = super().agreeing(spoken)
        if found.verdict != "AGREES":
            case.tried["differences"] = f"contradict: {found.message}"
            return found
        case.tried["differences"] = f"agree at {counted(found.evidence['points'], 'point')}"
        exact = case.tried.get("series", case.tried.get("balls"))
        if exact is not None and not case.smooth_tie:
            found = found._replace(message=f"{found.message}; not certified: {exact}")
        return found

    def contradicted(self, wrong: Sequence[Finding]) -> Outcome:
        """INCONCLUSIVE: differences alone refute nothing."""
        reason = f"{self.label(wrong[0])}: {self.gap_text(wrong[0])}"
        self.case.tried["differences"] = f"contradict: {reason}"
        message = f"finite differences contradict it, and no exact oracle could decide: {reason}"
        return Outcome("INCONCLUSIVE", message, self.worst(wrong))


def independent(case: Case) -> Outcome:
    """The output does not depend on the target: the gradient is zero."""
    if case.plane:
        zero = not leaf_names([case.subject.judged]) and not case.made(case.values).any()
        answer: Answer = {"entries": [[{"sign": 0}]] if zero else [[]]}
    else:
        answer = case.exact.values([case.subject.judged], case.values)
    entries = answer.get("entries", [[]])[0]
    if entries and all(entry.get("sign") == 0 for entry in entries):
        return Outcome("PROVED", "the output does not depend on this name: the gradient is zero", {"independent": True})
    wrong = next((i for i, entry in enumerate(entries) if entry.get("sign") in (-1, 1)), None)
    if wrong is None:
        return Outcome("INCONCLUSIVE", answer.get("reason", "the claim could not be evaluated"), {})
    where = position(wrong, case.subject.judged.type.shape)
    found = {"at": point_text(case.values, case.exact.used), "entry": where, "exact": "0"}
    evidence: Evidence = {"counterexample": {**found, "claimed": entries[wrong]["digits"]}}
    return Outcome("DISAGREES", f"the output does not depend on this name: the gradient{where} is 0", evidence)
