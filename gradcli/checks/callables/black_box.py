"""Judges a function by differences of its values: a verdict for each argument, kinks, and how a claim is wrong.

"DISAGREES (numerical)" needs steps over two decades and a second direction, and a function that gives the same values
when called twice; anything less is INCONCLUSIVE.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from gradcli.checks.decide import sample_points
from gradcli.checks.decide.case import Outcome
from gradcli.checks.decide.nonsmooth import rough_outcome
from gradcli.checks.decide.numerical import ByDifferences, steps_shown
from gradcli.checks.decide.refutation import disagrees
from gradcli.checks.diagnosis.ratios import Comparison, Reading, of_entries, readings
from gradcli.checks.differences import both_sides, step_sequences
from gradcli.checks.differences.step_sequences import STILL, bent, noise_of, seeded_directions, suspicious, vertical
from gradcli.checks.differences.survey import COMBINED, Survey, rows_of
from gradcli.checks.witnesses import of_black_box
from gradcli.frameworks.box import OWN, VJP
from gradcli.frameworks.call_arguments import COMPLEX, PARTS, is_complex
from gradcli.frameworks.failures import Failed, OutOfTime

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from gradcli.checks.decide.case import Evidence
    from gradcli.checks.differences.step_sequences import Floats
    from gradcli.checks.differences.survey import Finding
    from gradcli.frameworks.box import Box

DIGITS = {"float64": 1e-8, "float32": 1e-5}  # a smaller relative gap is a matter of digits: IMPRECISE
FORETOLD = 0.2  # of the gap: how well a second direction has to fit the entries
SLIGHT = 3e-7  # smaller relative gaps: f or the gradient may be the approximation, and values do not show which
ALIKE = 1e-4  # a smaller relative gap may come from a solver or an iteration in f
LOOKED = 6  # entries whose sides are looked at
LARGEST = 64  # numerators and denominators of a constant factor
FEW = 3  # numbers at one point: they are in some simple ratio by chance
SHARP = 1e-5  # the largest slope has to be known at least so well
APART = 0.04  # how far the points near the given one lie, relatively
REPEATS = 6
LINEAR = 1e-9
SINGLE = "float32"


def examined(box: Box, value: Floats, seed: int, samples: int, rtol: float) -> tuple[dict[str, Outcome], list[str]]:
    """The verdict for each argument, and notes on the function; `value` is what it returned at first."""
    notes = list(precision(box))
    try:
        found = unfit(box, value) or judged(box, value, seed, samples, rtol, notes)
    except OutOfTime:
        told = f"time ran out ({box.seconds:g} s) before the first comparison: allow more with --timeout"
        found = for_all(box, "INCONCLUSIVE", told)
    except Failed as problem:
        found = for_all(box, "INCONCLUSIVE", f"{problem.reason}, although the first call succeeded")
    return found, notes


def judged(box: Box, value: Floats, seed: int, samples: int, rtol: float, notes: list[str]) -> dict[str, Outcome]:
    """The verdicts by a survey; adds to the notes. Raises Failed and OutOfTime."""
    scatter = scatter_of(box, value)
    weights, row_names = rows_of(box.size, seed)
    claims = claims_of(box, weights)
    fickle = unsteady(box, weights, claims)
    if fickle is not None:
        return for_all(box, "INCONCLUSIVE", fickle)
    if box.kind == VJP or (box.kind == OWN and box.size > 1):
        notes += linearity(box, weights, claims)
    d = seeded_directions(box.x, 1, seed)[0]
    noise = np.maximum(noise_of(box.values, box.x, d, value), scatter)
    survey = Survey(box.values, box.x, box.slices, weights, claims, np.abs(weights) @ noise, seed, rtol)
    survey.look()
    steady = not scatter.any() and np.array_equal(value, box.again())
    if not steady:
        notes.append("f gives different values at the same point: is it random, or does it keep state?")

    def verdict(name: str) -> Outcome:
        return BlackBox(
            box, survey, name, lambda: list(beside(box, survey, name, samples)), row_names, steady, digits(box)
        ).verdict()

    return {name: verdict(name) for name in box.names}


def unfit(box: Box, value: Floats) -> dict[str, Outcome]:
    """UNDEFINED where f or the point is not finite; nothing where both are."""
    if not np.isfinite(value).all():
        return for_all(box, "UNDEFINED", f"f is {float(value[~np.isfinite(value)][0])} at this point")
    if not np.isfinite(box.x).all():
        return for_all(box, "UNDEFINED", "the point holds a value that is not a finite number")
    return {}


def for_all(box: Box, verdict: str, message: str) -> dict[str, Outcome]:
    """One verdict for all arguments."""
    return {name: Outcome(verdict, message, {}) for name in box.names}


def not_judged(box: Box) -> Iterator[str]:
    """What is said of arguments that are not judged."""
    for name in box.skipped:
        yield f"{box.role} gives nothing for {name}: not checked"
    for one in box.arguments:
        if is_complex(one.given):
            yield f"{one.name} is not checked: {COMPLEX}; {PARTS}"


def precision(box: Box) -> Iterator[str]:
    """What is said of arguments that are not judged, and of float32."""
    yield from not_judged(box)
    if box.dtype == SINGLE:
        yield "f returns float32: errors below 6e-08 of its value cannot be detected"
    if box.claimed == SINGLE:
        yield f"{box.role} returns float32, which has 7 digits"


def digits(box: Box) -> str:
    """The kind of the numbers that the derivative is computed with, as far as one can tell."""
    given = [one.array.dtype.name for one in box.arguments if one.array is not None]
    return SINGLE if box.float32 or SINGLE in (*given, box.claimed) else "float64"


def scatter_of(box: Box, value: Floats) -> Floats:
    """How far the values at the point itself lie apart; 0 for a function that repeats its values."""
    again = box.again()
    if np.array_equal(value, again):
        return np.zeros(box.size)
    values = np.array([value, again, *(box.again() for _ in range(REPEATS))])
    return np.asarray(np.ptp(values, axis=0))


def claims_of(box: Box, weights: Floats) -> Floats:
    """The claimed gradients of the combinations at the point, a row each."""
    return np.array([box.pullback(box.x, row, at_the_point=True) for row in weights])


def unsteady(box: Box, weights: Floats, claims: Floats) -> str | None:
    """What is said of a derivative that gives other values when it is called again."""
    again = claims_of(box, weights)
    if np.array_equal(claims, again, equal_nan=True):
        return None
    with np.errstate(all="ignore"):
        gap = float(np.nanmax(np.abs(claims - again)) / np.nanmax(np.abs(claims)))
    if gap <= LINEAR:
        return None
    return f"{box.role} gives different gradients at the same point, by {gap:.1g}: is it random, or does it keep state?"


def linearity(box: Box, weights: Floats, claims: Floats) -> Iterator[str]:
    """What is said of a pullback that is not linear in its cotangent."""
    expected = 2.0 * claims[0] - 3.0 * claims[-1]
    scale = np.abs(claims[0]).max() + np.abs(claims[-1]).max()
    gap = np.abs(box.pullback(box.x, 2.0 * weights[0] - 3.0 * weights[-1]) - expected).max()
    if np.isfinite(gap) and gap > LINEAR * scale:
        yield f"{box.role} is not linear in its cotangent: off by {gap / scale:.1g} of its size"


def beside(box: Box, survey: Survey, name: str, samples: int) -> Iterator[Survey]:
    """Surveys of points near the given one, where one argument has moved and kept its structure.

    Equal entries stay equal and zeros stay zero: a symmetric matrix stays symmetric, a mask a mask. Then, of a
    symmetric or diagonal matrix, points where it is none.
    """
    part = box.slices[name]
    generator = np.random.default_rng(survey.seed + 7)
    sizes, places = np.unique(np.abs(box.x[part]), return_inverse=True)
    values: list[tuple[str, Floats]] = []
    for _ in range(samples if sizes.any() else 0):
        factors = 1.0 + APART * generator.choice([-1.0, 1.0], sizes.size) * generator.uniform(0.3, 1.0, sizes.size)
        values.append(("", box.x[part] * factors[places]))
    if samples and sizes.size > 1:
        values += sample_points.off_structure(box.x[part].reshape(box.shape_of(name)), None, survey.seed)
    for lacks, moved in values:
        x = box.x.copy()
        x[part] = moved.reshape(-1)
        try:
            value = box.value(x)
            if not np.isfinite(value).all():
                continue
            claims = np.array([box.pullback(x, row) for row in survey.weights])
            other = Survey(box.values, x, box.slices, survey.weights, claims, survey.noise, survey.seed, survey.rtol)
            d = np.zeros(x.size)
            d[part] = seeded_directions(x, 1, survey.seed)[0][part]
            other.lacks = lacks
            other.look_along([d])
        except Failed:
            continue
        yield other


# --- one argument -----------------------------------------------------------------------------------------------------


class BlackBox(ByDifferences):
    """The verdict on the gradient with respect to one argument of a black box."""

    def __init__(
        self,
        box: Box,
        survey: Survey,
        name: str,
        nearby: Callable[[], list[Survey]],
        row_names: Sequence[str],
        steady: bool,
        digits: str,
    ) -> None:
        self.box = box
        self.role = box.role
        self.nearby = nearby
        self.row_names = row_names
        self.refutes = steady  # f gives the same values when it is called again
        self.precise = DIGITS.get(digits, DIGITS["float64"])
        super().__init__(survey, name, box.shape_of(name))
        self.evidence |= self.witnesses()

    def verdict(self) -> Outcome:
        """The verdict; INCONCLUSIVE where there was no time to finish: how far it came depends on the machine."""
        try:
            if self.survey.unfinished:
                raise OutOfTime
            return super().verdict()
        except OutOfTime:
            told = f"time ran out ({self.box.seconds:g} s) before a verdict: allow more with --timeout"
            return Outcome("INCONCLUSIVE", told, {})

    def beside(self) -> list[Survey]:
        """Surveys of points near the given one, along one direction each."""
        return self.nearby()

    # --- the bad end -----------------------------------------------------------------------------------------

    def contradicted(self, wrong: Sequence[Finding]) -> Outcome:
        """Differences contradict the claim: how surely, and how it is wrong."""
        plain = [w for w in wrong if w.entry is not None and w.state == "differs"]
        single = [w for w in plain if self.row_names[w.row] != COMBINED]
        one = next(iter((*single, *plain, *wrong)))
        reason = one.seen.estimate.reason
        if one.state == "not finite" and reason not in (None, STILL):
            told = f"{self.label(one)} is {one.claimed}, and finite differences cannot decide: {reason}"
            return Outcome("INCONCLUSIVE", told, {})
        if all(w.gap <= self.precise * max(abs(w.claimed), abs(w.seen.estimate.value)) < math.inf for w in wrong):
            return self.imprecise(one)
        evidence = {**self.worst([*wrong, *self.own]), "ladder": steps_shown(one, self.label(one))}
        told = f"{self.label(one)}: {self.gap_text(one)}"
        relative = one.gap / max(abs(one.seen.estimate.value), 1e-300)
        if relative < ALIKE:
            told += f" (a relative {relative:.0g}: if f is computed approximately, rtol= allows for it)"
        doubt = self.doubt(one, evidence)
        if doubt:
            return Outcome("INCONCLUSIVE", f"{told}; {doubt}", evidence)
        if relative < SLIGHT:
            return Outcome("INCONCLUSIVE", told, evidence)
        return disagrees(f"(numerical) {told}", evidence, self.readings())

    def doubt(self, one: Finding, evidence: Evidence) -> str:
        """Why a contradiction is not a refutation; nothing where it is one."""
        if not self.refutes:
            return "but f returns different values when called again"
        if one.state == "not finite":
            return ""
        seen = step_sequences.decades(one.seen, one.claimed, one.slack)
        evidence["decades"] = round(math.log10(seen), 1) if seen else 0.0
        if one.gap <= step_sequences.doubt(one.seen) or step_sequences.divided(one.seen, one.claimed):
            return "but larger steps see another slope: f is not smooth on the scale of the small ones"
        if seen < step_sequences.DECADES:
            return "but only steps within one decade tell them apart, which rounding or noise may do"
        try:
            return "" if self.confirmed(one) else "but not along a second direction"
        except OutOfTime:
            return "time ran out before a second direction was tried"

    def confirmed(self, one: Finding) -> bool:
        """Whether a second direction, with other steps, contradicts the claim too, and fits the entries' slopes."""
        survey = self.survey
        d = survey.second(one)
        other = survey.along([d])[one.row]
        if other.state not in ("near", "differs") or other.ratio <= step_sequences.CLEAR:
            return False
        slopes = {entry.entry: entry.seen.estimate for entry in survey.entries if entry.row == one.row}
        if len(slopes) < survey.x.size or any(seen.reason is not None for seen in slopes.values()):
            return True
        foretold = sum(slopes[i].value * float(d[i]) for i in range(survey.x.size))
        return abs(other.seen.estimate.value - foretold) <= FORETOLD * other.gap

    def sure(self, one: Finding) -> bool:
        """Whether a finding contradicts the claim for certain, over two decades of steps and by more than digits."""
        digits = self.precise * max(abs(one.claimed), abs(one.seen.estimate.value))
        decades = step_sequences.decades(one.seen, one.claimed, one.slack)
        return one.gap > digits and decades >= step_sequences.DECADES and super().sure(one)

    def nearly(self, one: Finding) -> Outcome:
        """IMPRECISE where the gap is a matter of digits."""
        return self.imprecise(one) if one.gap <= self.precise * abs(one.claimed) else super().nearly(one)

    def imprecise(self, one: Finding) -> Outcome:
        """Right to many digits, but not to all."""
        relative = one.gap / max(abs(one.seen.estimate.value), 1e-300)
        digits = max(1, math.floor(-math.log10(max(relative, 1e-16))))
        told = f"{self.label(one)} agrees to {digits} digits only: rounding, or a constant with too few digits"
        return Outcome("IMPRECISE", told, self.worst([one]))

    # --- kinks -----------------------------------------------------------------------------------------------

    def not_smooth(self) -> Outcome | None:
        """KINK, BOUNDARY or DISCONTINUOUS where f is not smooth at the point by this argument."""
        survey, part = self.survey, self.part
        suspects = [one for one in self.found if suspicious(one.seen) or self.invisible(one)]
        if survey.x.size == 1:  # a direction is the entry once more
            suspects = [one for one in suspects if one.entry is not None]
        entries = list(dict.fromkeys(one.entry for one in suspects if one.entry is not None))[:LOOKED]
        joint = [one for one in suspects if one.entry is None]
        if not suspects or (joint and not entries and part.stop - part.start > LOOKED):
            return None
        looked = entries or list(range(part.start, part.stop))
        row = suspects[0].row
        seen = both_sides.behaviour(self.output(row), survey.x, looked, joint=not entries, seed=survey.seed)
        if seen.verdict == "smooth":
            return None
        if seen.verdict != "BOUNDARY" and not any(suspicious(one.seen) for one in suspects):
            return None  # a kink near the point
        whole = None not in (*seen.left, *seen.right)
        if seen.verdict == "BOUNDARY" and whole and not any(vertical(one.seen) for one in suspects):
            return None  # jumps by rounding
        if seen.verdict == "KINK" and not entries_bend(seen, suspects):
            return None  # the teeth of rounding
        slopes = [side for side in (*seen.left, *seen.right) if side is not None and math.isfinite(side)]
        if survey.noise[row] and not (
            seen.verdict == "KINK" and max(slopes) - min(slopes) > 0.01 * max(map(abs, slopes))
        ):
            return None
        returned = [float(survey.claims[row, i]) for i in looked]
        labels = [self.place(i) for i in looked]
        apart = (label for label, *both in zip(labels, seen.left, seen.right, strict=True) if both[0] != both[1])
        what = "f has a kink here" if seen.verdict == "KINK" else "f has no derivative here"
        if seen.verdict == "DISCONTINUOUS":
            below, above = ("undefined" if limit is None else f"{limit + 0.0:.6g}" for limit in seen.limits)
            what = f"{below} from below, {seen.value:.6g} at the point, {above} from above"
        elif self.shape and (label := next(apart, None)):
            what += f" with respect to {label}"
        return rough_outcome(seen, returned, what, {"bound": seen.bound, "entries": labels})

    def invisible(self, one: Finding) -> bool:
        """Whether a finding says nothing for a reason that may be a kink."""
        if one.state == "not finite":
            return one.seen.estimate.reason is not None
        return one.state == "silent" and not (self.survey.noise[one.row] > 0 and one.seen.errors.size)

    def output(self, row: int) -> Callable[[Floats], Floats]:
        """One combination of the outputs, as a function of many points."""
        return lambda points: self.survey.f(points) @ self.survey.weights[row]

    # --- what a verdict shows ---------------------------------------------------------------------------------

    def basis(self) -> Evidence:
        """What every verdict carries; of several outputs how far pulled-back cotangents are off, too."""
        found = super().basis()
        if self.box.size > 1:
            seen = [one for one in self.survey.joint if one.state in ("agrees", "differs")]
            if seen:
                found["dot_product"] = float(f"{max(one.gap / max(abs(one.claimed), 1e-300) for one in seen):.1g}")
        return found

    def witnesses(self) -> Evidence:
        """The claim and the differences at the entry where they are farthest apart."""
        seen = [one for one in self.own if one.state in ("agrees", "near", "differs")]
        if not seen:
            return {}
        one = max(seen, key=lambda one: one.ratio)
        return {"witnesses": of_black_box(self.role, one, self.label(one) if len(seen) > 1 else "")}

    def readings(self) -> list[Reading]:
        """How the gradient of a scalar, or a Jacobian, may be wrong; needs every entry of the argument."""
        known = self.known(self.name)
        if known is None or not sharp(known) or known.fits(known.claimed):
            return []
        box = self.box
        shapes = [box.shape_of(other) for other in box.slices]
        sizes = [*map(math.prod, shapes), *(n for shape in shapes for n in shape)]
        arrays = {one.name: one.array for one in box.arguments if one.array is not None}
        arrays |= {one.name: one.given for one in box.arguments if getattr(one.given, "dtype", None) == np.float64}
        arrays["f"] = np.asarray(box.value(box.x))
        others = {other: self.known(other) for other in box.slices if other != self.name} if box.size == 1 else {}
        twins = {key: [one.right] for key, one in others.items() if one is not None and sharp(one)}
        what = "Jacobian" if box.size > 1 else "gradient"
        found = readings([known], sizes, twins, what, "arguments: the claim is the gradient with respect to", LARGEST)
        if known.right.size < FEW:
            again = [one.factor for one in readings(self.elsewhere(), sizes, largest=LARGEST)]
            found = [one for one in found if one.factor in (None, "-1", *again)]
        return found or _missing_factor(known, arrays, box.size > 1) or of_entries([known], what)

    def known(self, name: str) -> Comparison | None:
        """Slopes, bounds and claim of an argument, where every entry was seen; of several outputs as their Jacobian."""
        survey, part = self.survey, self.survey.slices[name]
        rows = [k for k, row in enumerate(self.row_names) if row != COMBINED]
        if len(rows) < self.box.size:
            return None
        seen = {(one.row, one.entry): one for one in survey.entries}
        cells = [(k, i) for k in rows for i in range(part.start, part.stop)]
        if any(cell not in seen or seen[cell].state in ("silent", "still") for cell in cells):
            return None
        shape = self.box.shape_of(name)
        if len(rows) > 1:
            shape = (len(rows), part.stop - part.start)
        order = [seen[cell].seen.estimate for cell in cells]
        slopes = np.array([one.value for one in order]).reshape(shape)
        bounds = np.array([one.bound for one in order]).reshape(shape)
        return seen_by_differences(slopes, bounds, survey.claims[rows][:, part].reshape(shape))

    def elsewhere(self) -> list[Comparison]:
        """The slopes along one direction each at points near the given one, where this argument has moved."""
        found = []
        for survey in self.beside():
            for one in survey.joint:
                if one.state not in ("silent", "still", "not finite"):
                    value, bound, _ = one.seen.estimate
                    found.append(seen_by_differences(*map(np.asarray, (value, bound, one.claimed))))
        return found


def entries_bend(seen: both_sides.Behaviour, suspects: Sequence[Finding]) -> bool:
    """Whether the steps of the suspects bend as far as the slopes on both sides say; directions count as they are."""
    pairs = [pair for pair in zip(seen.left, seen.right, strict=True) if None not in pair and pair[0] != pair[1]]
    own = [one for one in suspects if one.entry is not None]
    if not pairs or not own:
        return any(suspicious(one.seen) for one in suspects)
    return any(bent(one.seen, left or 0.0, right or 0.0) for one in own for left, right in pairs)


def seen_by_differences(slopes: Floats, bounds: Floats, claimed: Floats) -> Comparison:
    """What differences saw of a gradient beside the claim."""
    return Comparison(slopes, claimed, 4.0 * bounds + 1e-9 * np.abs(slopes))


def sharp(one: Comparison) -> bool:
    """Whether the numbers are precise enough to distinguish patterns."""
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
