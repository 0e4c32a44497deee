"""Images and a size go in, images of that size come out: averages, extremes, nearest pixels, channels as pixels."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.eager.movement import squeeze, unsqueeze
from gradcli.eager.nn.functional.fusing import declared, fused, need_tensor
from gradcli.eager.nn.functional.padding import Rows, picked
from gradcli.eager.nn.functional.pooling import row_of
from gradcli.eager.nn.functional.windows import Sizes, spread, taken
from gradcli.eager.nodes import class_named
from gradcli.eager.reductions import mean
from gradcli.eager.rules import FixedNode
from gradcli.eager.tensor import Tensor
from gradcli.primitives import catalogue
from gradcli.primitives.broadcasting import together

if TYPE_CHECKING:
    from gradcli.eager.signatures import Wished


def _cells(sizes: Sizes, out: Sizes) -> list[tuple[Sizes, Sizes]]:
    """Start and size of each window, in C order."""
    ranges = [
        [(i * n // count, -(-(i + 1) * n // count) - i * n // count) for i in range(count)]
        for n, count in zip(sizes, out, strict=True)
    ]
    cells: list[tuple[Sizes, Sizes]] = [((), ())]
    for one in ranges:
        cells = [((*start, first), (*size, length)) for start, size in cells for first, length in one]
    return cells


def _adapted(x: Any, *, out: Sizes, largest: bool) -> Any:
    axes = len(out)
    lead = tuple(x.shape[: len(x.shape) - axes])
    parts = []
    for start, size in _cells(tuple(x.shape[-axes:]), out):
        flat = declared("reshape", taken(x, start, (1,) * axes, size), shape=(*lead, math.prod(size)))
        if largest:
            at = declared("reshape", catalogue()["argmax"](flat, axis=-1), shape=(*lead, 1))
            parts.append(catalogue()["take_along"](flat, at, axis=-1))
        else:
            parts.append(declared("mean", flat, axis=-1, keepdims=True))
    whole = parts[0] if len(parts) == 1 else x.bind(catalogue()["concat"], tuple(parts), {"axis": -1})
    return declared("reshape", whole, shape=(*lead, *out))


def _adaptive(name: str, axes: int, input: Tensor, output_size: Any, largest: bool) -> Tensor:
    need_tensor(input, name)
    if not largest and output_size in (1, (1,) * axes, [1] * axes) and input.ndim >= axes:
        return mean(input, tuple(range(-axes, 0)), True)
    if input.ndim not in (axes + 1, axes + 2):
        raise RuntimeError(f"{name}(): Expected {axes + 1}D or {axes + 2}D tensor, but got {list(input.shape)}")
    given = output_size if isinstance(output_size, (tuple, list)) else (output_size,) * axes
    sizes = tuple(input.shape[-axes:])
    out = spread(tuple([n if one is None else one for one, n in zip(given, sizes, strict=True)]), axes, "output_size")
    if any(n < 0 for n in out):
        raise RuntimeError(f"{name}(): elements of output_size must be greater than or equal to 0")
    node = "AdaptiveMaxPool2DBackward0" if largest else "AdaptiveAvgPool2DBackward0"
    return fused(_adapted, (input,), node, out=out, largest=largest)


def adaptive_avg_pool2d(input: Tensor, output_size: Wished) -> Tensor:
    """Averages over windows that fill (N, C, H, W) in so many rows and columns."""
    return _adaptive("adaptive_avg_pool2d", 2, input, output_size, False)


def adaptive_avg_pool1d(input: Tensor, output_size: Wished) -> Tensor:
    """Averages over so many windows that fill (N, C, L)."""
    if input.ndim not in (2, 3):
        raise RuntimeError(f"adaptive_avg_pool1d(): Expected 2D or 3D tensor, but got {list(input.shape)}")
    return squeeze(adaptive_avg_pool2d(unsqueeze(input, -2), (1, row_of(output_size))), -2)


def adaptive_max_pool2d(input: Tensor, output_size: Wished) -> Tensor:
    """The largest entries of windows that fill (N, C, H, W) in so many rows and columns."""
    return _adaptive("adaptive_max_pool2d", 2, input, output_size, True)


def adaptive_max_pool1d(input: Tensor, output_size: Wished) -> Tensor:
    """The largest entries of so many windows that fill (N, C, L)."""
    if input.ndim not in (2, 3):
        raise RuntimeError(f"adaptive_max_pool1d(): Expected 2D or 3D tensor, but got {list(input.shape)}")
    return squeeze(adaptive_max_pool2d(unsqueeze(input, -2), (1, row_of(output_size))), -2)


# --- pixels repeated and rearranged ----------------------------------------------------------------------------------


def interpolate(
    input: Tensor,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Tensor:
    """Images of another size: each pixel is the nearest one, or with "linear" (of rows) and "bilinear" a mean of those
    around it; `align_corners` puts the corners on each other. RuntimeError for other modes and for antialias.

    >>> import gradcli.eager as torch
    >>> interpolate(torch.tensor([[[0.0, 4.0]]]), scale_factor=2, mode="linear")
    tensor([[[0., 1., 3., 4.]]])
    """
    need_tensor(input, "interpolate")
    if mode not in ("nearest", "linear", "bilinear"):
        raise RuntimeError(f"interpolate with mode={mode!r} is not supported: only nearest, linear, bilinear are")
    if antialias:
        raise RuntimeError("interpolate: antialias is not supported")
    if align_corners is not None and mode == "nearest":
        raise ValueError("align_corners option can only be set with the interpolating modes: linear | bilinear")
    if (size is None) is (scale_factor is None):
        raise ValueError("either size or scale_factor should be defined, and only one of them")
    axes = input.ndim - 2
    if axes < 1 or axes > 3:
        raise NotImplementedError(f"Input Error: Only 3D, 4D and 5D input Tensors supported (got {input.ndim}D)")
    if mode != "nearest" and axes != ("linear", "bilinear").index(mode) + 1:
        raise NotImplementedError(f"Got {input.ndim}D input, but {mode} mode does not fit it")
    sizes = tuple(input.shape[2:])
    factors: tuple[float, ...] | None = None
    if size is not None:
        out = spread(size, axes, "size")
    else:
        factors = tuple(scale_factor) if isinstance(scale_factor, (tuple, list)) else (scale_factor,) * axes
        out = tuple([math.floor(n * by) for n, by in zip(sizes, factors, strict=True)])
    if any(n < 1 for n in out):
        raise RuntimeError(f"Input and output sizes should be greater than 0, but got {list(sizes)} and {list(out)}")
    if recompute_scale_factor:
        factors = None
    if mode != "nearest":
        return _mixed(input, out, factors, bool(align_corners))
    rows = []
    for i, (n, count) in enumerate(zip(sizes, out, strict=True)):
        ratio = n / count if factors is None else 1 / factors[i]
        rows.append(tuple([min(math.floor(j * np.float32(ratio)), n - 1) for j in range(count)]))
    return fused(picked, (input,), f"UpsampleNearest{axes}DBackward0", rows=tuple(rows))


def _between(x: Any, *shares: Any, below: Rows, above: Rows) -> Any:
    """Along each of the last axes a mean of two entries, by shares of the upper one: the last axis first."""
    count = len(below)
    for i in range(count - 1, -1, -1):
        share = declared("reshape", shares[i], shape=(len(below[i]), *(1,) * (count - 1 - i)))
        parts = [catalogue()["take_static"](x, indices=at, axis=i - count) for at in (below[i], above[i])]
        low, one = together(parts[0], 1 - share, verb="multiply")
        high, other = together(parts[1], share, verb="multiply")
        x = low * one + high * other
    return x


def _mixed(input: Tensor, out: Sizes, factors: tuple[float, ...] | None, corners: bool) -> Tensor:
    kind: Any = input.dtype.np.type
    below, above, shares = [], [], []
    for i, (n, count) in enumerate(zip(input.shape[2:], out, strict=True)):
        at = np.arange(count).astype(kind)
        if corners:
            at = at * kind((n - 1) / (count - 1) if count > 1 else 0)
        else:
            ratio = kind(n / count if factors is None else 1 / factors[i])
            at = np.maximum(ratio * (at + kind(0.5)) - kind(0.5), kind(0))
        low = np.minimum(np.floor(at).astype(np.int64), n - 1)
        below.append(tuple(low.tolist()))
        above.append(tuple(np.minimum(low + 1, n - 1).tolist()))
        shares.append(Tensor(np.clip(at - low.astype(kind), kind(0), kind(1))))
    name = f"Upsample{'Linear' if len(out) == 1 else 'Bilinear'}{len(out)}DBackward0"
    found = fused(_between, (input, *shares), name, edges=1, below=tuple(below), above=tuple(above))
    if found._node is not None:
        found._node.__class__ = class_named(FixedNode, name)  # it keeps shares that follow from sizes, nothing else
    return found


def _shuffled(x: Any, *, factor: int, inverse: bool) -> Any:
    *lead, channels, rows, columns = x.shape
    at = len(lead)
    if inverse:
        shape = (*lead, channels, rows // factor, factor, columns // factor, factor)
        order = (*range(at), at, at + 2, at + 4, at + 1, at + 3)
        out = (*lead, channels * factor**2, rows // factor, columns // factor)
    else:
        shape = (*lead, channels // factor**2, factor, factor, rows, columns)
        order = (*range(at), at, at + 3, at + 1, at + 4, at + 2)
        out = (*lead, channels // factor**2, rows * factor, columns * factor)
    moved = catalogue()["permute"](declared("reshape", x, shape=shape), axes=tuple([i - len(shape) for i in order]))
    return declared("reshape", moved, shape=out)


def pixel_shuffle(input: Tensor, upscale_factor: int) -> Tensor:
    """(N, C r r, H, W) to (N, C, H r, W r): channels become pixels."""
    if input.ndim < 3 or upscale_factor <= 0 or input.shape[-3] % upscale_factor**2:
        raise RuntimeError(f"pixel_shuffle: {list(input.shape)} does not fit an upscale_factor of {upscale_factor}")
    return fused(_shuffled, (input,), "PixelShuffleBackward0", factor=upscale_factor, inverse=False)


def pixel_unshuffle(input: Tensor, downscale_factor: int) -> Tensor:
    """(N, C, H r, W r) to (N, C r r, H, W): pixels become channels."""
    if input.ndim < 3 or downscale_factor <= 0 or any(n % downscale_factor for n in input.shape[-2:]):
        raise RuntimeError(f"pixel_unshuffle: {list(input.shape)} does not fit a downscale_factor {downscale_factor}")
    return fused(_shuffled, (input,), "PixelUnshuffleBackward0", factor=downscale_factor, inverse=True)
