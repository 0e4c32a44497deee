"""Sliding windows and frames of images as slices, in graph operations: what convolution, pooling and padding share."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

from gradcli.eager._engine.record import declared
from gradcli.primitives import catalogue

if TYPE_CHECKING:
    from collections.abc import Iterator

Sizes = tuple[int, ...]
Rows = tuple[Sizes, ...]


def spread(value: Any, count: int, what: str) -> Sizes:
    """One whole number for each axis. RuntimeError for another count, TypeError for what is no whole number."""
    if isinstance(value, int) and not isinstance(value, bool):
        return (value,) * count
    if not isinstance(value, (tuple, list)) or not all(isinstance(n, int) for n in value):
        raise TypeError(f"{what} must be a whole number or a tuple of them, not {value!r}")
    if len(value) == 1:
        return tuple(value) * count
    if len(value) != count:
        raise RuntimeError(f"expected {what} to be a single integer value or a list of {count} values, but got {value}")
    return tuple(value)


def places_of(kernel: Sizes, dilation: Sizes) -> Iterator[Sizes]:
    """Where each entry of a kernel stands in a window, in C order."""
    for place in itertools.product(*[range(n) for n in kernel]):
        yield tuple([at * gap for at, gap in zip(place, dilation, strict=True)])


def taken(x: Any, start: Sizes, step: Sizes, size: Sizes) -> Any:
    """Slices along the last axes; the axes before them stay whole."""
    lead = len(x.shape) - len(start)
    return catalogue()["slice"](
        x, start=(0,) * lead + start, step=(1,) * lead + step, size=tuple(x.shape[:lead]) + size
    )


def put(x: Any, start: Sizes, step: Sizes, size: Sizes) -> Any:
    """The transpose of `taken`: entries at their places among zeros of this size."""
    lead = len(x.shape) - len(start)
    shape = tuple(x.shape[:lead]) + size
    if shape == tuple(x.shape):
        return x
    return catalogue()["unslice"](x, shape=shape, start=(0,) * lead + start, step=(1,) * lead + step)


def exchanged(x: Any) -> Any:
    """The first two axes exchanged."""
    rank = len(x.shape)
    return catalogue()["permute"](x, axes=(1 - rank, -rank, *range(2 - rank, 0)))


def reshaped(x: Any, *shape: int) -> Any:
    return declared("reshape", x, shape=tuple(shape))


def edged(x: Any, before: Sizes, after: Sizes) -> Any:
    lead = (0,) * (len(x.shape) - len(before))
    return framed(x, before=lead + before, after=lead + after)


def picked(x: Any, *, rows: Rows) -> Any:
    """Entries by their positions along each of the last axes."""
    for i, at in enumerate(rows):
        x = catalogue()["take_static"](x, indices=at, axis=i - len(rows))
    return x


def framed(x: Any, *, before: Sizes, after: Sizes) -> Any:
    """Zeros before and after the entries along each axis; negative counts cut off."""
    slices, unslice = catalogue()["slice"], catalogue()["unslice"]
    first = tuple(max(-n, 0) for n in before)
    sizes = tuple(n - start - max(-end, 0) for n, start, end in zip(x.shape, first, after, strict=True))
    steps = (1,) * len(sizes)
    if sizes != tuple(x.shape):
        x = slices(x, start=first, step=steps, size=sizes)
    shape = tuple(max(low, 0) + n + max(high, 0) for low, n, high in zip(before, sizes, after, strict=True))
    start = tuple(max(low, 0) for low in before)
    return unslice(x, shape=shape, start=start, step=steps) if shape != sizes else x
