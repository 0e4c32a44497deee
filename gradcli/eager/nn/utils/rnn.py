"""Sequences of different lengths as one tensor: padded with a value, or packed step by step without padding."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from gradcli.eager._core import dtypes
from gradcli.eager._core.tensor import Tensor
from gradcli.eager._core.unsupported import room
from gradcli.eager._ops.creation import as_tensor, full

__all__ = ["PackedSequence", "pack_padded_sequence", "pad_packed_sequence", "pad_sequence"]
__getattr__, __dir__ = room("nn.utils.rnn", __all__)


class PackedSequence(NamedTuple):
    """The rows of a batch of sequences, step by step; `batch_sizes` says how many sequences each step has.

    Where the batch was sorted by length, `sorted_indices` is its order, and `unsorted_indices` leads back.
    """

    data: Any
    batch_sizes: Any
    sorted_indices: Any = None
    unsorted_indices: Any = None


def pad_sequence(sequences: Sequence[Tensor], batch_first: bool = False, padding_value: float = 0.0) -> Tensor:
    """Sequences (L_i, *) as one tensor (longest, N, *), or (N, longest, *) with `batch_first`.

    RuntimeError for no sequences, and for other axes that differ.

    >>> pad_sequence([torch.ones(3), torch.ones(1)], batch_first=True)
    tensor([[1., 1., 1.],
            [1., 0., 0.]])
    """
    sequences = list(sequences)
    if not sequences:
        raise RuntimeError("received an empty list of sequences")
    longest = max([len(sequence) for sequence in sequences])
    shape = (len(sequences), longest) if batch_first else (longest, len(sequences))
    padded = full((*shape, *sequences[0].shape[1:]), padding_value, dtype=sequences[0].dtype)
    for i, x in enumerate(sequences):
        if x.shape[1:] != sequences[0].shape[1:]:
            raise RuntimeError(f"sizes {list(x.shape)} and {list(sequences[0].shape)} differ after the first axis")
        padded[(i, slice(len(x))) if batch_first else (slice(len(x)), i)] = x
    return padded


def pack_padded_sequence(
    input: Tensor, lengths: Any, batch_first: bool = False, enforce_sorted: bool = True
) -> PackedSequence:
    """The rows of a padded batch (L, N, *), or (N, L, *), that belong to its sequences, the longest sequence first.

    RuntimeError for lengths that are not positive, of another number, too large, or not sorted with `enforce_sorted`.

    >>> pack_padded_sequence(torch.tensor([[1, 4], [2, 5], [3, 0]]), [3, 2]).data
    tensor([1, 4, 2, 5, 3])
    """
    sizes = np.array(as_tensor(lengths, dtypes.int64)._array)
    x: Any = input.transpose(0, 1) if batch_first else input
    order = back = None
    if not enforce_sorted:
        at = np.argsort(-sizes, kind="stable")
        order, back, sizes = Tensor(at), Tensor(np.argsort(at)), sizes[at]
        x = x.index_select(1, order)
    if sizes.shape != (x.shape[1],):
        raise RuntimeError(f"expected len(lengths) to be the batch size {x.shape[1]}, but got {sizes.size}")
    if (sizes <= 0).any():
        raise RuntimeError("the length of each sequence has to be greater than 0")
    if (np.diff(sizes) > 0).any():
        raise RuntimeError("lengths must be sorted in decreasing order: pass enforce_sorted=False")
    if sizes[0] > x.shape[0]:
        raise RuntimeError(f"a length of {sizes[0]} is more than the {x.shape[0]} steps of the input")
    steps = np.arange(sizes[0])
    rows = np.nonzero(steps[:, None] < sizes)
    counts = (sizes > steps[:, None]).sum(1)
    return PackedSequence(x[Tensor(rows[0]), Tensor(rows[1])], Tensor(counts), order, back)


def pad_packed_sequence(
    sequence: PackedSequence, batch_first: bool = False, padding_value: float = 0.0, total_length: int | None = None
) -> tuple[Tensor, Tensor]:
    """The padded batch of a packed one, and the lengths of its sequences. ValueError for too small a `total_length`."""
    counts = sequence.batch_sizes._array
    if total_length is not None and total_length < len(counts):
        raise ValueError(f"total_length is at least the length of the longest sequence, {len(counts)}")
    steps = np.zeros(total_length or len(counts), np.int64)
    steps[: len(counts)] = counts
    place = np.arange(counts[0])
    there = place < steps[:, None]
    at = np.where(there, np.cumsum(steps)[:, None] - steps[:, None] + place, 0)
    padded = sequence.data[Tensor(at)]
    padding = Tensor(~there.reshape(there.shape + (1,) * (padded.ndim - 2)))
    padded = padded.masked_fill(padding, padding_value)
    lengths: Any = Tensor((counts[:, None] > place).sum(0))
    if sequence.unsorted_indices is not None:
        padded = padded.index_select(1, sequence.unsorted_indices)
        lengths = lengths[sequence.unsorted_indices]
    return padded.transpose(0, 1) if batch_first else padded, lengths
