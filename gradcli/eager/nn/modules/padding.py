"""Padding: a frame around the entries of rows, images and volumes, of one number or of copies of entries."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import numpy as np

from gradcli.eager._core.tensor import Tensor
from gradcli.eager._engine.arguments import options
from gradcli.eager._engine.record import record
from gradcli.eager.nn._layer import Layer, Sizes, combined, fused, layer, picked, put, records, spread, taken


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


_KINDS = "ReflectionPad1D ReplicationPad1D ReflectionPad2D ReplicationPad2D ReflectionPad3D ReplicationPad3D"
_NODES = ["ConstantPadNdBackward0", *[f"{kind}Backward0" for kind in _KINDS.split()]]


@records(" ".join(_NODES))
def pad(input: Tensor, pad: Sequence[int], mode: str = "constant", value: float | None = None) -> Tensor:
    """A frame around the entries: (left, right) of the last axis, then of the one before it, and so on.

    It holds one number, or entries of the tensor: "reflect" turns round at the edge, "replicate" repeats the edge.
    Negative sizes cut off. RuntimeError for sizes that do not fit, NotImplementedError for another mode, and where a
    frame of copies has not one pair of sizes for each axis of the image.

    >>> pad(torch.tensor([[1.0, 2.0, 3.0]]), (2, 1), mode="reflect")
    tensor([[3., 2., 1., 2., 3., 2.]])
    """
    if len(pad) % 2:
        raise RuntimeError("Padding length must be divisible by 2")
    if mode in ("reflect", "replicate"):
        if value is not None:
            raise RuntimeError(f'Padding mode "{mode}" doesn\'t take in value argument')
        return _copied_around(input, tuple(pad), mode)
    if mode != "constant":
        raise NotImplementedError(f"Unrecognised padding mode {mode}")
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
    return record(_framed, (input, frame), ends, _NODES[0], edges=1, keep_integer=True)


def _copied_around(x: Tensor, pad: tuple[int, ...], mode: str) -> Tensor:
    axes = len(pad) // 2
    if not 1 <= axes <= 3 or x.ndim not in (axes + 1, axes + 2):
        raise NotImplementedError(f"{mode} padding of {len(pad)} sizes is not supported for {x.ndim}D input tensor")
    rows = []
    for n, low, high in zip(x.shape[-axes:], pad[-2::-2], pad[-1::-2], strict=True):
        if 0 in x.shape[-axes - 1 :] or (mode == "reflect" and max(low, high) >= n) or n + low + high < 1:
            raise RuntimeError(f"{mode} padding of ({low}, {high}) does not fit an axis of size {n} of {list(x.shape)}")
        at = np.arange(-low, n + high)
        at = n - 1 - np.abs(n - 1 - np.abs(at)) if mode == "reflect" else np.clip(at, 0, n - 1)
        rows.append(tuple(at.tolist()))
    return fused(picked, (x,), _NODES[2 * axes - (mode == "reflect")], rows=tuple(rows))


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


def _frames(name: str, mode: str = "constant", base: type[_Pad] = _Pad) -> Iterator[type[_Pad]]:
    """The layers for one, two and three axes."""
    for axes in (1, 2, 3):
        yield layer(f"{name}{axes}d", pad, base=base, axes=axes, mode=mode)


ConstantPad1d, ConstantPad2d, ConstantPad3d = _frames("ConstantPad", base=_ConstantPad)
ZeroPad1d, ZeroPad2d, ZeroPad3d = _frames("ZeroPad", base=_ZeroPad)
ReflectionPad1d, ReflectionPad2d, ReflectionPad3d = _frames("ReflectionPad", "reflect")
ReplicationPad1d, ReplicationPad2d, ReplicationPad3d = _frames("ReplicationPad", "replicate")
