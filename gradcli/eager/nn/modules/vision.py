"""Images, rows and volumes in other forms: padded, resized by interpolation, with channels as pixels."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from gradcli.eager._core.modes import no_grad
from gradcli.eager._core.node import class_named
from gradcli.eager._core.tensor import Tensor
from gradcli.eager._engine.arguments import options
from gradcli.eager._engine.record import declared, record
from gradcli.eager._engine.rule_node import FixedNode
from gradcli.eager.nn._layer import Layer, checks, fused, layer, need_tensor
from gradcli.eager.nn._windows import Rows, Sizes, framed, picked, spread
from gradcli.primitives import catalogue
from gradcli.primitives.broadcasting import together

if TYPE_CHECKING:
    from collections.abc import Sequence


@checks
def pad(input: Tensor, pad: Sequence[int], mode: str = "constant", value: float | None = None) -> Tensor:
    """A frame around the entries: (left, right) of the last axis, then of the one before it, and so on.

    It holds one number, or entries of the tensor: "reflect" turns round at the edge, "replicate" repeats the edge,
    "circular" starts again from the other end (as one node, where PyTorch makes a chain of copies). Negative sizes cut
    off. RuntimeError for sizes that do not fit, NotImplementedError where the frame of copies has not one pair for each
    axis of the image.

    >>> import gradcli.eager as torch
    >>> pad(torch.tensor([[1.0, 2.0, 3.0]]), (2, 1), mode="reflect")
    tensor([[3., 2., 1., 2., 3., 2.]])
    """
    if len(pad) % 2:
        raise RuntimeError("Padding length must be divisible by 2")
    if mode in ("reflect", "replicate", "circular"):
        if value is not None:
            raise RuntimeError(f'Padding mode "{mode}" doesn\'t take in value argument')
        return _copied_around(input, tuple(pad), mode)
    if mode != "constant":
        raise NotImplementedError(f"Unrecognised padding mode {mode}")
    if len(pad) > 2 * input.ndim:
        raise RuntimeError(f"{len(pad)} sizes of padding are too many for {input.ndim} dimensions")
    pairs = [(0, 0)] * (input.ndim - len(pad) // 2) + [(pad[i], pad[i + 1]) for i in range(len(pad) - 2, -1, -2)]
    if any(n + low + high < 0 for n, (low, high) in zip(input.shape, pairs, strict=True)):
        raise RuntimeError(f"pad: {tuple(pad)} would cut off more than there is of {list(input.shape)}")
    before, after = tuple([low for low, _ in pairs]), tuple([high for _, high in pairs])
    found = record(framed, (input,), {"before": before, "after": after}, "ConstantPadNdBackward0", keep_integer=True)
    if value:
        inside = tuple(
            [slice(max(low, 0), n - max(high, 0)) for n, (low, high) in zip(found.shape, pairs, strict=True)]
        )
        frame = np.ones(tuple(found.shape), np.bool_)
        frame[inside] = False
        with no_grad():
            found.masked_fill_(Tensor(frame), value)
            found._counter.value = 0
    return found


_AROUND = {"reflect": "ReflectionPad{}DBackward0", "replicate": "ReplicationPad{}DBackward0", "circular": "CopySlices"}


def _copied_around(x: Tensor, pad: tuple[int, ...], mode: str) -> Tensor:
    axes = len(pad) // 2
    if not 1 <= axes <= 3 or x.ndim not in (axes + 1, axes + 2):
        raise NotImplementedError(
            f"Padding size {len(pad)} is not supported for {x.ndim}D input tensor: for a frame of copies there is one "
            "pair of sizes for each axis of an image, which has one or two axes before them"
        )
    wraps = mode == "circular"
    if 0 in x.shape[-axes - 1 :] and not wraps:
        raise RuntimeError(f"Expected images with entries for a frame of copies, but got {list(x.shape)}")
    rows = []
    for n, low, high in zip(x.shape[-axes:], pad[-2::-2], pad[-1::-2], strict=True):
        count = n + low + high
        if (mode == "reflect" and max(low, high) >= n) or (wraps and max(low, high) > n):
            raise RuntimeError(
                f"Padding size should be less than the corresponding input dimension, but got: ({low}, {high}) at an "
                f"axis of size {n}"
            )
        if count < (0 if wraps else 1):
            raise RuntimeError(f"pad: the input of size {n} is too small for a frame of ({low}, {high})")
        at = np.arange(-low, n + high)
        if mode == "reflect":
            at = n - 1 - np.abs(n - 1 - np.abs(at))
        elif mode == "replicate":
            at = np.clip(at, 0, n - 1)
        else:  # around what is left of the axis
            left = max(n - max(-low, 0) - max(-high, 0), 1)
            at = max(-low, 0) + (np.arange(count) - max(low, 0)) % left
        rows.append(tuple(at.tolist()))
    return fused(picked, (x,), _AROUND[mode].format(axes), rows=tuple(rows))


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


class _Pad(Layer):
    """A frame: (left, right, top, bottom, ...), or one width for all, around the last `_axes`."""

    _axes: ClassVar[int] = 0
    _mode: ClassVar[str] = "constant"
    _options = options("padding")
    _shown = "{self.padding}"
    value: float | None = None

    def _build(self, padding: Any, **more: Any) -> None:
        super()._build(padding=spread(padding, 2 * self._axes, "padding"), **more)

    def forward(self, input: Tensor) -> Tensor:
        """The tensor with its frame."""
        return pad(input, self.padding, self._mode, self.value)


class _ZeroPad(_Pad):
    def _build(self, padding: Any, **more: Any) -> None:
        super()._build(padding, value=0.0)


class _ConstantPad(_Pad):
    _options = options("padding, value")
    _shown = "padding={self.padding}, value={self.value}"


def _frame(name: str, axes: int, mode: str = "constant", base: type[_Pad] = _Pad) -> type[_Pad]:
    return layer(name, pad, base=base, axes=axes, mode=mode)


ConstantPad1d = _frame("ConstantPad1d", 1, base=_ConstantPad)
ConstantPad2d = _frame("ConstantPad2d", 2, base=_ConstantPad)
ConstantPad3d = _frame("ConstantPad3d", 3, base=_ConstantPad)
ZeroPad1d = _frame("ZeroPad1d", 1, base=_ZeroPad)
ZeroPad2d = _frame("ZeroPad2d", 2, base=_ZeroPad)
ZeroPad3d = _frame("ZeroPad3d", 3, base=_ZeroPad)
ReflectionPad1d = _frame("ReflectionPad1d", 1, "reflect")
ReflectionPad2d = _frame("ReflectionPad2d", 2, "reflect")
ReflectionPad3d = _frame("ReflectionPad3d", 3, "reflect")
ReplicationPad1d = _frame("ReplicationPad1d", 1, "replicate")
ReplicationPad2d = _frame("ReplicationPad2d", 2, "replicate")
ReplicationPad3d = _frame("ReplicationPad3d", 3, "replicate")
CircularPad1d = _frame("CircularPad1d", 1, "circular")
CircularPad2d = _frame("CircularPad2d", 2, "circular")
CircularPad3d = _frame("CircularPad3d", 3, "circular")


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
