"""Images of other forms: resized, channels as pixels."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.eager._core.node import class_named
from gradcli.eager._core.tensor import Tensor
from gradcli.eager._engine.record import declared
from gradcli.eager._engine.rule_node import FixedNode
from gradcli.eager.nn._layer import Layer, checks, fused, layer, need_tensor
from gradcli.eager.nn._windows import Rows, Sizes, picked, spread
from gradcli.primitives import catalogue
from gradcli.primitives.broadcasting import together

if TYPE_CHECKING:
    pass


@checks
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


def _shuffled(x: Any, *, factor: int) -> Any:
    *lead, channels, rows, columns = x.shape
    at = len(lead)
    shape = (*lead, channels // factor**2, factor, factor, rows, columns)
    order = (*range(at), at, at + 3, at + 1, at + 4, at + 2)
    out = (*lead, channels // factor**2, rows * factor, columns * factor)
    moved = catalogue()["permute"](declared("reshape", x, shape=shape), axes=tuple([i - len(shape) for i in order]))
    return declared("reshape", moved, shape=out)


@checks
def pixel_shuffle(input: Tensor, upscale_factor: int) -> Tensor:
    """(N, C r r, H, W) to (N, C, H r, W r): channels become pixels."""
    if input.ndim < 3 or upscale_factor <= 0 or input.shape[-3] % upscale_factor**2:
        raise RuntimeError(f"pixel_shuffle: {list(input.shape)} does not fit an upscale_factor of {upscale_factor}")
    return fused(_shuffled, (input,), "PixelShuffleBackward0", factor=upscale_factor)


# --- layers ----------------------------------------------------------------------------------------------------------


class _Upsample(Layer):
    def _build(self, **options: Any) -> None:
        self.name, factor = type(self).__name__, options["scale_factor"]
        if factor is not None:
            options["scale_factor"] = tuple(map(float, factor)) if isinstance(factor, (tuple, list)) else float(factor)
        super()._build(**options)

    def extra_repr(self) -> str:
        what = f"size={self.size}" if self.scale_factor is None else f"scale_factor={self.scale_factor}"
        return f"{what}, mode={self.mode!r}"


Upsample = layer("Upsample", interpolate, base=_Upsample, leave_out=("antialias",))
PixelShuffle = layer("PixelShuffle", pixel_shuffle)
