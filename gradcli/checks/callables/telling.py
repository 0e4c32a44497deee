"""The findings of a survey go in, what a report says of them comes out: labels, numbers, the worst entries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.checks.callables import ladder, patterns
from gradcli.checks.shown import counted, position
from gradcli.checks.witnesses import black_box
from gradcli.execution.step_sequence import StepSequence

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gradcli.checks.callables.survey import Finding, Group, Survey

Evidence = dict[str, Any]
SHOWN = 5  # of the worst entries


class Teller:
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
        rates = [ladder.taylor_rate(one.ladder, one.claimed) for one in survey.joint if one.row == 0]
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
        if box.size > 1:
            return list(patterns.readings(known, sizes, jacobian=True))
        others = {other: self.known(other) for other in box.slices if other != name}
        known_others = {key: value for key, value in others.items() if value is not None}
        return list(patterns.readings(known, sizes, known_others, self.elsewhere(name)))

    def known(self, name: str) -> patterns.Known | None:
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
        return patterns.Known(slopes, bounds, survey.claims[rows][:, part].reshape(shape))

    def elsewhere(self, name: str) -> list[patterns.Known]:
        """The slopes along one direction each at points beside the given one, where one argument has moved."""
        found = []
        for survey in self.nearby(name):
            for one in survey.joint:
                if one.state not in ("silent", "still", "not finite"):
                    value, bound = one.ladder.estimate[:2]
                    found.append(patterns.Known(np.array(value), np.array(bound), np.array(one.claimed)))
        return found


def slope(side: float | None) -> str:
    """A slope in words."""
    return "undefined" if side is None else f"{side + 0.0:.6g}"


def ladder_shown(one: Finding, of: str = "") -> Evidence:
    """The rungs of a ladder: steps, the slope that each saw, the best estimate of it, and the claim."""
    value, bound = one.ladder.estimate[:2]
    steps, slopes = one.ladder.steps.tolist(), one.ladder.slopes.tolist()
    return StepSequence(steps, slopes, of, claimed=one.claimed, estimate=value, bound=bound).evidence()


def _entry(one: Finding) -> int:
    return -1 if one.entry is None else one.entry
