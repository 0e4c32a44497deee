"""Pooling: the largest or the average entry of each window, of windows of one size or of as many as requested.

Windows are slices; the largest entry is picked by a position that is computed in the graph.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.eager._core.tensor import Tensor
from gradcli.eager._core.tracer import known
from gradcli.eager._engine.record import declared
from gradcli.eager._ops.reductions import mean
from gradcli.eager._ops.views import squeeze, unsqueeze
from gradcli.eager.nn.layer import Layer, checks, fused, layer, need_tensor
from gradcli.eager.nn.modules.padding import Sizes, places_of, put, spread, taken
from gradcli.primitives import catalogue
from gradcli.primitives.broadcasting import stretch, together

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gradcli.eager._engine.arguments import Extents, Wished


class _Windows:
    """Where the windows of a pooling stand: their places, how many there are, and how far the last ones reach."""

    def __init__(
        self,
        name: str,
        input: Tensor,
        axes: int,
        kernel: Any,
        stride: Any,
        padding: Any,
        dilation: Any,
        ceil: bool,
    ) -> None:
        need_tensor(input, name)
        if input.ndim not in (axes + 1, axes + 2):
            raise RuntimeError(
                f"Expected {axes + 1}D or {axes + 2}D input to {name}, but got input of size: {list(input.shape)}"
            )
        if input.dtype.kind < 2:
            raise RuntimeError(f'"{name}" is not implemented for {input.dtype}')
        self.kernel = spread(kernel, axes, "kernel_size")
        self.stride = self.kernel if stride is None else spread(stride, axes, "stride")
        self.padding = spread(padding, axes, "padding")
        self.dilation = spread(dilation, axes, "dilation")
        if any(n <= 0 for n in (*self.kernel, *self.dilation)):
            raise RuntimeError(f"{name}: kernel size and dilation should be greater than zero")
        if any(n <= 0 for n in self.stride):
            raise RuntimeError(f"{name}: stride should not be zero")
        if any(edge < 0 or edge > n // 2 for edge, n in zip(self.padding, self.kernel, strict=True)):
            raise RuntimeError(f"{name}: pad should be at most half of effective kernel size")
        self.sizes = tuple(input.shape[-axes:])
        out, end = [], []
        for n, k, by, edge, gap in zip(self.sizes, self.kernel, self.stride, self.padding, self.dilation, strict=True):
            rest = n + 2 * edge - gap * (k - 1) - 1
            count = (rest + (by - 1 if ceil else 0)) // by + 1
            if ceil and (count - 1) * by >= n + edge:
                count -= 1
            if count < 1:
                raise RuntimeError(f"{name}: the output size is too small for an input of {list(input.shape)}")
            out.append(count)
            end.append(max((count - 1) * by + gap * (k - 1) + 1, n + edge))
        self.out, self.full = tuple(out), tuple(end)

    def frame(self, inside: float, outside: float, kind: Any) -> Any:
        """An array over the padded image: one number on the image, another one around it."""
        found = np.full(self.full, outside, kind)
        found[tuple([slice(e, e + n) for e, n in zip(self.padding, self.sizes, strict=True)])] = inside
        return found

    def params(self) -> dict[str, Any]:
        """What the functions of the graph need."""
        return {
            "kernel": self.kernel,
            "stride": self.stride,
            "padding": self.padding,
            "dilation": self.dilation,
            "out": self.out,
            "full": self.full,
        }


def _edged(x: Any, padding: Sizes, full: Sizes) -> Any:
    return put(x, padding, (1,) * len(padding), full)


def _parts(x: Any, kernel: Sizes, stride: Sizes, dilation: Sizes, out: Sizes) -> list[Any]:
    return [taken(x, start, stride, out) for start in places_of(kernel, dilation)]


def _largest_of(parts: Sequence[Any]) -> Any:
    """The largest of some arrays of one shape, entry by entry, the first of several equal ones."""
    shape = tuple(parts[0].shape)
    wide = [declared("reshape", part, shape=(*shape, 1)) for part in parts]
    whole = wide[0] if len(wide) == 1 else wide[0].bind(catalogue()["concat"], tuple(wide), {"axis": -1})
    at = declared("reshape", catalogue()["argmax"](whole, axis=-1), shape=(*shape, 1))
    return declared("reshape", catalogue()["take_along"](whole, at, axis=-1), shape=shape)


def _max_pooled(
    x: Any, frame: Any, *, kernel: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes, out: Sizes, full: Sizes
) -> Any:
    x = _edged(x, padding, full)
    if frame.shape:
        x = x + stretch(declared("reshape", frame, shape=(*(1,) * (len(x.shape) - len(full)), *full)), tuple(x.shape))
    return _largest_of(_parts(x, kernel, stride, dilation, out))


def _averaged(
    x: Any, counts: Any, *, kernel: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes, out: Sizes, full: Sizes
) -> Any:
    total = None
    for part in _parts(_edged(x, padding, full), kernel, stride, dilation, out):
        total = part if total is None else total + part
    one, other = together(total, counts, verb="divide")
    return one / other


def _positions(windows: _Windows, x: Tensor) -> Any:
    """Where in its image the largest entry of each window stands, counted in entries."""
    array = known(x)
    if array is None:
        raise RuntimeError("return_indices needs the entries of a tensor: it is not possible inside vmap or record")
    lead = array.shape[: array.ndim - len(windows.out)]
    wide = np.broadcast_to(windows.frame(0, -np.inf, array.dtype), lead + windows.full).copy()
    inside: Any = tuple([slice(e, e + n) for e, n in zip(windows.padding, windows.sizes, strict=True)])
    wide[(..., *inside)] = array
    numbers = np.full(windows.full, -1, np.int64)
    numbers[inside] = np.arange(math.prod(windows.sizes)).reshape(windows.sizes)
    found, places = [], []
    for start in places_of(windows.kernel, windows.dilation):
        at: Any = tuple([
            slice(s, s + by * n, by) for s, by, n in zip(start, windows.stride, windows.out, strict=True)
        ])  # fmt: skip
        found.append(wide[(..., *at)])
        places.append(np.broadcast_to(numbers[at], found[-1].shape))
    best = np.argmax(np.stack(found, -1), axis=-1)[..., None]
    return np.take_along_axis(np.stack(places, -1), best, axis=-1)[..., 0]


def _max_pool(
    name: str, axes: int, input: Tensor, kernel: Any, stride: Any, padding: Any, dilation: Any, ceil: bool
) -> tuple[Tensor, _Windows]:
    windows = _Windows(name, input, axes, kernel, stride, padding, dilation, ceil)
    edged = any(n != m for n, m in zip(windows.full, windows.sizes, strict=True))
    frame = Tensor(windows.frame(0, -np.inf, input.dtype.np)) if edged else 0.0
    return fused(_max_pooled, (input, frame), "MaxPool2DWithIndicesBackward0", edges=1, **windows.params()), windows


@checks
def max_pool2d(
    input: Tensor,
    kernel_size: Extents,
    stride: Extents | None = None,
    padding: Extents = 0,
    dilation: Extents = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """The largest entry of each window of (N, C, H, W); the gradient goes to it, to the first of several.

    >>> import gradcli.eager as torch
    >>> max_pool2d(torch.arange(16.0).reshape(1, 1, 4, 4), 2)
    tensor([[[[ 5.,  7.],
              [13., 15.]]]])
    """
    found, windows = _max_pool("max_pool2d", 2, input, kernel_size, stride, padding, dilation, ceil_mode)
    return (found, Tensor(_positions(windows, input))) if return_indices else found


@checks
def max_pool1d(
    input: Tensor,
    kernel_size: Extents,
    stride: Extents | None = None,
    padding: Extents = 0,
    dilation: Extents = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """The largest entry of each window of (N, C, L)."""
    _Windows("max_pool1d", input, 1, kernel_size, stride, padding, dilation, ceil_mode)
    sizes = [_row_of(value) for value in (kernel_size, stride, padding, dilation)]
    kernel, by, edge, gap = _flat(sizes)
    found = max_pool2d(unsqueeze(input, -2), kernel, by, edge, gap, ceil_mode, return_indices)
    if return_indices:
        return squeeze(found[0], -2), squeeze(found[1], -2)
    return squeeze(found, -2)


def _row_of(value: Any) -> Any:
    return value[0] if isinstance(value, (tuple, list)) and value else value


def _flat(sizes: list[Any]) -> list[Any]:
    kernel, stride, padding, dilation = sizes
    return [(1, kernel), None if stride is None else (1, stride), (0, padding), (1, dilation)]


@checks
def avg_pool2d(
    input: Tensor,
    kernel_size: Extents,
    stride: Extents | None = None,
    padding: Extents = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """The average of each window of (N, C, H, W); the zeros of the frame count unless told otherwise."""
    windows = _Windows("avg_pool2d", input, 2, kernel_size, stride, padding, 1, ceil_mode)
    if divisor_override == 0:
        raise RuntimeError("divisor must be not zero")
    params = windows.params()
    counts = _counts(windows, count_include_pad) if divisor_override is None else np.asarray(divisor_override)
    same = counts.size and (counts == counts.flat[0]).all()
    divisor = float(counts.flat[0]) if same else Tensor(counts.astype(input.dtype.np))
    return fused(_averaged, (input, divisor), "AvgPool2DBackward0", edges=1, **params)


def _counts(windows: _Windows, padded: bool) -> Any:
    """How many entries each window has: on the image, or on the image and its frame."""
    lengths = []
    for n, k, by, edge, out in zip(
        windows.sizes, windows.kernel, windows.stride, windows.padding, windows.out, strict=True
    ):
        start = np.arange(out) * by - edge
        end = np.minimum(start + k, n + edge)
        lengths.append(end - start if padded else np.minimum(end, n) - np.maximum(start, 0))
    found = lengths[0]
    for more in lengths[1:]:
        found = found[..., None] * more
    return found


@checks
def avg_pool1d(
    input: Tensor,
    kernel_size: Extents,
    stride: Extents | None = None,
    padding: Extents = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Tensor:
    """The average of each window of (N, C, L)."""
    _Windows("avg_pool1d", input, 1, kernel_size, stride, padding, 1, ceil_mode)
    kernel, by, edge, _ = _flat([_row_of(kernel_size), _row_of(stride), _row_of(padding), 1])
    return squeeze(avg_pool2d(unsqueeze(input, -2), kernel, by, edge, ceil_mode, count_include_pad), -2)


# --- as many windows as requested ------------------------------------------------------------------------------------


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


def _adapted(x: Any, *, out: Sizes) -> Any:
    axes = len(out)
    lead = tuple(x.shape[: len(x.shape) - axes])
    parts = []
    for start, size in _cells(tuple(x.shape[-axes:]), out):
        flat = declared("reshape", taken(x, start, (1,) * axes, size), shape=(*lead, math.prod(size)))
        parts.append(declared("mean", flat, axis=-1, keepdims=True))
    whole = parts[0] if len(parts) == 1 else x.bind(catalogue()["concat"], tuple(parts), {"axis": -1})
    return declared("reshape", whole, shape=(*lead, *out))


@checks
def adaptive_avg_pool2d(input: Tensor, output_size: Wished) -> Tensor:
    """Averages over windows that fill (N, C, H, W) in so many rows and columns."""
    need_tensor(input, "adaptive_avg_pool2d")
    if output_size in (1, (1, 1), [1, 1]) and input.ndim >= 2:
        return mean(input, (-2, -1), True)
    if input.ndim not in (3, 4):
        raise RuntimeError(f"adaptive_avg_pool2d(): Expected 3D or 4D tensor, but got {list(input.shape)}")
    given = output_size if isinstance(output_size, (tuple, list)) else (output_size,) * 2
    sizes = tuple(input.shape[-2:])
    out = spread(tuple([n if one is None else one for one, n in zip(given, sizes, strict=True)]), 2, "output_size")
    if any(n < 0 for n in out):
        raise RuntimeError("adaptive_avg_pool2d(): elements of output_size must be greater than or equal to 0")
    return fused(_adapted, (input,), "AdaptiveAvgPool2DBackward0", out=out)


@checks
def adaptive_avg_pool1d(input: Tensor, output_size: Wished) -> Tensor:
    """Averages over so many windows that fill (N, C, L)."""
    if input.ndim not in (2, 3):
        raise RuntimeError(f"adaptive_avg_pool1d(): Expected 2D or 3D tensor, but got {list(input.shape)}")
    return squeeze(adaptive_avg_pool2d(unsqueeze(input, -2), (1, _row_of(output_size))), -2)


# --- layers ----------------------------------------------------------------------------------------------------------


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
        sizes = {name: options[name] for name in ("kernel_size", "stride", "padding") if options[name] is not None}
        super()._build(**{**options, **{name: spread(value, 1, name) for name, value in sizes.items()}})


MaxPool1d = layer("MaxPool1d", max_pool1d, base=_MaxPool, last="ceil_mode")
MaxPool2d = layer("MaxPool2d", max_pool2d, base=_MaxPool, last="ceil_mode")
AvgPool1d = layer("AvgPool1d", avg_pool1d, base=_AvgPool1d)
AvgPool2d = layer("AvgPool2d", avg_pool2d, base=_Pool)
AdaptiveAvgPool1d = layer("AdaptiveAvgPool1d", adaptive_avg_pool1d)
AdaptiveAvgPool2d = layer("AdaptiveAvgPool2d", adaptive_avg_pool2d)
