"""Images of other forms: resized, windows as columns and back, channels as pixels."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.eager._core.node import class_named
from gradcli.eager._core.tensor import Tensor
from gradcli.eager._engine.record import declared
from gradcli.eager._engine.rule_node import FixedNode
from gradcli.eager.nn.composite import checks, fused, need_tensor
from gradcli.eager.nn.layer import Layer, layer
from gradcli.eager.nn.windows import Rows, Sizes, edged, picked, places_of, positive, put, reshaped, spread, taken
from gradcli.primitives import catalogue
from gradcli.primitives.broadcasting import together

if TYPE_CHECKING:
    from gradcli.eager._engine.arguments import Extents


# --- windows as columns ----------------------------------------------------------------------------------------------


def _unfolded(x: Any, *, kernel: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes, out: Sizes) -> Any:
    *lead, channels, height, width = x.shape
    batch = lead[0] if lead else 1
    x = edged(reshaped(x, batch, channels, height, width), padding, padding)
    parts = [
        reshaped(taken(x, start, stride, out), batch, channels, 1, math.prod(out))
        for start in places_of(kernel, dilation)
    ]
    whole = x.bind(catalogue()["concat"], tuple(parts), {"axis": -2})
    return reshaped(whole, *lead, channels * math.prod(kernel), math.prod(out))


def _folded(
    x: Any, *, kernel: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes, windows: Sizes, out: Sizes
) -> Any:
    *lead, rows, _ = x.shape
    batch, count = lead[0] if lead else 1, math.prod(kernel)
    channels = rows // count
    x = reshaped(x, batch, channels, count, *windows)
    full = tuple([n + 2 * edge for n, edge in zip(out, padding, strict=True)])
    whole = None
    for at, start in enumerate(places_of(kernel, dilation)):
        part = reshaped(taken(x, (at, 0, 0), (1, 1, 1), (1, *windows)), batch, channels, *windows)
        part = put(part, start, stride, full)
        whole = part if whole is None else whole + part
    trimmed = taken(whole, padding, (1, 1), out) if any(padding) else whole
    return reshaped(trimmed, *lead, channels, *out)


def _windows(sizes: Sizes, kernel: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes) -> Sizes:
    rows = zip(sizes, kernel, stride, padding, dilation, strict=True)
    return tuple([(n + 2 * edge - gap * (k - 1) - 1) // by + 1 for n, k, by, edge, gap in rows])


def _sizes(name: str, kernel: Extents, stride: Extents, padding: Extents, dilation: Extents) -> tuple[Sizes, ...]:
    """Kernel, stride, padding and dilation along both axes."""
    given = {"kernel_size": kernel, "stride": stride, "padding": padding, "dilation": dilation}
    found = {what: spread(sizes, 2, what) for what, sizes in given.items()}
    for what in ("kernel_size", "stride", "dilation"):
        positive(name, found[what], what.replace("_", " "))
    return tuple(found.values())


@checks
def unfold(
    input: Tensor, kernel_size: Extents, dilation: Extents = 1, padding: Extents = 0, stride: Extents = 1
) -> Tensor:
    """The windows of images (N, C, H, W) as columns (N, C * KH * KW, L)."""
    need_tensor(input, "unfold")
    if input.ndim not in (3, 4):
        raise RuntimeError(f"Input Error: Expected 3D or 4D (batch mode) tensor, got {input.ndim}D")
    kernel, by, edges, gaps = _sizes("unfold", kernel_size, stride, padding, dilation)
    out = _windows(tuple(input.shape[-2:]), kernel, by, edges, gaps)
    if any(n < 1 for n in out):
        raise RuntimeError(f"Given input with spatial size {list(input.shape[-2:])}, the windows {kernel} do not fit")
    return fused(
        _unfolded, (input,), "Im2ColBackward0", kernel=kernel, stride=by, padding=edges, dilation=gaps, out=out
    )


@checks
def fold(
    input: Tensor,
    output_size: Extents,
    kernel_size: Extents,
    dilation: Extents = 1,
    padding: Extents = 0,
    stride: Extents = 1,
) -> Tensor:
    """The transpose of `unfold`: columns (N, C * KH * KW, L) added up to images of a size."""
    need_tensor(input, "fold")
    if input.ndim not in (2, 3):
        raise RuntimeError(f"Input Error: Expected 2D or 3D (batch mode) tensor, got {input.ndim}D")
    kernel, by, edges, gaps = _sizes("fold", kernel_size, stride, padding, dilation)
    out = spread(output_size, 2, "output_size")
    windows = _windows(out, kernel, by, edges, gaps)
    if input.shape[-2] % math.prod(kernel) or math.prod(windows) != input.shape[-1] or min(windows) < 1:
        raise RuntimeError(
            f"Given output_size={out} and kernel_size={kernel}, expected {math.prod(windows)} columns of a multiple of "
            f"{math.prod(kernel)} entries, but the input is {list(input.shape)}"
        )
    return fused(
        _folded, (input,), "Col2ImBackward0",
        kernel=kernel, stride=by, padding=edges, dilation=gaps, windows=windows, out=out,
    )  # fmt: skip


# --- pixels repeated and rearranged ----------------------------------------------------------------------------------


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


@checks
def pixel_shuffle(input: Tensor, upscale_factor: int) -> Tensor:
    """(N, C r r, H, W) to (N, C, H r, W r): channels become pixels."""
    if input.ndim < 3 or upscale_factor <= 0 or input.shape[-3] % upscale_factor**2:
        raise RuntimeError(f"pixel_shuffle: {list(input.shape)} does not fit an upscale_factor of {upscale_factor}")
    return fused(_shuffled, (input,), "PixelShuffleBackward0", factor=upscale_factor, inverse=False)


@checks
def pixel_unshuffle(input: Tensor, downscale_factor: int) -> Tensor:
    """(N, C, H r, W r) to (N, C r r, H, W): pixels become channels."""
    if input.ndim < 3 or downscale_factor <= 0 or any(n % downscale_factor for n in input.shape[-2:]):
        raise RuntimeError(f"pixel_unshuffle: {list(input.shape)} does not fit a downscale_factor {downscale_factor}")
    return fused(_shuffled, (input,), "PixelUnshuffleBackward0", factor=downscale_factor, inverse=True)


# --- layers ----------------------------------------------------------------------------------------------------------


class _Upsample(Layer):
    def _keep(self, **options: Any) -> None:
        self.name, factor = type(self).__name__, options["scale_factor"]
        if factor is not None:
            options["scale_factor"] = tuple(map(float, factor)) if isinstance(factor, (tuple, list)) else float(factor)
        super()._keep(**options)

    def extra_repr(self) -> str:
        what = f"size={self.size}" if self.scale_factor is None else f"scale_factor={self.scale_factor}"
        return f"{what}, mode={self.mode!r}"


Unfold = layer("Unfold", unfold)
Fold = layer("Fold", fold)
Upsample = layer("Upsample", interpolate, base=_Upsample, leave_out=("antialias",))
PixelShuffle = layer("PixelShuffle", pixel_shuffle)
PixelUnshuffle = layer("PixelUnshuffle", pixel_unshuffle)
