"""Compares every claimed slope at a point with differences: agrees, near, differs, or unknown. It gives no verdict.

First random directions in which everything moves, then every entry. The entries of a large array move in groups, each
along a random direction of its own: entries whose terms are about as large share a group, so that what is wrong with
one of them shows. A group that does not agree is halved down to the entry.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gradcli.checks.differences import step_sequences
from gradcli.checks.differences.step_sequences import (
    BLUNT,
    DECIMAL,
    EPSILON,
    OTHER,
    SHARP,
    Differences,
    Estimate,
    Neighbourhood,
    seeded_directions,
)
from gradcli.recording.calls.failures import OutOfTime

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from gradcli.checks.differences.step_sequences import Floats, Function

DIRECTIONS = 3
ALL_ENTRIES = 48  # up to so many entries each has a step sequence of its own
SOME_ENTRIES = 16
FAR = 30.0  # a difference of so many slacks is no accident of rounding
ROUNDINGS = 64  # a gradient may be off by so many roundings
GROUP = 16  # entries that move together, or as many more as
MOST_GROUPS = 64  # groups leave; and fewer groups where
MOST_MOVED = 1 << 24  # entries would be moved in all of their calls
MOST_HALVES = 64  # groups that are halved
MOST_SILENT = 4  # groups that say nothing: then no other one will
LARGEST = 2  # entries of a large array that have step sequences of their own, beside a sample
MATES = 15  # other entries of a large array that move along a second direction
OUTPUTS = 8  # up to so many outputs each is judged; of more some, and combinations
SMALL = 1e-6  # beside the largest slope, for what does not move
COARSE = 1e-3  # a slope that rounding would hide, and a claim of 0 does not state
DUST = 16.0  # roundings of f and of the largest claim, up to which a claim is 0
FAR_AWAY = (1.0, -0.7, 30.0, -2e3, 1e6)  # moves of an entry
SMALLER = np.array([0.137, 0.0173, 0.00211])  # parts of the point, no powers of two
CROOKED = 0.8315789  # no power of two: a periodic function must not look the same from every step
REST = 0.25  # how far the other entries move along a second direction
COMBINED = "a combination of all outputs"
MEASURED = ("agrees", "near", "differs")  # states of findings with a slope by differences


class SlopeFinding(NamedTuple):
    """A claimed slope and the differences; `entry` is None along a direction, `row` counts combinations of outputs."""

    row: int
    entry: int | None
    claimed: float
    seen: Differences
    state: str  # "agrees", "near", "differs", "silent", "still" or "not finite"
    ratio: float  # of the gap to the slack
    slack: float

    @property
    def slope(self) -> float:
        """The slope by differences."""
        return self.seen.estimate.value

    @property
    def bound(self) -> float:
        """The bound on its error."""
        return self.seen.estimate.bound

    @property
    def gap(self) -> float:
        """How far the claim is from what was seen."""
        return abs(self.claimed - self.slope)


class MovedEntries(NamedTuple):
    """Entries that moved together along a random direction, and the findings of every row.

    An error in one entry would have been seen above `bound`, in parts of the largest entry of the array. Entries whose
    claims are smaller than what would be seen are no part of it, unless nothing moves.
    """

    entries: Any
    findings: list[SlopeFinding]
    bound: float


class Survey(Neighbourhood):
    """The findings at one point; `about` are further arguments of `Neighbourhood`."""

    def __init__(
        self,
        f: Function,
        x: Floats,
        slices: Mapping[str, slice],
        claims: Floats,
        seed: int,
        rtol: float = 0.0,
        **about: Any,
    ) -> None:
        super().__init__(f, x, **about)
        self.slices = slices  # where each argument stands in x
        self.claims = claims  # [rows, entries]
        self.seed, self.rtol = seed, rtol
        self.joint: list[SlopeFinding] = []
        self.entries: list[SlopeFinding] = []
        self.own: dict[str, list[SlopeFinding]] = {}  # of large arrays beside others, which move alone
        self.groups: dict[str, list[MovedEntries]] = {}  # of large arrays
        self.unfinished, self.dust = False, 0.0  # a smaller claim may be the rounding of 0
        self.single = False  # whether f computes in float32
        self.lacks = ""  # what the given point has, and this one beside it has not: "symmetric", "diagonal", or `EQUAL`

    # --- looking -------------------------------------------------------------------------------------------

    def look(self, joint: int = DIRECTIONS) -> None:
        """Take directions first, then the entries of every argument; ends early where the time is over."""
        try:
            self.joint += self.along(self.directions(joint))
            for name, part in self.slices.items():
                if part.stop - part.start > ALL_ENTRIES:
                    if len(self.slices) > 1:
                        ways = [_only(d, range(part.start, part.stop)) for d in self.directions(joint)]
                        self.own[name] = self.along(ways)
                    self.look_in_groups(name)
                self.entries += self.along_entries(list(self.choice(name)))
        except OutOfTime:
            self.unfinished = True
        self.settle()

    def look_along(self, ways: Sequence[Floats] = ()) -> Survey:
        """This survey after it took a few directions, or one, and nothing else."""
        self.joint = self.along(ways or self.directions(1))
        self.settle()
        return self

    def look_in_groups(self, name: str) -> None:
        """The entries of a large array in groups. Raises OutOfTime."""
        part = self.slices[name]
        size = part.stop - part.start
        terms = np.nan_to_num(np.abs(self.claims[:, part]).max(axis=0)) * (np.abs(self.x[part]) + (self.x[part] == 0))
        order = part.start + np.argsort(-terms, kind="stable")
        affordable = max(1, MOST_MOVED // (step_sequences.CALLS * self.x.size))
        way, flat = seeded_directions(self.x, 1, self.seed + 2)[0], order[terms[order - part.start] == 0]
        way[flat] *= self.scale(part.start) / np.where(self.x[flat] == 0, 1.0, np.abs(self.x[flat]))
        waiting = [
            group
            for alike in (flat, order[: size - flat.size])
            if alike.size
            for group in np.array_split(alike, min(-(-alike.size // GROUP), MOST_GROUPS, affordable))[::-1]
        ]
        halves, silent = min(MOST_HALVES, affordable), 0
        self.groups[name] = agreeing = []
        while waiting and silent < MOST_SILENT:
            entries = waiting.pop()
            if entries.size == 1:
                self.entries += self.along_entries([int(entries[0])])
                continue
            findings = self.along([_only(way, entries)])
            states = {finding.state for finding in findings}
            if states == {"agrees"}:
                slack, moves = np.array([finding.slack for finding in findings]), np.abs(self.claims * way)
                with np.errstate(all="ignore"):
                    sizes = moves[:, part].max(axis=1)
                    hidden = (moves[:, entries] <= slack[:, None]).all(axis=0)
                    hidden &= not all(finding.seen.still for finding in findings)
                    bound = float(np.nan_to_num(slack / sizes, nan=0.0).max())
                agreeing.append(MovedEntries(entries[~hidden], findings, bound))
                waiting += [entries[i : i + 1] for i in np.flatnonzero(hidden)[:halves]]
                halves -= min(halves, int(hidden.sum()))
            elif not agreeing and states == {"silent"}:
                silent += 1
            elif halves:
                halves -= 1
                waiting += [entries[entries.size // 2 :], entries[: entries.size // 2]]

    def directions(self, count: int) -> list[Floats]:
        """Random directions in which everything moves; of one number, both ways and a shorter step."""
        if self.x.size == 1:
            size = np.where(self.x == 0, 1.0, np.abs(self.x))
            return [size * factor for factor in (1.0, -1.0, 0.6, -0.6, 0.8)[:count]]
        return seeded_directions(self.x, count, self.seed)

    def along(self, ways: Sequence[Floats], entries: Sequence[int] = ()) -> list[SlopeFinding]:
        """The findings of every row along some directions; `entries` are given where each is the axis of an entry."""
        series = self.differences(ways, [self.scale(i) for i in entries] if entries else None)
        places: Sequence[int | None] = entries or [None] * len(ways)
        return [
            finding
            for i, d, rows in zip(places, ways, series, strict=True)
            for finding in self.unless_stepped([self.finding(k, i, d, seen) for k, seen in enumerate(rows)], d)
        ]

    def unless_stepped(self, findings: list[SlopeFinding], d: Floats) -> list[SlopeFinding]:
        """The findings along a direction; those that agree are unknown where steps at the edge of rounding do not."""
        steps = {
            finding.row: step_sequences.finest(finding.seen, finding.claimed, self.in_single)
            for finding in findings
            if finding.state in ("agrees", "near") and not finding.seen.still
        }
        step = max(filter(math.isfinite, steps.values()), default=math.inf)
        slopes = self.finest_slopes(d, step)
        for row in steps:
            seen, claimed = findings[row].seen, findings[row].claimed
            reason = DECIMAL if step_sequences.in_decimals(seen) else None
            if slopes is not None and step_sequences.stepped(slopes[:, :, row], claimed):
                reason = OTHER
            if reason:
                unknown = seen._replace(estimate=seen.estimate._replace(reason=reason))
                findings[row] = findings[row]._replace(state="silent", seen=unknown)
        return findings

    def along_entries(self, entries: Sequence[int]) -> list[SlopeFinding]:
        """The findings of every row by some entries."""
        return self.along([self.axis(i) for i in entries], entries)

    def finding(self, row: int, entry: int | None, d: Floats, seen: Differences) -> SlopeFinding:
        """How a claim stands to differences along a direction."""
        with np.errstate(all="ignore"):
            claimed = float(self.claims[row] @ d if entry is None else self.claims[row, entry])
            terms = float(np.abs(self.claims[row]) @ np.abs(d)) if entry is None else 0.0  # the size of what it adds up
        value, bound, reason = seen.estimate
        typical = 0.0
        if seen.steps.size:  # on steps that are no larger than the point
            size = np.inf if entry is None else abs(float(self.x[entry])) or self.scale(entry)
            own = ~(seen.steps > max(size, float(seen.steps.min())))  # all of them where the size is not known
            typical = float((np.ptp(seen.values, axis=1) / seen.steps)[own].max()) / 4.0
        slack = bound + ROUNDINGS * EPSILON * abs(claimed) + self.rtol * max(abs(claimed), terms)
        slack += 16.0 * EPSILON * (terms + typical)
        gap = abs(claimed - value)
        if not math.isfinite(claimed):
            return SlopeFinding(row, entry, claimed, seen, "not finite", math.inf, slack)
        if reason is not None and not seen.still:
            return SlopeFinding(row, entry, claimed, seen, "silent", 0.0, slack)
        ratio = gap / slack if slack > 0 else (0.0 if gap == 0 else math.inf)
        state = "agrees" if ratio <= 1 else "near" if ratio <= FAR else "differs"
        far = entry is not None and 0 < abs(float(self.x[entry])) < seen.steps.max(initial=0.0) and not seen.still
        if state == "agrees" and far and bound > SHARP * abs(claimed):
            state, seen = "silent", seen._replace(estimate=Estimate(value, bound, BLUNT))
        return SlopeFinding(row, entry, claimed, seen, state, ratio, slack)

    def settle(self) -> None:
        """Judge slopes along which f stands still on all steps: a claim of 0 agrees.

        So does one of 0 up to rounding, beside the outputs of f and the other claims, where f does not change far away
        either. A larger claim differs where f moves along other entries by far more than along this one. The rest stays
        unknown: a small slope may be hidden by the rounding of large terms.
        """
        moving = (f for f in (*self.joint, *self.entries) if f.state in MEASURED and not f.seen.still)
        sizes = (abs(finding.slope) * self.scale_of(finding) for finding in moving)
        largest = max(filter(math.isfinite, sizes), default=0.0)
        ways = np.maximum(np.abs(self.x), 1.0)
        beside = float(np.nan_to_num(np.append(np.abs(self.center), np.abs(self.claims) * ways)).max())
        self.dust = dust = DUST * EPSILON * (beside if self.claims.size > 1 else 0.0)
        groups = (group.findings for groups in self.groups.values() for group in groups)
        for findings in (self.joint, self.entries, *groups):
            for place, finding in enumerate(findings):
                if not finding.seen.still or finding.state == "not finite":
                    continue
                way = ways[finding.entry] if finding.entry is not None else 1.0
                if abs(finding.claimed) * way <= dust and self.independent(finding):
                    findings[place] = finding._replace(state="agrees", ratio=0.0)
                elif finding.state == "agrees" or finding.bound * self.scale_of(finding) > SMALL * largest:
                    findings[place] = finding._replace(state="still", ratio=0.0)

    def independent(self, finding: SlopeFinding) -> bool:
        """Whether rounding does not hide how an output changes with an entry.

        A claim of 0 needs that smaller other entries do not show such a change, and that it would show; rounding dust
        that nothing does, far away either.
        """
        entry = 0 if self.x.size == 1 else finding.entry
        if entry is None:
            return finding.claimed == 0
        draw, at = np.random.default_rng(self.seed).uniform(-1.0, 1.0, self.x.size), self.x[entry]
        size = 0.1 * (abs(float(at)) or self.scale(entry))
        moves = (0.0, size, -size) if finding.claimed == 0 else (0.0, size, -size, *FAR_AWAY)
        places = np.array([self.x, draw, 1e-20 * draw, 0.0 * draw])
        places[:, entry] = at
        points = (places[:, None] + np.multiply.outer(moves, self.axis(entry))).reshape(-1, self.x.size)
        values = step_sequences.evaluated(self.f, points)[:, self.weights[finding.row] != 0]
        rows = values.reshape(len(places), len(moves), -1)
        rows = rows[np.isfinite(rows[:, 0]).all(axis=1)]
        if finding.claimed:
            return bool((rows == rows[:, :1]).all())
        change = np.abs(rows - rows[:, :1])
        if EPSILON * np.abs(rows[:, 0]).max(axis=-1).min() > COARSE * size:
            return False
        return not ((change > 0) & (change <= step_sequences.HIDING * EPSILON * np.abs(rows[0, 0]))).any()

    def finest_slopes(self, d: Floats, step: float) -> Floats | None:
        """The slopes of every row on steps at the edge of rounding, one after the other on each side, [2, steps, rows].

        `step` is at least the smallest one; None where it is no small one.
        """
        moving, i = d != 0, int(np.argmax(np.abs(d)))
        least = float((np.maximum(64.0 * np.abs(self.x), 16.0)[moving] / np.abs(d[moving])).max(initial=0.0))
        step = max(step, least * EPSILON)
        if not step < step_sequences.first_step(self.x, d):
            return None
        steps = np.multiply.outer((-step, step), np.arange(step_sequences.FINEST + 1))
        points = self.x + steps[..., None] * d
        with np.errstate(all="ignore"):
            values = step_sequences.evaluated(self.f, points.reshape(-1, self.x.size)) @ self.weights.T
            moves = np.diff(points[..., i], axis=1) / d[i]
            slopes: Floats = np.diff(values.reshape(*steps.shape, -1), axis=1) / moves[..., None]
        return slopes

    def in_single(self) -> bool:
        """Whether numbers with the digits of float32 have finer bits where they are smaller, unlike stairs.

        True where no value is smaller.
        """
        values = step_sequences.evaluated(self.f, np.multiply.outer(SMALLER, self.x)) @ self.weights.T
        size = np.broadcast_to(np.abs(self.center), values.shape)
        small = (values != 0) & (np.abs(values) < size / 4)
        finer = step_sequences.last_bits(values[small]) < step_sequences.SINGLE / 4 * size[small]
        self.single = bool(finer.any()) or not small.any()
        return self.single

    def closest(self, finding: SlopeFinding, gap: float) -> Floats:
        """The slopes of a finding's entry on steps that show such a gap between slopes, [2, steps], or NaN."""
        step = step_sequences.finest(finding.seen, gap, self.in_single)
        slopes = self.finest_slopes(self.axis(finding.entry or 0), step)
        return np.full((2, 1), np.nan) if slopes is None else np.asarray(slopes[:, :, finding.row])

    def seen_closer(self, finding: SlopeFinding, slope: float, other: float) -> bool:
        """Whether these steps see, on one side, a slope and not another one."""
        if finding.entry is None and self.x.size > 1:
            return False
        near = np.abs(self.closest(finding, slope - other) - slope) <= 0.1 * abs(slope - other)
        return bool(near.all(axis=1).any())

    def findings(self, name: str) -> tuple[list[SlopeFinding], list[SlopeFinding]]:
        """The findings about an argument: those by single entries, and all."""
        part = self.slices[name]
        own = [finding for finding in self.entries if part.start <= (finding.entry or 0) < part.stop]
        along = self.joint if len(self.slices) == 1 or not own else self.own.get(name, ())
        return own, [*own, *along, *(finding for group in self.groups.get(name, ()) for finding in group.findings)]

    # --- choosing ------------------------------------------------------------------------------------------

    def scale(self, i: int) -> float:
        """The size of the array that an entry belongs to: a step that its own size may be too small for."""
        piece = next(self.x[part] for part in self.slices.values() if part.start <= i < part.stop)
        size = float(np.sqrt(np.mean(piece**2))) if piece.size > 1 else 0.0
        return size if size > 0 else 1.0

    def scale_of(self, finding: SlopeFinding) -> float:
        """The size of what a finding moves; directions are as large as the point."""
        i = finding.entry
        return 1.0 if i is None else abs(float(self.x[i])) or self.scale(i)

    def choice(self, name: str) -> Iterator[int]:
        """The entries of an argument that get a step sequence of their own, beside those that a group led to."""
        part = self.slices[name]
        size = part.stop - part.start
        if size <= ALL_ENTRIES:
            yield from range(part.start, part.stop)
            return
        claims = np.abs(self.claims[:, part]).max(axis=0)
        largest = np.argsort(-claims, kind="stable")[:LARGEST]
        count = min(SOME_ENTRIES, MOST_MOVED // (step_sequences.CALLS * self.x.size))
        sample = np.random.default_rng(self.seed).choice(size, count, replace=False)
        seen = {finding.entry for finding in self.entries}
        chosen = sorted({part.start + int(i) for i in (*largest, *sample)})
        yield from (i for i in chosen if i not in seen)

    def second(self, finding: SlopeFinding) -> Floats:
        """A second direction for a finding: its entry and a little of all others; for one number, the opposite sign."""
        if finding.entry is None and self.x.size > 1:
            return CROOKED * self.directions(DIRECTIONS + 1)[-1]
        d = REST * seeded_directions(self.x, 1, self.seed + 1)[0]
        i = finding.entry or 0
        part = next(part for part in self.slices.values() if part.start <= i < part.stop)
        if part.stop - part.start > ALL_ENTRIES:  # one entry does not show among all of them
            mates = np.random.default_rng(self.seed + 1).choice(part.stop - part.start, MATES, replace=False)
            d = _only(d, part.start + mates)
        d[i] = -CROOKED * (abs(float(self.x[i])) or self.scale(i))
        return d


def contradicted(finding: SlopeFinding) -> bool:
    """Whether a claim is contradicted by more than chance explains."""
    return finding.state == "differs" and step_sequences.contradicts(finding.seen, finding.claimed)


def together(findings: Sequence[SlopeFinding], sure: Callable[[SlopeFinding], bool] = contradicted) -> str:
    """The joint state of some findings: "not finite", "differs" (one is sure to), "near", "agrees" or "silent"."""
    states = {finding.state for finding in findings}
    if "not finite" in states:
        return "not finite"
    if any(map(sure, findings)):
        return "differs"
    return "near" if states & {"differs", "near"} else "agrees" if "agrees" in states else "silent"


def rows_of(size: int, seed: int) -> tuple[Floats, list[str]]:
    """The combinations of f's outputs that are judged, and their names: each of a few, some and mixtures of many."""
    if size == 1:
        return np.ones((1, 1)), [""]
    generator = np.random.default_rng(seed)
    mixed = generator.choice([-1.0, 1.0], (1 if size <= OUTPUTS else DIRECTIONS, size))
    mixed *= generator.integers(33, 128, mixed.shape) / 64.0
    chosen: Sequence[int] = range(size)
    if size > OUTPUTS:
        chosen = sorted(generator.choice(size, OUTPUTS, replace=False).tolist())
    units = np.zeros((len(chosen), size))
    units[range(len(chosen)), list(chosen)] = 1.0
    names = [*(f"output {i}" for i in chosen), *(COMBINED for _ in mixed)]
    return np.concatenate([units, mixed]), names


def _only(d: Floats, entries: Any) -> Floats:
    """A direction in which some entries move alone."""
    kept = np.zeros_like(d)
    kept[entries] = d[entries]
    return kept
