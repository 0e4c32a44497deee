"""The steps of a recorded run as rows: loss, gradients, how far parameters moved, zeros, NaN, dead units."""

from __future__ import annotations

import math
from statistics import median
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gradcli.base.results.training_steps import LayerRow, StepRow, TrainingSteps
from gradcli.recording.runs.operand_notes import Units

if TYPE_CHECKING:
    from gradcli.recording.runs.run_record import Watch
    from gradcli.recording.runs.tensors import BackwardRecord, Reached, Update

UNKNOWN = math.nan


class TrainingIteration(NamedTuple):
    """The backwards up to a step of an optimizer, and that step; None where no optimizer steps."""

    sweeps: tuple[BackwardRecord, ...]
    update: Update | None


def training_steps(watch: Watch) -> TrainingSteps:
    """The steps of a run: those of its optimizers, else its backwards."""
    iterations = iterations_of(watch)
    names = {mark: subject.name for mark, subject in watch.subjects.items() if subject.name}
    grads: dict[int, list[Reached]] = {}
    ratios: dict[int, list[float]] = {}
    for iteration in iterations:
        for mark, grad in latest(iteration).items():
            grads.setdefault(mark, []).append(grad)
        for mark, ratio in (iteration.update.ratios if iteration.update is not None else {}).items():
            ratios.setdefault(mark, []).append(ratio)
    layers = [
        LayerRow(
            names.get(mark, f"tensor {mark}"),
            reached[0].norm,
            reached[-1].norm,
            median(ratios[mark]) if ratios.get(mark) else UNKNOWN,
            reached[-1].zeros,
            sum(grad.spoilt for grad in reached),
        )
        for mark, reached in sorted(grads.items())
    ]
    units: dict[int, list[Any]] = {}  # by how many backwards had begun: which units were zero
    for entry in watch.entries.values():
        if isinstance(entry.remark, Units):
            units.setdefault(entry.sweeps, []).append(np.asarray(entry.remark.signs, bool).reshape(2, -1)[0])
    begun = {id(sweep): at for at, sweep in enumerate(watch.sweeps)}
    rows = []
    for at, iteration in enumerate(iterations, 1):
        zeros = [each for sweep in iteration.sweeps for each in units.get(begun[id(sweep)], ())]
        rows.append(row(watch, at, iteration, float(np.concatenate(zeros).mean()) if zeros else UNKNOWN))
    return TrainingSteps(tuple(rows), tuple(layers))


def iterations_of(watch: Watch) -> list[TrainingIteration]:
    """The backwards of a run by the steps that use them."""
    sweeps = [sweep for sweep in watch.sweeps if sweep.accumulate and sweep.reached]
    updates = sorted((u for optimizer in watch.optimizers for u in optimizer.updates), key=lambda u: u.time)
    if not updates:
        return [TrainingIteration((sweep,), None) for sweep in sweeps]
    iterations, before = [], -1
    for update in updates:
        between = tuple(sweep for sweep in sweeps if before < sweep.time < update.time)
        iterations.append(TrainingIteration(between, update))
        before = update.time
    return iterations


def latest(iteration: TrainingIteration) -> dict[int, Reached]:
    """The last gradient of each tensor in a step; only of what the step moves."""
    moved = None if iteration.update is None else set(iteration.update.moved)
    grads = [grad for sweep in iteration.sweeps for grad in sweep.reached]
    return {grad.leaf: grad for grad in grads if moved is None or grad.leaf in moved}


def row(watch: Watch, number: int, iteration: TrainingIteration, dead: float) -> StepRow:
    """One step; `dead` is the share of units that were zero throughout."""
    grads = list(latest(iteration).values())
    line = (
        iteration.update.line
        if iteration.update is not None
        else iteration.sweeps[-1].line
        if iteration.sweeps
        else None
    )
    loss = UNKNOWN
    if iteration.sweeps:
        value = watch.entries[iteration.sweeps[-1].roots[0][0]].value
        loss = float(value) if isinstance(value, np.ndarray | np.generic) and value.size == 1 else UNKNOWN
    ratios = [
        ratio for ratio in (iteration.update.ratios.values() if iteration.update is not None else ()) if ratio == ratio
    ]
    sizes = sum(math.prod(watch.entries[grad.leaf].shape) for grad in grads)
    zeros = sum(grad.zeros * math.prod(watch.entries[grad.leaf].shape) for grad in grads)
    return StepRow(
        number,
        None if line is None else line.number,
        loss,
        math.sqrt(sum(grad.norm**2 for grad in grads)) if grads else UNKNOWN,
        max(ratios, default=UNKNOWN),
        zeros / sizes if sizes else UNKNOWN,
        sum(grad.spoilt for grad in grads),
        dead,
    )
