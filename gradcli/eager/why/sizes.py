"""Gradients that arrived go in; which vanished or exploded comes out, from where on, and what did most of it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from gradcli.eager.why.texts import flat_reason, kind_of
from gradcli.execution.findings import GradientPath, NodeNorm

if TYPE_CHECKING:
    from gradcli.eager.running.entries import Step, Sweep
    from gradcli.eager.why.story import Story
    from gradcli.execution.findings import Finding

    Way = list[tuple[Step, tuple[str, int], float]]

TINY, SMALL_BESIDE, HUGE = 1e-9, 1e-7, 1e6
SPREADING = ("Sum", "Mean", "Expand", "Repeat", "Unsqueeze", "View", "Select", "T", "Permute", "Transpose")
MIXING = ("Mm", "Addmm", "Mv", "Addmv", "Bmm", "Baddbmm", "Convolution")
STEPS_SHOWN = 12


def faded(story: Story, mark: int) -> Finding | None:
    """A gradient that is next to nothing beside what the backward started with."""
    sweep, one = story.arrivals.get(mark, [(None, None)])[-1]
    if sweep is None or one is None or not sweep.steps or not one.norm > 0:
        return None
    largest = max((r.norm for r in sweep.reached if r.finite), default=0.0)
    if not (one.norm < TINY * sweep.steps[0].norm or (one.norm < SMALL_BESIDE * largest and one.norm < SMALL_BESIDE)):
        return None
    way = strongest_way(story, sweep, mark)
    first = next((i for i in range(len(way)) if kind_of(way[i][0].name) not in SPREADING), 0)
    start = next((i for i in range(first, len(way)) if all(way[i][2] > 2 * later[2] for later in way[i + 1 :])), first)
    sharpest = max(range(len(way)), key=lambda i: way[i][0].norm / max(way[i][2], 1e-300))
    flat = flat_reason(way[sharpest][0].name) == "saturated" and way[sharpest][0].norm > 1e6 * way[sharpest][2]
    at = way[sharpest if flat else start][0]
    reason, how = ("saturated", "it is flat there") if flat else ("vanishing", f"{len(way)} operations on the way")
    if not flat and way[sharpest][0].norm > 1e6 * way[sharpest][2]:
        at, reason, how = way[sharpest][0], "flat", "almost all of it in this operation"
        onwards = way[sharpest][1][0] == "node"  # to a bias, sums may cancel out; that is no trouble
        if onwards and kind_of(at.name) in MIXING and len({one.to for one in at.sent}) == len(at.sent):
            reason, how = "vanishing", f"{how}: the matrix that it multiplies by is next to nothing"
    elif not flat:
        how += mostly(way, -1)
    return story.find(
        reason,
        story.called(mark),
        at.line,
        f"$it.grad has norm {one.norm:.3g}: it vanishes from {at.name} at {story.at(at.line)} on ({how})",
        GradientPath(norm=one.norm, norms=shown(way)),
    )


def blown_up(story: Story, mark: int) -> Finding | None:
    """A gradient that grew without measure on its way."""
    sweep, one = story.arrivals.get(mark, [(None, None)])[-1]
    if sweep is None or one is None or not sweep.steps or one.norm <= HUGE * max(sweep.steps[0].norm, 1e-300):
        return None
    way = strongest_way(story, sweep, mark)
    growing = [i for i in range(len(way)) if way[i][2] > 2 * way[i][0].norm]
    start = next((i for i in growing if kind_of(way[i][0].name) not in SPREADING), growing[0] if growing else 0)
    at = way[start][0]
    return story.find(
        "exploding",
        story.called(mark),
        at.line,
        f"$it.grad has norm {one.norm:.3g}: it grows from {at.name} at {story.at(at.line)} on "
        f"({len(way)} operations on the way{mostly(way, 1)})",
        GradientPath(norm=one.norm, norms=shown(way)),
    )


def mostly(way: Way, sign: int) -> str:
    """Which operation did most of the growing (1) or shrinking (-1), where it did so several times."""
    parts: dict[tuple[str, Any], list[float]] = {}
    for step, _, sent in way:
        if step.norm > 0 and sent > 0:
            line = step.line.number if step.line else None
            parts.setdefault((step.name, line), []).append(sign * math.log(sent / step.norm))
    if not parts:
        return ""
    (name, line), logs = max(parts.items(), key=lambda pair: sum(pair[1]))
    if len(logs) < 2 or max(logs) > sum(logs) / 2 or line is None:
        return ""
    each = math.exp(sign * sum(logs) / len(logs))
    return f", most of it in {name} at line {line}: {len(logs)} times, each by about {each:.2g}"


def worst(story: Story, group: list[tuple[int, Finding]]) -> tuple[int, Finding]:
    """Of tensors with the same trouble the one that has most of it; the others by their names."""
    at, one = max(group, key=lambda pair: abs(math.log(path_of(pair[1]).norm)))
    if len(group) == 1:
        return at, one
    others = tuple(story.called(mark) for mark, _ in group if mark != at)
    told = f"{one.message}; so it is with {len(others)} other{'s' if len(others) > 1 else ''}"
    return at, one._replace(message=told, evidence=path_of(one)._replace(others=others))


def path_of(finding: Finding) -> GradientPath:
    """The path of a gradient that vanished or exploded."""
    assert isinstance(finding.evidence, GradientPath)
    return finding.evidence


def strongest_way(story: Story, sweep: Sweep, mark: int) -> Way:
    """The way from the loss to a leaf along which most arrived: node, where to, norm of what it sent."""
    way: Way = []
    target: tuple[str, int] = ("leaf", mark)
    while True:
        senders = story.senders(sweep, target)
        if not senders:
            return way[::-1]
        step, norm = max(senders, key=lambda pair: pair[1])
        way.append((step, target, norm))
        target = ("node", step.seq)


def shown(way: Way) -> tuple[NodeNorm, ...]:
    """The norms on a way, at most a dozen of them."""
    rows = tuple(NodeNorm(s.name, s.line.number if s.line else None, s.norm, n) for s, _, n in way)
    if len(rows) <= STEPS_SHOWN:
        return rows
    every = (len(rows) - 1) / (STEPS_SHOWN - 1)
    return tuple(rows[round(i * every)] for i in range(STEPS_SHOWN))
