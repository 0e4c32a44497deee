"""A run of training step by step: the loss, gradients and how far parameters moved; and the same by parameters."""

from __future__ import annotations

from gradcli.base.records import NamedTuple


class StepRow(NamedTuple):
    """One step: NaN stands for what is not known. `zeros` and `dead` are shares, `spoilt` counts entries."""

    number: int
    line: int | None
    loss: float
    norm: float
    ratio: float
    zeros: float
    spoilt: int
    dead: float


class LayerRow(NamedTuple):
    """One parameter over all steps: the norm of its first and last gradient, how far it moved beside its own norm."""

    name: str
    first: float
    last: float
    ratio: float
    zeros: float
    spoilt: int


class TrainingSteps(NamedTuple):
    """The steps of a run, and its parameters."""

    steps: tuple[StepRow, ...]
    layers: tuple[LayerRow, ...]
