"""Images go in, their windows as columns come out, and the way back: columns added up to images; each one node."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from gradcli.eager.nn.functional.fusing import fused, need_tensor
from gradcli.eager.nn.functional.windows import Sizes, edged, places_of, positive, put, reshaped, spread, taken
from gradcli.eager.tensor import Tensor
from gradcli.primitives import catalogue

if TYPE_CHECKING:
    from gradcli.eager.signatures import Extents


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
