"""What a record notes of the operands of some operations while these can be read: dead units, masked rows, domains.

Sizes are kept of every value. Whether a softmax had nothing to choose from, or an operand of a logarithm was zero, can
be seen only when the operation runs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gradcli.recording.runs.tensors import flat

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gradcli.recording.runs.source_lines import SourceLine
    from gradcli.recording.runs.tensors import Entry, TensorReader

SCORES = {  # which operand of a softmax holds the scores, or of attention the mask that is added to them
    "Softmax": 0,
    "LogSoftmax": 0,
    "ScaledDotProductFlashAttentionForCpu": 3,
}
LOGITS = {"CrossEntropyLoss", "LogSoftmax", "Softmax", "NllLoss", "NllLoss2D", "BinaryCrossEntropyWithLogits"}
LOOKS = 3  # operations of a line whose operands are looked at
EVEN = 1e-3  # how far the sum of probabilities may be from 1


class Units(NamedTuple):
    """Which units of an activation were zero in every row, then which were positive; of how many rows."""

    signs: Any
    rows: int


class MaskedRows(NamedTuple):
    """How many rows of a softmax were -inf throughout and became NaN, and of how many."""

    rows: int
    of: int


class NotedOperand(NamedTuple):
    """What an operand was like when the first NaN or infinity was made of it."""

    size: int
    zeros: int
    negative: int
    low: float
    high: float


class FailedOperands(NamedTuple):
    """The operands of an operation that made NaN or infinity of finite numbers; None for whole numbers."""

    operands: tuple[NotedOperand | None, ...]


class Probabilities(NamedTuple):
    """The first operand of a loss that takes logits held probabilities."""

    axis: int


class AlongRows(NamedTuple):
    """A softmax of a matrix made each column, not each row, sum to 1."""


class NotLogarithms(NamedTuple):
    """The first operand of nll_loss held no logarithms of probabilities of its classes, but of those along `axis`."""

    axis: int | None  # None where entries lie above 0


class Remarks:
    """Notes what is remarkable about operations of one run."""

    def __init__(self, tensors: TensorReader) -> None:
        self.tensors = tensors
        self.looked: dict[tuple[SourceLine | None, str], int] = {}

    def on(self, entry: Entry, name: str, operands: Sequence[Any], result: Any) -> Any:
        """The remark on an operation of this name, if there is one."""
        name = name.partition("Backward")[0]
        if name == "Relu":
            signs, shape = self.tensors.unit_signs(result), entry.shape
            return None if signs is None else Units(signs, shape[0] if len(shape) > 1 else 1)
        if not entry.finite:
            return self._masked(name, operands, result) or (self._domain(operands) if entry.calm else None)
        if name in LOGITS and entry.wanted and operands:
            times = self.looked[entry.line, name] = self.looked.get((entry.line, name), 0) + 1
            if times <= LOOKS:
                array = self.tensors.array(operands[0])
                if name == "Softmax":
                    return along_rows(self.tensors.array(result))
                known = probabilities(array, name.startswith("Binary"))
                if known is None and name == "LogSoftmax":
                    return along_rows(np.exp(self.tensors.array(result)))
                return not_logarithms(array) if known is None and name.startswith("NllLoss") else known
        return None

    def _masked(self, name: str, operands: Sequence[Any], result: Any) -> MaskedRows | None:
        if name not in SCORES or len(operands) <= SCORES[name]:
            return None
        scores = self.tensors.array(operands[SCORES[name]])
        if scores.dtype.kind == "b":  # a mask that says which scores count
            scores = np.where(scores, 0.0, -np.inf)
        return masked_rows(scores, self.tensors.array(result))

    def _domain(self, operands: Sequence[Any]) -> FailedOperands:
        arrays = [self.tensors.array(x) for x in flat(operands) if self.tensors.is_tensor(x)]
        return FailedOperands(tuple(map(operand, arrays)))


def operand(array: Any) -> NotedOperand | None:
    """What an operand is like; None for whole numbers and complex ones."""
    if array.dtype.kind != "f":
        return None
    if not array.size:
        return NotedOperand(0, 0, 0, 0.0, 0.0)
    return NotedOperand(
        array.size, int((array == 0).sum()), int((array < 0).sum()), float(array.min()), float(array.max())
    )


def probabilities(array: Any, binary: bool) -> Probabilities | None:
    """Whether an array holds probabilities of two classes or more, which sum to 1, or `binary` ones."""
    if array.dtype.kind != "f" or array.size < 2 or not (array.min() >= 0 and array.max() <= 1):
        return None
    if binary:
        return Probabilities(-1) if array.size >= LOOKS else None
    for axis in (1, -1) if array.ndim > 1 else (-1,):
        if array.shape[axis] > 1 and np.abs(array.sum(axis=axis, dtype=np.float64) - 1).max() < EVEN:
            return Probabilities(axis)
    return None


def along_rows(array: Any) -> AlongRows | None:
    """Whether the columns of a matrix, and not its rows, sum to 1."""
    if array.dtype.kind != "f" or array.ndim != 2 or min(array.shape) < 2:
        return None
    columns, rows = (np.abs(array.sum(axis=axis, dtype=np.float64) - 1).max() for axis in (0, 1))
    return AlongRows() if columns < EVEN < rows else None


def not_logarithms(array: Any) -> NotLogarithms | None:
    """What scores of classes, which lie along axis 1 or the only one, are instead of log-probabilities."""
    if array.dtype.kind != "f" or not array.size:
        return None
    if array.max() > EVEN:
        return NotLogarithms(None)
    classes, powers = min(1, array.ndim - 1), np.exp(array, dtype=np.float64)
    even = [np.abs(powers.sum(axis=axis) - 1).max() < EVEN for axis in range(array.ndim)]
    return NotLogarithms(even.index(True)) if any(even) and not even[classes] else None


def masked_rows(scores: Any, result: Any) -> MaskedRows | None:
    """How many rows of scores are -inf throughout and NaN in a softmax of them, and of how many; None for none.

    Rows lie along the last axis for which this holds. `result` may be an attention with these weights, whose last axis
    differs, and `scores` what is added to its scores.
    """
    shape = result.shape
    if np.isnan(scores).any():  # there was NaN before
        return None
    for axis in range(scores.ndim - 1, -1, -1) if scores.shape == shape else (-1,):
        rows = np.isneginf(scores).all(axis=axis)
        moved = np.moveaxis(result, axis, -1)
        rows = np.broadcast_to(rows, moved.shape[:-1])
        if rows.any() and np.isnan(moved[rows]).all():
            return MaskedRows(int(rows.sum()), int(rows.size))
    return None
