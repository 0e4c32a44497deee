"""What a verdict on a black box shows: slopes, bounds, step sequences, and patterns in a wrong gradient."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.checks.callables import step_sequences
from gradcli.checks.diagnosis.ratios import Reading
from gradcli.checks.formatting import counted, position
from gradcli.checks.witnesses import black_box
from gradcli.results.curves import StepSequence

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from gradcli.checks.callables.survey import Finding, Group, Survey

    Floats = NDArray[np.floating[Any]]

MOST = 3  # readings
LARGEST = 64  # numerators and denominators of a constant factor, beside the sizes of the arrays
FEW = 3  # numbers at one point: they are in some simple ratio by chance
NAMED = 6  # wrong entries that are named one by one
SHARP = 1e-5  # a factor has to be known at least so well


class Known:
    """What is known of the gradient by one argument: slopes, their bounds, and the claim, in the argument's shape."""

    def __init__(self, slopes: Floats, bounds: Floats, claimed: Floats) -> None:
        self.slopes = slopes
        self.bounds = bounds
        self.claimed = claimed

    def fits(self, other: Floats) -> bool:
        """Whether other numbers of the same shape are what differences saw."""
        return other.shape == self.slopes.shape and not bool(self.misses(other).any())

    def misses(self, other: Floats) -> NDArray[np.bool_]:
        """Which of other numbers of the same shape are not what differences saw."""
        return ~(np.abs(other - self.slopes) <= self.slack)

    @property
    def slack(self) -> Floats:
        """How far a number may be from its slope."""
        return 4.0 * self.bounds + 1e-9 * np.abs(self.slopes)

    @property
    def telling(self) -> bool:
        """Whether the numbers are sharp enough to tell one pattern from another."""
        largest = float(np.abs(self.slopes).max(initial=0.0))
        return largest > 0 and bool(np.isfinite(self.claimed).all()) and float(self.bounds.max()) <= SHARP * largest


def readings(
    known: Known,
    sizes: Sequence[int] = (),
    others: Mapping[str, Known] | None = None,
    elsewhere: Sequence[Known] = (),
    jacobian: bool = False,
    arrays: Mapping[str, Floats] | None = None,
) -> list[Reading]:
    """At most three readings of a wrong gradient; `others` are the gradients by arguments of the same shape.

    `elsewhere` holds slopes at other points: few numbers at one point are in many ratios, and a factor has to be the
    same everywhere. A `jacobian` has a row for each output. `arrays` may have been forgotten as factors: f's arguments,
    and its value.
    """
    claimed = known.claimed
    if not known.telling or known.fits(claimed):
        return []
    if not claimed.any():
        return [Reading("zero", "the claim is zero, the derivative is not")]
    found: list[Reading] = []
    if known.fits(-claimed):
        found.append(Reading("wrong sign", "consistent with a wrong sign: the right gradient is minus the claim"))
    factor = _factor(known, sizes)
    if factor is not None and known.slopes.size < FEW and factor != -1:
        factor = factor if elsewhere and all(one.fits(float(factor) * one.claimed) for one in elsewhere) else None
    if factor is not None and factor != -1:
        text = f"consistent with a constant factor: the right gradient is {factor} times the claim"
        counts = [n for n in dict.fromkeys(sizes) if n > 2 and abs(factor) in (n, Fraction(1, n))]
        if counts:
            text += f" (there are {counts[0]} entries: is a mean or a sum meant?)"
        elif 2 < abs(factor) == abs(factor.numerator) or 2 < 1 / abs(factor) == factor.denominator:
            text += f" (is a mean over {max(abs(factor.numerator), factor.denominator)} meant, or a sum?)"
        found.append(Reading("constant factor", text))
    for name, other in (others or {}).items():
        if other.slopes.shape == claimed.shape and other.fits(claimed) and other.telling:
            found.append(
                Reading("swapped", f"consistent with swapped arguments: the claim is the gradient by `{name}`")
            )
    what = "Jacobian" if jacobian else "gradient"
    if claimed.ndim == 2 and claimed.shape[0] == claimed.shape[1] and known.fits(claimed.T):
        found.append(Reading("transposed", f"consistent with a transpose: the right {what} is the claim's transpose"))
    if not found and jacobian:
        found += _diagonal(known)
    if not found:
        found += _missing_factor(known, arrays or {}, jacobian)
    if not found:
        found += _whole(known) or ([] if jacobian else _axes(known)) or _few(known)
    return found[:MOST]


def _diagonal(known: Known) -> list[Reading]:
    """A Jacobian whose entries beside the diagonal are forgotten, as for a function that works entry by entry."""
    m, n = known.claimed.shape
    beside = ~np.eye(m, n, dtype=bool)
    right = not known.misses(known.claimed)[~beside].any()
    if m == n and right and not known.claimed[beside].any():
        told = "right on the diagonal, and zero beside it: each output depends on every entry"
        return [Reading("diagonal only", told)]
    return []


def _whole(known: Known) -> list[Reading]:
    """Numbers that were cut to whole ones."""
    for word, cut in (("cut off", np.trunc), ("rounded", np.round)):
        if (known.claimed == cut(known.slopes)).all() and np.abs(known.claimed).max() >= 1:
            return [Reading("whole numbers", f"consistent with decimals that were {word}: is it an array of integers?")]
    return []


def _factor(known: Known, sizes: Sequence[int]) -> Fraction | None:
    """The simple fraction that the claim has to be multiplied with."""
    at = int(np.argmax(np.abs(known.slopes)))
    claimed, slope, bound = (float(one.reshape(-1)[at]) for one in (known.claimed, known.slopes, known.bounds))
    if claimed == 0 or not bound <= SHARP * abs(slope):
        return None
    ratio = slope / claimed
    simple = [Fraction(ratio).limit_denominator(LARGEST)]
    simple += [Fraction(sign * n) for n in sizes if n for sign in (1, -1)]
    simple += [Fraction(sign, n) for n in sizes if n for sign in (1, -1)]
    for one in simple:
        if (
            one not in (0, 1)
            and abs(one.numerator) <= max(LARGEST, *sizes, 1)
            and known.fits(float(one) * known.claimed)
        ):
            return one
    return None


def _missing_factor(known: Known, arrays: Mapping[str, Floats], jacobian: bool) -> list[Reading]:
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


def _axes(known: Known) -> list[Reading]:
    """A gradient that is constant along an axis, at the sum or mean of what it should be there; or turned round."""
    claimed, slopes = known.claimed, known.slopes
    for axis in range(claimed.ndim):
        if claimed.shape[axis] < 2:
            continue
        for word, mixed in (("summed", slopes.sum(axis=axis)), ("averaged", slopes.mean(axis=axis))):
            summed = np.broadcast_to(np.expand_dims(mixed, axis), claimed.shape)
            if Known(summed, known.bounds * claimed.shape[axis], claimed).fits(claimed):
                return [Reading("wrong axis", f"consistent with a gradient {word} over axis {axis} that should not be")]
        if known.fits(np.flip(claimed, axis)):
            return [Reading("reversed", f"consistent with entries in reverse order along axis {axis}")]
        if axis == 0 and claimed.ndim > 1 and known.fits(np.flip(claimed)):
            return [Reading("reversed", "consistent with entries in reverse order along every axis: a kernel flipped?")]
        for shift in (1, -1):
            if claimed.shape[axis] > 2 and known.fits(np.roll(claimed, shift, axis)):
                return [Reading("shifted", f"consistent with entries shifted by one along axis {axis}")]
    if claimed.ndim == 1 and claimed.size > 2 and (claimed == claimed[0]).all():
        return [Reading("constant", "the claim has the same number for every entry; the derivative has not")]
    return []


def _few(known: Known) -> list[Reading]:
    """Right but for the sign of some entries, or for a few entries."""
    wrong = known.misses(known.claimed)
    if known.fits(np.where(wrong, -known.claimed, known.claimed)):
        return [Reading("some signs", "consistent with a wrong sign in some entries")]
    count, size = int(wrong.sum()), known.claimed.size
    if 0 < count <= max(1, size // 2) and size > 1:
        places = [list(map(int, place)) for place in np.argwhere(wrong)]
        told = f"{count} of {size} entries"
        if count <= NAMED:
            told = f"the entr{'y' if count == 1 else 'ies'} {', '.join(map(str, places))}"
        return [Reading("some entries", f"right but for {told}")]
    offset = known.slopes - known.claimed
    if size > 1 and np.abs(offset - offset.flat[0]).max() <= 2 * known.slack.max():
        return [Reading("offset", f"every entry is off by the same {float(offset.mean()):.6g}")]
    return []


Evidence = dict[str, Any]
SHOWN = 5  # of the worst entries


class EvidenceWriter:
    """Puts the findings of one survey into words and plain data."""

    def __init__(
        self, survey: Survey, row_names: Sequence[str], nearby: Callable[[str], list[Survey]] | None = None
    ) -> None:
        self.survey = survey
        self.row_names = row_names
        self.nearby = nearby or (lambda name: [])

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

    def readings(self, name: str, own: Sequence[Finding]) -> list[Any]:
        """How the gradient of a scalar, or a Jacobian, may be wrong; needs every entry of the argument."""
        known = self.known(name)
        if known is None:
            return []
        box = self.survey.box
        sizes = [int(np.prod(box.shape_of(other), dtype=np.int64)) for other in box.slices]
        sizes += [n for other in box.slices for n in box.shape_of(other)]
        arrays = {one.name: one.array for one in box.arguments if one.array is not None}
        arrays |= {one.name: one.given for one in box.arguments if getattr(one.given, "dtype", None) == np.float64}
        arrays["f"] = np.asarray(box.value(box.x))
        if box.size > 1:
            return list(readings(known, sizes, jacobian=True, arrays=arrays))
        others = {other: self.known(other) for other in box.slices if other != name}
        known_others = {key: value for key, value in others.items() if value is not None}
        return list(readings(known, sizes, known_others, self.elsewhere(name), arrays=arrays))

    def known(self, name: str) -> Known | None:
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
        return Known(slopes, bounds, survey.claims[rows][:, part].reshape(shape))

    def elsewhere(self, name: str) -> list[Known]:
        """The slopes along one direction each at points beside the given one, where one argument has moved."""
        found = []
        for survey in self.nearby(name):
            for one in survey.joint:
                if one.state not in ("silent", "still", "not finite"):
                    value, bound = one.ladder.estimate[:2]
                    found.append(Known(np.array(value), np.array(bound), np.array(one.claimed)))
        return found


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
