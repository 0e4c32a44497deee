"""Padding: a frame around rows, images and volumes, of one number or of entries from inside."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from gradcli.eager._core.modes import no_grad
from gradcli.eager._core.tensor import Tensor
from gradcli.eager._engine.record import record
from gradcli.eager._ops.creation import empty
from gradcli.eager._ops.indexing import narrow
from gradcli.eager.nn.layer import checks, fused
from gradcli.eager.nn.module import Module
from gradcli.eager.nn.windows import framed, picked, spread

if TYPE_CHECKING:
    from collections.abc import Sequence


@checks
def pad(input: Tensor, pad: Sequence[int], mode: str = "constant", value: float | None = None) -> Tensor:
    """A frame around the entries: (left, right) of the last axis, then of the one before it, and so on.

    It holds one number, or entries of the tensor: "reflect" turns round at the edge, "replicate" repeats the edge,
    "circular" starts again from the other end. Negative sizes cut off. RuntimeError for sizes that do not fit,
    NotImplementedError where the frame of copies has not one pair for each axis of the image.

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


# --- frames of copies ------------------------------------------------------------------------------------------------


def _copied_around(x: Tensor, pad: tuple[int, ...], mode: str) -> Tensor:
    axes = len(pad) // 2
    if not 1 <= axes <= 3 or x.ndim not in (axes + 1, axes + 2):
        raise NotImplementedError(
            f"Padding size {len(pad)} is not supported for {x.ndim}D input tensor: for a frame of copies there is one "
            "pair of sizes for each axis of an image, which has one or two axes before them"
        )
    pairs = [(pad[i], pad[i + 1]) for i in range(len(pad) - 2, -1, -2)]
    sizes = tuple(x.shape[-axes:])
    if mode == "circular":
        return _wrapped(x, pairs, sizes)
    if 0 in x.shape[-axes - 1 :]:
        raise RuntimeError(f"Expected images with entries for a frame of copies, but got {list(x.shape)}")
    rows = []
    for n, (low, high) in zip(sizes, pairs, strict=True):
        if mode == "reflect" and max(low, high) >= n:
            raise RuntimeError(
                f"Padding size should be less than the corresponding input dimension, but got: ({low}, {high}) at an "
                f"axis of size {n}"
            )
        if n + low + high < 1:
            raise RuntimeError(f"pad: the input of size {n} is too small for a frame of ({low}, {high})")
        at = np.arange(-low, n + high)
        found = np.clip(at, 0, n - 1) if mode == "replicate" else n - 1 - np.abs(n - 1 - np.abs(at))
        rows.append(tuple(found.tolist()))
    name = {"reflect": "Reflection", "replicate": "Replication"}[mode]
    return fused(picked, (x,), f"{name}Pad{axes}DBackward0", rows=tuple(rows))


def _wrapped(x: Tensor, pairs: list[tuple[int, int]], sizes: tuple[int, ...]) -> Tensor:
    """The tensor written into a larger one, then pieces of that copied to its ends: one change in place for each."""
    out = [n + low + high for n, (low, high) in zip(sizes, pairs, strict=True)]
    for n, pair, count in zip(sizes, pairs, out, strict=True):
        if max(pair) > n:
            raise RuntimeError("Padding value causes wrapping around more than once.")
        if count < 0:
            raise RuntimeError("Negative padding value is resulting in an empty dimension.")
    axes = len(sizes)
    found: Any = empty(*x.shape[:-axes], *out, dtype=x.dtype)
    inside, source = found, x
    for i, (n, (low, high), count) in enumerate(zip(sizes, pairs, out, strict=True)):
        at = x.ndim - axes + i
        first = min(max(-low, 0), n)
        inside = narrow(inside, at, max(low, 0), max(count - max(high, 0) - max(low, 0), 0))
        source = narrow(source, at, first, max(n - max(-high, 0) - first, 0))
    inside.copy_(source)
    for i in range(axes - 1, -1, -1):
        low, high, end, at = max(pairs[i][0], 0), max(pairs[i][1], 0), out[i], x.ndim - axes + i
        if low:
            narrow(found, at, 0, low).copy_(narrow(found, at, end - high - low, low))
        if high:
            high = min(high, end)
            narrow(found, at, end - high, high).copy_(narrow(found, at, low, high))
    result: Tensor = found
    return result


# --- layers ----------------------------------------------------------------------------------------------------------


class _Pad(Module):
    """A frame: (left, right, top, bottom, ...), or one width for all, around the last `axes`."""

    axes: ClassVar[int] = 0
    mode: ClassVar[str] = "constant"
    value: float | None = None

    def __init__(self, padding: Any) -> None:
        super().__init__()
        self.padding = spread(padding, 2 * self.axes, "padding")

    def forward(self, input: Tensor) -> Tensor:
        """The tensor with its frame."""
        return pad(input, self.padding, self.mode, self.value)

    def extra_repr(self) -> str:
        return str(self.padding)


class _ZeroPad(_Pad):
    def __init__(self, padding: Any) -> None:
        super().__init__(padding)
        self.value = 0.0


class _ConstantPad(_Pad):
    def __init__(self, padding: Any, value: float) -> None:
        super().__init__(padding)
        self.value = value

    def extra_repr(self) -> str:
        return f"padding={self.padding}, value={self.value}"


def _frame(name: str, axes: int, mode: str = "constant", base: type[_Pad] = _Pad) -> type[_Pad]:
    around = ("rows", "images", "volumes")[axes - 1]
    body = {"__module__": __name__, "__qualname__": name, "__doc__": f"A frame around {around}, of mode {mode!r}."}
    return type(name, (base,), {**body, "axes": axes, "mode": mode})


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
