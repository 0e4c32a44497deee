"""The verdict for each argument of a black box, from its survey, with the numbers that it rests on.

At best AGREES. "DISAGREES (numerical)" needs steps over two decades and a second direction, and a function that
gives the same values when called twice; anything less is INCONCLUSIVE.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.checks.callables import step_sequences
from gradcli.checks.callables.failures import OutOfTime
from gradcli.checks.callables.step_sequences import bent, suspicious, vertical
from gradcli.checks.decide import kinks
from gradcli.checks.decide.case import Outcome
from gradcli.checks.diagnosis.ratios import Comparison, Reading, alike, of_entries, readings
from gradcli.checks.formatting import counted, position
from gradcli.checks.witnesses import black_box
from gradcli.results.curves import StepSequence

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from gradcli.checks.callables.survey import Finding, Group, Survey

    Floats = NDArray[np.floating[Any]]

DIGITS = {"float64": 1e-8, "float32": 1e-5}  # a smaller relative gap is a matter of digits: IMPRECISE
FORETOLD = 0.2  # of the gap: how well a second direction has to fit the entries
SLIGHT = 3e-7  # below this nobody can tell from outside whether f or the gradient is the approximation
ALIKE = 1e-4  # a smaller relative gap may come from a solver or an iteration in f
CLEAR = 3.0  # the second direction, and the sides of a point, have to part a claim by so many slacks
LOOKED = 6  # entries whose sides are looked at
LARGEST = 64  # numerators and denominators of a constant factor
FEW = 3  # numbers at one point: they are in some simple ratio by chance
SHARP = 1e-5  # the largest slope has to be known at least so well
Evidence = dict[str, Any]
SHOWN = 5  # of the worst entries


class Judge:
    """What is asked of a survey for one argument after the other."""

    def __init__(
        self, survey: Survey, nearby: Callable[[str], list[Survey]], row_names: Sequence[str], steady: bool, digits: str
    ) -> None:
        self.survey = survey
        self.nearby = nearby
        self.row_names = row_names
        self.steady = steady  # the box gives the same values when it is asked again
        self.precise = DIGITS.get(digits, DIGITS["float64"])

    def verdict(self, name: str) -> Outcome:
        """The verdict on the gradient with respect to one argument."""
        try:
            if self.survey.unfinished:  # how far it came depends on the machine, and a verdict does not
                raise OutOfTime
            return self.decided(name)
        except OutOfTime:
            told = f"{self.survey.box.seconds:g} s were over before it could be decided: a longer timeout would help"
            return Outcome("INCONCLUSIVE", told, {})

    def decided(self, name: str) -> Outcome:
        """`verdict`, as long as there is time."""
        survey = self.survey
        part = survey.box.slices[name]
        own = [one for one in survey.entries if part.start <= (one.entry or 0) < part.stop]
        found = [*own, *(survey.joint if len(survey.box.slices) == 1 or not own else survey.own.get(name, ()))]
        found += [one for group in survey.groups.get(name, ()) for one in group.findings]
        evidence = {**self.evidence(name, own), **self.witnesses(name, own)}
        rough = self.rough(name, part, found)
        if rough is not None:
            return rough._replace(evidence={**evidence, **rough.evidence})
        wrong = sorted((one for one in found if one.state in ("differs", "not finite")), key=lambda one: -one.ratio)
        if wrong:
            return self.parted(name, wrong, own, evidence)
        near = [one for one in found if one.state == "near"]
        if near:
            one = max(near, key=lambda one: one.ratio)
            if one.gap <= self.precise * abs(one.claimed):
                return self.imprecise(name, one, evidence)
            told = f"{self.label(name, one)}: {self.gap_told(one)}, too near to call"
            return Outcome("INCONCLUSIVE", told, {**evidence, **self.worst(name, found)})
        return self.agreeing(name, own, found, evidence)

    # --- the good end ----------------------------------------------------------------------------------------

    def agreeing(self, name: str, own: Sequence[Finding], found: Sequence[Finding], evidence: Evidence) -> Outcome:
        """AGREES, unless nothing could be seen here, or every point nearby says otherwise."""
        survey = self.survey
        spoken = [one for one in found if one.state == "agrees"]
        if not spoken:
            reason = "the time was over before anything could be seen"
            silent = next((one for one in found if one.state in ("silent", "still")), None)
            if silent is not None:
                reason = silent.ladder.estimate.reason or "nothing could be seen"
                if silent.state == "still":
                    reason = "f does not move here in float64"
            return Outcome("INCONCLUSIVE", f"differences cannot decide: {reason}", evidence)
        around = [(one, self.state_of(one)) for one in self.nearby(name)]
        beside = [(one, state) for one, state in around if not one.lacks]
        against = [one for one, state in beside if state == "differs"]
        if against and len(against) == len(beside) > 1:
            where = against[0]
            worst = max(where.joint, key=lambda one: one.ratio)
            told = "(numerical) it is right at the given point only: beside it, "
            told += self.gap_told(worst, "along a direction")
            moved = where.x[where.box.slices[name]].reshape(where.box.shape_of(name)).tolist()
            return Outcome(
                "DISAGREES" if self.steady else "INCONCLUSIVE",
                told,
                {**evidence, "counterexample": {"at": {name: moved}, "differences": worst.ladder.estimate.value,
                                                "claimed": worst.claimed, "bound": worst.ladder.estimate.bound},
                 "ladder": ladder_shown(worst)},
            )  # fmt: skip
        points = 1 + sum(1 for _, state in beside if state == "agrees")
        both = (*survey.joint, *survey.entries)
        largest = max((abs(one.claimed) * survey.scale_of(one) for one in both if one.state == "agrees"), default=0.0)
        bound, bound_told = self.bound(name, own, spoken, largest)
        evidence |= {"points": points, "bound": bound}
        if against:
            evidence["beside"] = f"differs at {len(against)} of {len(beside)} points nearby: perhaps a branch"
        message = f"differences agree at {counted(points, 'point')} to {bound_told}"
        covered = self.covered(name, own)
        message += f" ({covered})" if covered else ""
        special = next((one for one, state in around if one.lacks and state == "differs"), None)
        if special is not None and not against and self.steady:
            moved = special.x[special.box.slices[name]].reshape(special.box.shape_of(name)).tolist()
            worst = max(special.joint, key=lambda one: one.ratio)
            kind = f"{name} is not {special.lacks}"
            evidence["not_in_general"] = {"where": kind, "at": {name: moved}, "claimed": worst.claimed,
                                          "differences": worst.ladder.estimate.value}  # fmt: skip
            message += f"; warning: wrong where {kind}: {self.gap_told(worst, 'along a direction')}"
        rest = sum(1 for one in own if one.state in ("silent", "still"))
        if rest:
            message += f"; {counted(rest, 'slope')} could not be seen"
        return Outcome("AGREES", message, evidence)

    def state_of(self, survey: Survey) -> str:
        """What the directions at a point nearby say, in one word."""
        states = [one.state for one in survey.joint]
        if any(one == "not finite" for one in states) or not states:
            return "silent"
        if "differs" in states:
            sure = [one for one in survey.joint if one.state == "differs" and self.sure(survey, one)]
            return "differs" if sure else "silent"
        return "agrees" if "agrees" in states and "near" not in states else "silent"

    # --- the bad end -----------------------------------------------------------------------------------------

    def parted(self, name: str, wrong: Sequence[Finding], own: Sequence[Finding], evidence: Evidence) -> Outcome:
        """Differences contradict the claim: how surely, and how it is wrong."""
        plain = [w for w in wrong if w.entry is not None and w.state == "differs"]
        single = [w for w in plain if not self.row_names[w.row].startswith("a ")]
        one = next(iter((*single, *plain, *wrong)))
        if one.state == "not finite" and one.ladder.estimate.reason not in (None, step_sequences.STILL):
            told = (
                f"{self.label(name, one)} is {one.claimed}, and differences cannot decide: {one.ladder.estimate.reason}"
            )
            return Outcome("INCONCLUSIVE", told, evidence)
        if all(w.gap <= self.precise * max(abs(w.claimed), abs(w.ladder.estimate.value)) < math.inf for w in wrong):
            return self.imprecise(name, one, evidence)
        evidence |= self.worst(name, [*wrong, *own])
        evidence["ladder"] = ladder_shown(one, self.label(name, one))
        told = f"{self.label(name, one)}: {self.gap_told(one)}"
        if not self.steady:
            return Outcome("INCONCLUSIVE", f"{told}; but f gives different values when it is called again", evidence)
        if one.state != "not finite":
            seen = step_sequences.decades(one.ladder, one.claimed, one.slack, CLEAR)
            evidence["decades"] = round(math.log10(seen), 1) if seen else 0.0
            if step_sequences.divided(one.ladder, one.claimed):
                told += "; but larger steps see the claimed slope: f is not smooth on the scale of the small ones"
                return Outcome("INCONCLUSIVE", told, evidence)
            if seen < step_sequences.DECADES:
                told += "; but the steps of one decade only part them, and rounding or noise may do that"
                return Outcome("INCONCLUSIVE", told, evidence)
            try:
                confirmed = self.confirmed(one)
            except OutOfTime:
                return Outcome("INCONCLUSIVE", f"{told}; the time was over before a second direction", evidence)
            if not confirmed:
                return Outcome("INCONCLUSIVE", f"{told}; but not along a second direction", evidence)
        relative = one.gap / max(abs(one.ladder.estimate.value), 1e-300)
        if relative < ALIKE:
            told += f" (a relative {relative:.0g}: if f is computed approximately, rtol= allows for it)"
        if relative < SLIGHT:
            return Outcome("INCONCLUSIVE", told, evidence)
        read = self.readings(name)
        if read:
            evidence["diagnosis"] = [{"name": r.name, "text": r.text} for r in read]
            told += f"; {read[0].text}"
        return Outcome("DISAGREES", f"(numerical) {told}", evidence)

    def confirmed(self, one: Finding) -> bool:
        """Whether a second direction, with other steps, parts the claim too, and as the entries foretell."""
        survey = self.survey
        d = survey.second(one)
        other = survey.along(d)[one.row]
        if other.state not in ("near", "differs") or other.ratio <= CLEAR:
            return False
        slopes = {entry.entry: entry.ladder.estimate for entry in survey.entries if entry.row == one.row}
        if len(slopes) < survey.x.size or any(seen.reason is not None for seen in slopes.values()):
            return True
        foretold = sum(slopes[i].value * float(d[i]) for i in range(survey.x.size))
        return abs(other.ladder.estimate.value - foretold) <= FORETOLD * other.gap

    def sure(self, survey: Survey, one: Finding) -> bool:
        """Whether a finding contradicts the claim over two decades of steps, by more than digits."""
        if one.gap <= self.precise * max(abs(one.claimed), abs(one.ladder.estimate.value)):
            return False
        if step_sequences.divided(one.ladder, one.claimed):
            return False
        return step_sequences.decades(one.ladder, one.claimed, one.slack, CLEAR) >= step_sequences.DECADES

    def imprecise(self, name: str, one: Finding, evidence: Evidence) -> Outcome:
        """Right to many digits, but not to all."""
        relative = one.gap / max(abs(one.ladder.estimate.value), 1e-300)
        evidence |= self.worst(name, [one])
        digits = max(1, math.floor(-math.log10(max(relative, 1e-16))))
        told = f"{self.label(name, one)} agrees to {digits} digits only: rounding, or a constant with few digits"
        return Outcome("IMPRECISE", told, evidence)

    # --- kinks -----------------------------------------------------------------------------------------------

    def rough(self, name: str, part: slice, found: Sequence[Finding]) -> Outcome | None:
        """KINK, BOUNDARY or DISCONTINUOUS where f is not smooth at the point by this argument."""
        survey = self.survey
        suspects = [one for one in found if suspicious(one.ladder) or self.unseen(one)]
        if survey.x.size == 1:  # a direction is the entry once more
            suspects = [one for one in suspects if one.entry is not None]
        entries = list(dict.fromkeys(one.entry for one in suspects if one.entry is not None))[:LOOKED]
        joint = [one for one in suspects if one.entry is None]
        if not suspects or (joint and not entries and part.stop - part.start > LOOKED):
            return None
        looked = entries or list(range(part.start, part.stop))
        row = suspects[0].row
        seen = kinks.behaviour(self.row(row), survey.x, looked, joint=not entries, seed=survey.seed)
        if seen.verdict == "smooth":
            return None
        if seen.verdict != "BOUNDARY" and not any(suspicious(one.ladder) for one in suspects):
            return None  # a kink beside the point
        whole = None not in (*seen.left, *seen.right)
        if seen.verdict == "BOUNDARY" and whole and not any(vertical(one.ladder) for one in suspects):
            return None  # jumps by rounding
        if seen.verdict == "KINK" and not entries_bend(seen, suspects):
            return None  # the teeth of rounding
        noisy = float(survey.noise[row])
        slopes = [side for side in (*seen.left, *seen.right) if side is not None and math.isfinite(side)]
        if noisy and not (seen.verdict == "KINK" and max(slopes) - min(slopes) > 0.01 * max(map(abs, slopes))):
            return None
        returned = [float(survey.claims[row, i]) for i in looked]
        evidence: Evidence = {"left": seen.left, "right": seen.right, "returned": returned, "bound": seen.bound}
        where = [position(i - part.start, survey.box.shape_of(name)) for i in looked]
        evidence["entries"] = [f"{name}{one}" for one in where]
        for left, right, label in zip(seen.left, seen.right, evidence["entries"], strict=True):
            if left != right or seen.verdict == "BOUNDARY":
                told = f"by {label}: slope {slope(left)} from below, {slope(right)} from above"
                break
        else:
            told = "the partials exist, but there is no derivative in other directions"
        if seen.verdict == "DISCONTINUOUS":
            evidence |= {"value": seen.value, "limits": list(seen.limits)}
            below, above = (slope(limit) for limit in seen.limits)
            told = f"the value jumps here: {below} from below, {seen.value:.6g} at the point, {above} from above"
            return Outcome("DISCONTINUOUS", told, evidence)
        if seen.verdict == "BOUNDARY":
            return Outcome("BOUNDARY", f"{told}: no finite derivative", evidence)
        inside = evidence["inside"] = kinks.inside(returned, seen)
        told = f"f has a kink here {told}" if "slope" in told else f"f has a kink here: {told}"
        if not inside:
            told += f"; the gradient {returned[0]:.6g} is not between them"
        return Outcome("KINK", told, evidence, inside=inside)

    def unseen(self, one: Finding) -> bool:
        """Whether a finding says nothing for a reason that may be a kink."""
        if one.state == "not finite":
            return one.ladder.estimate.reason is not None
        return one.state == "silent" and not (self.survey.noise[one.row] > 0 and one.ladder.errors.size)

    def row(self, k: int) -> Callable[[Floats], Floats]:
        """One combination of the outputs, as a function of many points."""
        survey = self.survey

        def values(points: Floats) -> Floats:
            with np.errstate(all="ignore"):
                return np.array([survey.weights[k] @ survey.box.value(point) for point in points])

        return values

    # --- what a verdict shows ---------------------------------------------------------------------------------

    def label(self, name: str, one: Finding) -> str:
        """What a finding is about: `x[2]`, `output 1 by x[2]`, `x along a direction`."""
        part = self.survey.box.slices[name]
        by = f"{name} along a direction"
        if one.entry is not None:
            by = f"{name}{position(one.entry - part.start, self.survey.box.shape_of(name))}"
        row = self.row_names[one.row]
        return f"{row} by {by}" if row else by

    def gap_told(self, one: Finding, where: str = "") -> str:
        """Both numbers in one sentence."""
        value, bound = one.ladder.estimate[:2]
        role = self.survey.box.role
        own = f"{role} gives {one.claimed!r}{f' {where}' if where else ''}"
        return f"{own}, differences give {value!r} +- {bound:.1g}"

    def covered(self, name: str, own: Sequence[Finding]) -> str:
        """How much of the array was looked at, and what was not; nothing where each entry had a ladder of its own."""
        survey = self.survey
        size = int(np.prod(survey.box.shape_of(name), dtype=np.int64))
        seen = {one.entry for one in own}
        groups = self.agreeing_groups(name)
        together = seen.union(*(group.entries.tolist() for group in groups))
        if len(seen) == size and not survey.unfinished:
            return ""
        told = f"all {size:,} entries" if len(together) == size else f"{len(together):,} of {size:,} entries"
        told += f" in {counted(len(groups), 'group')}" if groups else ""
        told += f" and {counted(len(survey.joint) // len(self.row_names), 'random direction')}"
        left = size - len(together)
        return told + (f"; not looked at by themselves: {left:,}" if left else "")

    def agreeing_groups(self, name: str) -> list[Group]:
        """The groups of entries of a large array in which something was seen that agrees."""
        groups = self.survey.groups.get(name, ())
        return [group for group in groups if any(one.state == "agrees" for one in group.findings)]

    def bound(self, name: str, own: Sequence[Finding], spoken: Sequence[Finding], largest: float) -> tuple[float, str]:
        """To how much the claims were confirmed, and in words; entries of a large array beside the largest of them."""
        groups = self.agreeing_groups(name)
        if not groups or not largest > 0:
            found = max(self.relative(one, largest) for one in spoken)
            return found, f"{found:.1g}" + ("" if largest > 0 else " (absolute: the gradient is zero)")
        alone = [
            one.ladder.estimate.bound * self.survey.scale_of(one) / largest for one in own if one.state == "agrees"
        ]
        found = max([*alone, *(group.bound for group in groups)])
        smallest = max(group.own for group in groups)
        told = f", the smallest to {smallest:.1g} of itself" if smallest < 1 else ""
        return found, f"{found:.1g} of the largest entry{told}"

    def relative(self, one: Finding, largest: float) -> float:
        """The bound of a finding beside its slope, or beside the largest slope where it is itself nothing."""
        own = abs(one.claimed) * self.survey.scale_of(one)
        bound = one.ladder.estimate.bound * self.survey.scale_of(one)
        if not largest > 0:
            return bound
        return bound / (own if own > 1e-6 * largest else largest)

    def evidence(self, name: str, own: Sequence[Finding]) -> Evidence:
        """What every verdict carries: Taylor's rates, noise, coverage."""
        survey = self.survey
        rates = [step_sequences.taylor_rate(one.ladder, one.claimed) for one in survey.joint if one.row == 0]
        found: Evidence = {"basis": "numerical"}
        if any(rate is not None for rate in rates):
            found["taylor_rates"] = [None if rate is None else round(rate, 2) for rate in rates]
        noise = [n / abs(h) if h else n for n, h in zip(survey.noise, survey.here, strict=True) if n]
        if noise:
            found["noise"] = float(f"{max(noise):.1g}")
        covered = self.covered(name, own)
        if covered:
            found["covered"] = covered
        if survey.box.size > 1:
            pairs = [
                one.gap / max(abs(one.claimed), 1e-300) for one in survey.joint if one.state in ("agrees", "differs")
            ]
            if pairs:
                found["dot_product"] = float(f"{max(pairs):.1g}")
        return found

    def witnesses(self, name: str, own: Sequence[Finding]) -> Evidence:
        """The claim and the differences at the entry where they are farthest apart."""
        seen = [one for one in own if one.state in ("agrees", "near", "differs")]
        if not seen:
            return {}
        one = max(seen, key=lambda one: one.ratio)
        entry = self.label(name, one) if len(seen) > 1 else ""
        return {"witnesses": black_box(self.survey.box.role, one.claimed, one.ladder.estimate, entry)}

    def worst(self, name: str, found: Sequence[Finding]) -> Evidence:
        """The entries farthest from their claims, with both numbers and the bound; and how many are wrong."""
        part = self.survey.box.slices[name]
        seen = {(one.row, one.entry): one for one in found if part.start <= _entry(one) < part.stop}
        single = {key: one for key, one in seen.items() if not self.row_names[one.row].startswith("a ")}
        seen = single or seen  # an output by itself says more than a combination of all of them
        wrong = [one for one in seen.values() if one.state in ("near", "differs", "not finite")]
        rows = []
        for one in sorted(wrong, key=lambda one: -one.ratio)[:SHOWN]:
            value, bound = one.ladder.estimate[0], float(f"{one.ladder.estimate[1]:.1g}")
            rows.append({"entry": self.label(name, one), "claimed": one.claimed, "differences": value, "bound": bound})
        if not rows:
            return {}
        what = "slopes" if len(self.row_names) > 1 else "entries"
        return {"worst": rows, "wrong": f"{len(wrong)} of {len(seen)} {what} that were looked at"}

    def readings(self, name: str) -> list[Reading]:
        """How the gradient of a scalar, or a Jacobian, may be wrong; needs every entry of the argument."""
        known = self.known(name)
        if known is None or not sharp(known) or known.fits(known.claimed):
            return []
        box = self.survey.box
        sizes = [int(np.prod(box.shape_of(other), dtype=np.int64)) for other in box.slices]
        sizes += [n for other in box.slices for n in box.shape_of(other)]
        arrays = {one.name: one.array for one in box.arguments if one.array is not None}
        arrays |= {one.name: one.given for one in box.arguments if getattr(one.given, "dtype", None) == np.float64}
        arrays["f"] = np.asarray(box.value(box.x))
        others = {other: self.known(other) for other in box.slices if other != name} if box.size == 1 else {}
        twins = {key: [one.right] for key, one in others.items() if one is not None and sharp(one)}
        what = "Jacobian" if box.size > 1 else "gradient"
        found = readings([known], sizes, twins, what, "arguments: the claim is the gradient with respect to", LARGEST)
        if known.right.size < FEW:
            again = [one.factor for one in readings(self.elsewhere(name), sizes, largest=LARGEST)]
            found = [one for one in found if one.factor in (None, "-1", *again)]
        found = found or _missing_factor(known, arrays, box.size > 1) or of_entries([known], what)
        return found or alike([known])

    def known(self, name: str) -> Comparison | None:
        """Slopes, bounds and claim of an argument, where every entry was seen; of several outputs as their Jacobian."""
        survey = self.survey
        part = survey.box.slices[name]
        rows = [k for k, row in enumerate(self.row_names) if not row.startswith("a ")]
        if len(rows) < survey.box.size:
            return None
        seen = {(one.row, one.entry): one for one in survey.entries if part.start <= _entry(one) < part.stop}
        cells = [(k, i) for k in rows for i in range(part.start, part.stop)]
        if any(cell not in seen or seen[cell].state in ("silent", "still") for cell in cells):
            return None
        shape = survey.box.shape_of(name)
        if len(rows) > 1:
            shape = (len(rows), part.stop - part.start)
        order = [seen[cell].ladder.estimate for cell in cells]
        slopes = np.array([one.value for one in order]).reshape(shape)
        bounds = np.array([one.bound for one in order]).reshape(shape)
        return seen_by_differences(slopes, bounds, survey.claims[rows][:, part].reshape(shape))

    def elsewhere(self, name: str) -> list[Comparison]:
        """The slopes along one direction each at points beside the given one, where one argument has moved."""
        found = []
        for survey in self.nearby(name):
            for one in survey.joint:
                if one.state not in ("silent", "still", "not finite"):
                    value, bound = one.ladder.estimate[:2]
                    found.append(seen_by_differences(*map(np.asarray, (value, bound, one.claimed))))
        return found


def entries_bend(seen: kinks.Behaviour, suspects: Sequence[Finding]) -> bool:
    """Whether the ladders of the suspects bend as far as the slopes on both sides say; directions count as they are."""
    pairs = [pair for pair in zip(seen.left, seen.right, strict=True) if None not in pair and pair[0] != pair[1]]
    own = [one for one in suspects if one.entry is not None]
    if not pairs or not own:
        return any(suspicious(one.ladder) for one in suspects)
    return any(bent(one.ladder, left or 0.0, right or 0.0) for one in own for left, right in pairs)


def slope(side: float | None) -> str:
    """A slope in words."""
    return "undefined" if side is None else f"{side + 0.0:.6g}"


def ladder_shown(one: Finding, of: str = "") -> Evidence:
    """A step sequence: the steps, the slope from each, the best estimate of it, and the claim."""
    value, bound = one.ladder.estimate[:2]
    steps, slopes = one.ladder.steps.tolist(), one.ladder.slopes.tolist()
    return StepSequence(steps, slopes, of, claimed=one.claimed, estimate=value, bound=bound).evidence()


def _entry(one: Finding) -> int:
    return -1 if one.entry is None else one.entry


def seen_by_differences(slopes: Floats, bounds: Floats, claimed: Floats) -> Comparison:
    """What differences saw of a gradient beside the claim."""
    return Comparison(slopes, claimed, 4.0 * bounds + 1e-9 * np.abs(slopes))


def sharp(one: Comparison) -> bool:
    """Whether the numbers are sharp enough to part one pattern from another."""
    largest = float(np.abs(one.right).max(initial=0.0))
    return largest > 0 and bool(np.isfinite(one.claimed).all()) and float(one.slack.max()) <= 4.0 * SHARP * largest


def _missing_factor(known: Comparison, arrays: Mapping[str, Floats], jacobian: bool) -> list[Reading]:
    """An array that the claim, or its wrong columns of a Jacobian, has to be multiplied with; three entries or more."""
    claimed = known.claimed
    wrong = known.misses(claimed)
    where = ""
    if jacobian:
        columns = np.flatnonzero(wrong.any(axis=0))
        if columns.size < claimed.shape[1]:
            where = f" in the column{'s' * (columns.size > 1)} {', '.join(map(str, columns))}"
        wrong = np.broadcast_to(wrong.any(axis=0), claimed.shape)
    shapes = [(claimed.shape[0], 1), (1, claimed.shape[1])] if jacobian else [claimed.shape]
    for name, array in {**arrays, **({} if jacobian else {"the claim": claimed})}.items():
        for shape in shapes:
            if array.size != np.prod(shape):
                continue
            for text, factor in _factors(name, array.reshape(shape)):
                numbers = np.broadcast_to(factor, claimed.shape)[wrong]
                if np.unique(numbers).size >= FEW and known.fits(np.where(wrong, factor * claimed, claimed)):
                    told = f"consistent with a missing factor: {text} times the claim is right{where}"
                    return [Reading("missing factor", told)]
    return []


def _factors(name: str, array: Floats) -> Iterator[tuple[str, Floats]]:
    """What is forgotten or written twice: an array, its square, its complements, their inverses, of either sign."""
    with np.errstate(all="ignore"):
        powers = {name: array, f"{name}**2": array**2, f"(1 - {name})": 1 - array, f"(1 - {name}**2)": 1 - array**2}
        for text, factor in powers.items():
            yield text, factor
            yield f"-{text}", -factor
            yield f"1/{text}", 1 / factor
            yield f"-1/{text}", -1 / factor
