"""Padding: a frame around the entries of rows, images and volumes, of one number or of copies of entries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from gradcli.eager._core.modes import no_grad
from gradcli.eager._core.tensor import Tensor
from gradcli.eager._engine.arguments import options
from gradcli.eager._engine.record import record
from gradcli.eager.nn._layer import Layer, checks, fused, layer, picked, put, spread, taken

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gradcli.eager.nn._layer import Sizes


def _framed(x: Any, *, before: Sizes, after: Sizes) -> Any:
    """Zeros before and after the entries along each axis; negative counts cut off."""
    rows = list(zip(x.shape, before, after, strict=True))
    ones = (1,) * len(rows)
    inner = tuple([n + min(low, 0) + min(high, 0) for n, low, high in rows])
    if inner != tuple(x.shape):
        x = taken(x, tuple([max(-low, 0) for low in before]), ones, inner)
    full = tuple([n + max(low, 0) + max(high, 0) for n, (_, low, high) in zip(inner, rows, strict=True)])
    return put(x, tuple([max(low, 0) for low in before]), ones, full)


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
        raise RuntimeError(f"pad: {tuple(pad)} would cut off more than the whole of {list(input.shape)}")
    before, after = tuple([low for low, _ in pairs]), tuple([high for _, high in pairs])
    found = record(_framed, (input,), {"before": before, "after": after}, "ConstantPadNdBackward0", keep_integer=True)
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
            f"Padding size {len(pad)} is not supported for {x.ndim}D input tensor: reflect and replicate padding "
            "need one pair of sizes for each axis of an image, which has one or two axes before them"
        )
    wraps = mode == "circular"
    if 0 in x.shape[-axes - 1 :] and not wraps:
        raise RuntimeError(f"Expected non-empty images for reflect or replicate padding, but got {list(x.shape)}")
    rows = []
    for n, low, high in zip(x.shape[-axes:], pad[-2::-2], pad[-1::-2], strict=True):
        count = n + low + high
        if (mode == "reflect" and max(low, high) >= n) or (wraps and max(low, high) > n):
            raise RuntimeError(
                f"Padding size should be less than the corresponding input dimension, but got: ({low}, {high}) at an "
                f"axis of size {n}"
            )
        if count < (0 if wraps else 1):
            raise RuntimeError(f"pad: the input of size {n} is too small for padding of ({low}, {high})")
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
