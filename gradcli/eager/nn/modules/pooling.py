"""Pooling: the largest or the average entry of each window of an image.

Windows are slices; the largest entry is picked by a position that is computed in the graph.
"""

from __future__ import annotations

from functools import reduce
from operator import add
from typing import Any

import numpy as np

from gradcli.eager._core.tensor import Tensor
from gradcli.eager._engine.arguments import Extents, Shape, Wished, checked
from gradcli.eager._engine.record import declared
from gradcli.eager._ops.table import LAYER, described, op
from gradcli.eager._ops.tensor_reductions import mean
from gradcli.eager._ops.views import squeeze, unsqueeze
from gradcli.eager.nn._layer import Layer, Windows, combined, fused, layer, records, spread, taken
from gradcli.primitives.axes import reshaped
from gradcli.primitives.positions import take_along


def _windows(
    name: str, input: Tensor, axes: int, kernel: Any, stride: Any, padding: Any, dilation: Any, ceil: bool = False
) -> Windows:
    """The windows on a tensor. RuntimeError for sizes that do not fit or leave no entry."""
    if input.ndim not in (axes + 1, axes + 2):
        raise RuntimeError(f"Expected {axes + 1}D or {axes + 2}D input to {name}, but got size {list(input.shape)}")
    if input.dtype.kind < 2:
        raise NotImplementedError(f'"{name}" is not implemented for {input.dtype}')
    kernel, padding = spread(kernel, axes, "kernel_size"), spread(padding, axes, "padding")
    stride = kernel if stride is None else spread(stride, axes, "stride")
    dilation = spread(dilation, axes, "dilation")
    if any(n <= 0 for n in (*kernel, *stride, *dilation)):
        raise RuntimeError(f"{name}: kernel size, stride and dilation should be greater than zero")
    if any(edge < 0 or (edge > n // 2 and name != "unfold") for edge, n in zip(padding, kernel, strict=True)):
        raise RuntimeError(f"{name}: pad should be at most half of effective kernel size, and not negative")
    windows = Windows.on(tuple(input.shape[-axes:]), kernel, stride, padding, dilation, ceil)
    if any(n < 1 for n in windows.out):
        raise RuntimeError(f"{name}: the output size is too small for an input of {list(input.shape)}")
    return windows


def _pooled(formula: Any, input: Tensor, other: Any, windows: Windows, node: str) -> Tensor:
    """A pooling as one node; rows are images of one row, as in PyTorch."""
    if len(windows.out) == 1:
        on_images = Windows(*[(int(name != "padding"), *sizes) for name, sizes in windows._asdict().items()])
        return squeeze(_pooled(formula, unsqueeze(input, -2), other, on_images, node), -2)
    return fused(formula, (input, other), node, edges=1, windows=windows)


def _largest(x: Any, frame: Any, *, windows: Windows) -> Any:
    """The largest entry of each window, the first of several equal ones."""
    parts = declared("stack", windows.parts(x, frame), axis=-1)
    at = declared("argmax", parts, axis=-1)
    return reshaped(take_along(parts, reshaped(at, (*at.shape, 1)), axis=-1), at.shape)


def _averaged(x: Any, counts: Any, *, windows: Windows) -> Any:
    return combined("div", reduce(add, windows.parts(x)), counts)


def _max_pool(axes: int, images: str) -> Any:
    name = f"max_pool{axes}d"

    @op(name=name, node="MaxPool2DWithIndicesBackward0", only=LAYER)
    def pool(
        input: Tensor,
        kernel_size: Extents,
        stride: Extents | None = None,
        padding: Extents = 0,
        dilation: Extents = 1,
        ceil_mode: bool = False,
        return_indices: bool = False,
    ) -> Any:
        if return_indices:
            raise RuntimeError("max_pool: return_indices is not supported: the gradient marks the largest entries")
        windows = _windows(name, input, axes, kernel_size, stride, padding, dilation, ceil_mode)
        frame: Any = 0.0
        if windows.full != windows.sizes:
            outside = np.full(windows.full, -np.inf, input.dtype.np)
            outside[tuple([slice(e, e + n) for e, n in zip(windows.padding, windows.sizes, strict=True)])] = 0
            frame = Tensor(outside)
        return _pooled(_largest, input, frame, windows, pool.node)

    doc = f"""The largest entry of each window of {images}; the gradient goes to it, to the first of several.

    >>> {name}(torch.arange(16.0).reshape(1, {"1, 4, 4" if axes == 2 else "16"}), 2).flatten()
    tensor({"[ 5.,  7., 13., 15.]" if axes == 2 else "[ 1.,  3.,  5.,  7.,  9., 11., 13., 15.]"})
    """
    return checked(described(pool, name, doc))


max_pool1d, max_pool2d = _max_pool(1, "(N, C, L)"), _max_pool(2, "(N, C, H, W)")


@records("AvgPool2DBackward0")
def avg_pool2d(
    input: Tensor,
    kernel_size: Extents,
    stride: Extents | None = None,
    padding: Extents = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """The average of each window of (N, C, H, W); zeros of the padding count where `count_include_pad` is on."""
    if divisor_override is not None:
        raise RuntimeError("avg_pool2d: divisor_override is not supported: multiply the averages instead")
    windows = _windows("avg_pool2d", input, 2, kernel_size, stride, padding, 1, ceil_mode)
    return _averages(input, windows, count_include_pad)


def _averages(input: Tensor, windows: Windows, padded: bool) -> Tensor:
    counts = _counts(windows, padded)
    same = counts.size and (counts == counts.flat[0]).all()
    divisor = float(counts.flat[0]) if same else Tensor(counts.astype(input.dtype.np))
    return _pooled(_averaged, input, divisor, windows, avg_pool2d.node)


def _counts(windows: Windows, padded: bool) -> Any:
    """How many entries each window has: on the image, or on the image and its frame."""
    counts = np.ones((), np.int64)
    rows = zip(windows.sizes, windows.kernel, windows.stride, windows.padding, windows.out, strict=True)
    for n, k, by, edge, out in rows:
        start = np.arange(out) * by - edge
        end = np.minimum(start + k, n + edge)
        counts = counts[..., None] * (end - start if padded else np.minimum(end, n) - np.maximum(start, 0))
    return counts


@checked
def avg_pool1d(
    input: Tensor,
    kernel_size: Extents,
    stride: Extents | None = None,
    padding: Extents = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Tensor:
    """The average of each window of (N, C, L)."""
    windows = _windows("avg_pool1d", input, 1, kernel_size, stride, padding, 1, ceil_mode)
    return _averages(input, windows, count_include_pad)


def _adapted(x: Any, *, out: Shape) -> Any:
    *lead, rows, columns = x.shape
    means = []
    for top, height in _cells(rows, out[0]):
        for left, width in _cells(columns, out[1]):
            cell = reshaped(taken(x, (top, left), (1, 1), (height, width)), (*lead, height * width))
            means.append(declared("mean", cell, axis=-1))
    return reshaped(declared("stack", means, axis=-1), (*lead, *out))


def _cells(size: int, count: int) -> list[tuple[int, int]]:
    """Start and size of each of so many windows that fill an axis."""
    starts = [i * size // count for i in range(count)]
    return [(start, -(-(i + 1) * size // count) - start) for i, start in enumerate(starts)]


@records("AdaptiveAvgPool2DBackward0")
def adaptive_avg_pool2d(input: Tensor, output_size: Wished) -> Tensor:
    """Averages over windows that fill (N, C, H, W) in so many rows and columns."""
    if output_size in (1, (1, 1), [1, 1]) and input.ndim >= 2:
        return mean(input, (-2, -1), True)
    if input.ndim not in (3, 4):
        raise RuntimeError(f"adaptive_avg_pool2d(): Expected 3D or 4D tensor, but got {list(input.shape)}")
    wanted = output_size if isinstance(output_size, (tuple, list)) else (output_size,) * 2
    sizes = tuple(input.shape[-2:])
    out = spread(tuple([n if k is None else k for k, n in zip(wanted, sizes, strict=True)]), 2, "output_size")
    return fused(_adapted, (input,), adaptive_avg_pool2d.node, out=out)


@checked
def adaptive_avg_pool1d(input: Tensor, output_size: Wished) -> Tensor:
    """Averages over so many windows that fill (N, C, L)."""
    if input.ndim not in (2, 3):
        raise RuntimeError(f"adaptive_avg_pool1d(): Expected 2D or 3D tensor, but got {list(input.shape)}")
    count = output_size[0] if isinstance(output_size, (tuple, list)) and output_size else output_size
    return squeeze(adaptive_avg_pool2d(unsqueeze(input, -2), (1, count)), -2)


class _Pool(Layer):
    _shown = "kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"

    def _build(self, **options: Any) -> None:
        if options["stride"] is None:
            options["stride"] = options["kernel_size"]
        super()._build(**options)


class _MaxPool(_Pool):
    _shown = f"{_Pool._shown}, dilation={{self.dilation}}, ceil_mode={{self.ceil_mode}}"


class _AvgPool1d(_Pool):
    def _build(self, **options: Any) -> None:
        for name in ("kernel_size", "stride", "padding"):
            if options[name] is not None:
                options[name] = spread(options[name], 1, name)
        super()._build(**options)


MaxPool1d = layer("MaxPool1d", max_pool1d, base=_MaxPool, last="ceil_mode")
MaxPool2d = layer("MaxPool2d", max_pool2d, base=_MaxPool, last="ceil_mode")
AvgPool1d = layer("AvgPool1d", avg_pool1d, base=_AvgPool1d)
AvgPool2d = layer("AvgPool2d", avg_pool2d, base=_Pool)
AdaptiveAvgPool1d = layer("AdaptiveAvgPool1d", adaptive_avg_pool1d)
AdaptiveAvgPool2d = layer("AdaptiveAvgPool2d", adaptive_avg_pool2d)
