"""Sequences of different lengths as one tensor: padded with a value."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradcli.eager.factory import full
from gradcli.eager.tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["pad_sequence", "unpad_sequence"]


def pad_sequence(
    sequences: Sequence[Tensor],
    batch_first: bool = False,
    padding_value: float = 0.0,
    padding_side: str = "right",
) -> Tensor:
    """Sequences (L_i, *) as one tensor (longest, N, *), or (N, longest, *) with `batch_first`; padded on a side.

    RuntimeError for no sequences, for other axes that differ, and for an unknown side.

    >>> import gradcli.eager as torch
    >>> pad_sequence([torch.ones(3), torch.ones(1)], batch_first=True)
    tensor([[1., 1., 1.],
            [1., 0., 0.]])
    """
    if isinstance(sequences, Tensor):
        sequences = list(sequences.unbind(0))
    if not isinstance(sequences, (list, tuple)):
        sequences = tuple(sequences)
    if not sequences:
        raise RuntimeError("received an empty list of sequences")
    if padding_side not in ("left", "right"):
        raise RuntimeError(f"padding_side is 'left' or 'right', not {padding_side!r}")
    longest = max([len(one) for one in sequences])
    shape = (len(sequences), longest) if batch_first else (longest, len(sequences))
    padded = full((*shape, *sequences[0].shape[1:]), padding_value, dtype=sequences[0].dtype)
    for i, one in enumerate(sequences):
        if one.shape[1:] != sequences[0].shape[1:]:
            raise RuntimeError(f"the sizes {list(one.shape)} and {list(sequences[0].shape)} differ behind the first")
        part = slice(0, len(one)) if padding_side == "right" else slice(longest - len(one), longest)
        padded[(i, part) if batch_first else (part, i)] = one
    return padded


def unpad_sequence(padded_sequences: Tensor, lengths: Tensor, batch_first: bool = False) -> list[Tensor]:
    """The sequences of given lengths that `pad_sequence` put together."""
    rows = padded_sequences if batch_first else padded_sequences.transpose(0, 1)
    return [row[: int(n)] for row, n in zip(rows, lengths, strict=True)]
