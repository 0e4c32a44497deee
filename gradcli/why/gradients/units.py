"""Units of a layer that are dead, and layers whose units are all alike."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.base.results.findings import DeadUnits
from gradcli.recording.runs.operand_notes import Units

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gradcli.base.results.findings import Finding
    from gradcli.recording.runs.tensors import Entry
    from gradcli.why.story import Story

CHANCE, LEAST_ROWS = 0.02, 3


def dead_units(story: Story) -> Iterator[tuple[None, Finding]]:
    """Activations of which more units are zero for every row of every batch than chance explains.

    Where rows resemble each other each unit keeps its sign: about half of them are then zero throughout, and as many
    positive throughout.
    """
    layers: dict[tuple[Any, int, int], Any] = {}
    rows: dict[tuple[Any, int, int], int] = {}
    turn: dict[tuple[Any, int], int] = {}
    first: dict[tuple[Any, int, int], Entry] = {}
    for entry in story.entries.values():
        if not isinstance(entry.remark, Units) or entry.inside or entry.seq is None:
            continue
        at = turn.get((entry.line, entry.sweeps), 0)  # several layers may run in one line
        turn[entry.line, entry.sweeps] = at + 1
        signs = np.asarray(entry.remark.signs, dtype=bool).reshape(2, -1)
        key = (entry.line, at, signs.shape[1])
        layers[key] = signs & layers[key] if key in layers else signs
        rows[key] = rows.get(key, 0) + entry.remark.rows
        first.setdefault(key, entry)
    for key, (zeros, positive) in layers.items():
        dead, count = int(zeros.sum()), len(zeros)
        by_chance = chance(dead, dead + int(positive.sum()))
        if count > 1 and rows[key] >= LEAST_ROWS and 2 * dead >= count and (dead == count or by_chance < CHANCE):
            message = f"{dead} of {count} units of {story.doing(first[key])} are zero for every input: "
            message += "no gradient passes them"
            yield None, story.find("dead-relu", None, key[0], message, DeadUnits(share=dead / count, units=count))


def chance(least: int, of: int) -> float:
    """How likely at least so many of some coins show heads."""
    return float(sum(math.comb(of, k) for k in range(least, of + 1)) / 2**of)


def alike(story: Story) -> Iterator[tuple[int, Finding]]:
    """Layers whose units have all the same weights after several steps."""
    for optimizer in story.watch.optimizers:
        for mark in optimizer.alike:
            grads = [grad.norm for _, grad in story.arrivals.get(mark, ())]
            if not any(norm > 0 for norm in grads):
                continue
            fills = [
                event for event in story.timeline(mark) if event.kind in ("filled", "changed") and event.name != "step"
            ]
            line = fills[-1].line if fills else story.entries[mark].line
            count = story.entries[mark].shape[0]
            message = (
                f"all {count} units of $it are alike: they begin with equal weights (line "
                f"{line.number if line else '?'}: "
                f"`{line.text if line else ''}`), get equal gradients, and stay equal"
            )
            yield mark, story.find("all-alike", story.called(mark), line, message)
