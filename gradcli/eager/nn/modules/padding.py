"""Padding: a frame of one number around the entries of rows, images and volumes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gradcli.eager._core.tensor import Tensor
from gradcli.eager._core.unsupported import ON_TORCH
from gradcli.eager._engine.record import record
from gradcli.eager.nn._layer import Sizes, combined, put, records, taken


def _framed(x: Any, frame: Any, *, before: Sizes, after: Sizes) -> Any:
    """Zeros, or what a frame has, before and after the entries along each axis; negative counts cut off."""
    rows = list(zip(x.shape, before, after, strict=True))
    ones = (1,) * len(rows)
    inner = tuple([n + min(low, 0) + min(high, 0) for n, low, high in rows])
    if inner != tuple(x.shape):
        x = taken(x, tuple([max(-low, 0) for low in before]), ones, inner)
    full = tuple([n + max(low, 0) + max(high, 0) for n, (_, low, high) in zip(inner, rows, strict=True)])
    x = put(x, tuple([max(low, 0) for low in before]), ones, full)
    return combined("add", x, frame) if frame.shape else x


_NODE = "ConstantPadNdBackward0"


@records(_NODE)
def pad(input: Tensor, pad: Sequence[int], mode: str = "constant", value: float | None = None) -> Tensor:
    """A frame around the entries: (left, right) of the last axis, then of the one before it, and so on.

    Negative sizes cut off. RuntimeError for sizes that do not fit, NotImplementedError for frames of copies.

    >>> pad(torch.tensor([[1.0, 2.0, 3.0]]), (2, 1), value=7.0)
    tensor([[7., 7., 1., 2., 3., 7.]])
    """
    if len(pad) % 2:
        raise RuntimeError("Padding length must be divisible by 2")
    if mode != "constant":
        raise NotImplementedError(f"pad(mode={mode!r}) is not part of gradcli; {ON_TORCH}")
    if len(pad) > 2 * input.ndim:
        raise RuntimeError(f"{len(pad)} sizes of padding are too many for {input.ndim} dimensions")
    pairs = [(0, 0)] * (input.ndim - len(pad) // 2) + [(pad[i], pad[i + 1]) for i in range(len(pad) - 2, -1, -2)]
    if any(n + low + high < 0 for n, (low, high) in zip(input.shape, pairs, strict=True)):
        raise RuntimeError(f"pad: {tuple(pad)} would cut off more than the whole of {list(input.shape)}")
    frame: Any = False
    if value:
        sizes = [n + low + high for n, (low, high) in zip(input.shape, pairs, strict=True)]
        frame = np.full(sizes, value, input.dtype.np)
        inside = [slice(max(low, 0), n - max(high, 0)) for n, (low, high) in zip(sizes, pairs, strict=True)]
        frame[tuple(inside)] = -0.0  # what it is added to keeps the sign of its zeros
        frame = Tensor(frame)
    ends = {"before": tuple([low for low, _ in pairs]), "after": tuple([high for _, high in pairs])}
    return record(_framed, (input, frame), ends, _NODE, edges=1, keep_integer=True)
