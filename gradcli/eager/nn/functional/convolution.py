"""Images and kernels go in, convolutions and their transposes come out, each one node.

A window is made of slices, one for each place of the kernel, so that all derivatives are those of slices and matrix
products: none is written here. This module knows no module and no random number.
"""

from __future__ import annotations

import math
from typing import Any

from gradcli.eager.dispatch import record
from gradcli.eager.movement import squeeze, unsqueeze
from gradcli.eager.nn.functional.fusing import declared, dense, fused, need_tensor
from gradcli.eager.nn.functional.padding import pad as pad_frame
from gradcli.eager.nn.functional.windows import (
    Sizes,
    edged,
    exchanged,
    places_of,
    positive,
    put,
    reshaped,
    spread,
    taken,
)
from gradcli.eager.state import warn
from gradcli.eager.tensor import Tensor
from gradcli.primitives import catalogue
from gradcli.primitives.broadcasting import together


def _columns(x: Any, kernel: Sizes, stride: Sizes, dilation: Sizes, out: Sizes) -> Any:
    """(N, C, *S) to (N, C, K, L): for each place of the kernel the entries that it meets."""
    lead = x.shape[:2]
    parts = [reshaped(taken(x, start, stride, out), *lead, 1, math.prod(out)) for start in places_of(kernel, dilation)]
    return parts[0] if len(parts) == 1 else x.bind(catalogue()["concat"], tuple(parts), {"axis": -2})


def _convolved(
    x: Any, weight: Any, bias: Any, *, stride: Sizes, padding: Sizes, dilation: Sizes, out: Sizes, groups: int
) -> Any:
    (batch, channels), (filters, _, *kernel) = x.shape[:2], weight.shape
    columns = _columns(edged(x, padding, padding), tuple(kernel), stride, dilation, out)
    rows, length = channels // groups * math.prod(kernel), math.prod(out)
    if groups == 1:
        found = declared("matmul", reshaped(weight, filters, rows), reshaped(columns, batch, rows, length))
    else:
        left = reshaped(weight, groups, filters // groups, rows)
        found = declared("matmul", left, reshaped(columns, batch, groups, rows, length))
        found = reshaped(found, batch, filters, length)
    return reshaped(_biased(found, bias), batch, filters, *out)


def _biased(x: Any, bias: Any) -> Any:
    if not bias.shape:
        return x
    one, other = together(x, reshaped(bias, bias.shape[0], *(1,) * (len(x.shape) - 2)), verb="add")
    return one + other


def _spread_out(
    x: Any, weight: Any, bias: Any, *, stride: Sizes, padding: Sizes, dilation: Sizes, out: Sizes, groups: int
) -> Any:
    (batch, channels, *inner), (_, each, *kernel) = x.shape, weight.shape
    count, length = math.prod(kernel), batch * math.prod(inner)
    columns = reshaped(exchanged(x), groups, channels // groups, length)
    left = reshaped(weight, groups, channels // groups, each * count).mT
    found = reshaped(declared("matmul", left, columns), groups * each, count, batch, *inner)
    full = tuple([n + 2 * edge for n, edge in zip(out, padding, strict=True)])
    whole = None
    for at, start in enumerate(places_of(tuple(kernel), dilation)):
        part = taken(found, (at, 0, *(0,) * len(inner)), (1,) * (2 + len(inner)), (1, batch, *inner))
        part = put(reshaped(part, groups * each, batch, *inner), start, stride, full)
        whole = part if whole is None else whole + part
    trimmed = taken(whole, padding, (1,) * len(out), out) if any(padding) else whole
    return _biased(exchanged(trimmed), bias)


def _checked(name: str, input: Tensor, weight: Tensor, bias: Tensor | None, axes: int, transposed: bool) -> None:
    need_tensor(input, name)
    need_tensor(weight, name)
    if weight.ndim != axes + 2:
        raise RuntimeError(f"expected {axes + 2}D weight for {name}, but got weight of size: {list(weight.shape)}")
    if input.ndim not in (axes + 1, axes + 2):
        raise RuntimeError(
            f"Expected {axes + 1}D (unbatched) or {axes + 2}D (batched) input to {name}, but got input of size: "
            f"{list(input.shape)}"
        )
    others = [weight] if bias is None else [weight, bias]
    if any(x.dtype is not input.dtype for x in others):
        raise RuntimeError(f"Input type ({input.dtype}) and weight type ({weight.dtype}) and bias should be the same")
    outputs = weight.shape[1] if transposed else weight.shape[0]
    if bias is not None and not transposed and tuple(bias.shape) != (outputs,):
        raise RuntimeError(f"{name}: the bias must have one entry for each of the {outputs} filters")


def _grouped(name: str, channels: int, weight: Tensor, groups: int, transposed: bool) -> None:
    if groups <= 0:
        raise RuntimeError("non-positive groups is not supported")
    first, second = weight.shape[:2]
    wanted = first if transposed else second * groups
    if first % groups or channels != wanted:
        raise RuntimeError(
            f"Given groups={groups}, weight of size {list(weight.shape)}, expected the input to have {wanted} "
            f"channels, but got {channels} channels instead"
        )


def _convolution(
    name: str,
    axes: int,
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Any,
    padding: Any,
    dilation: Any,
    groups: int,
) -> Tensor:
    _checked(name, input, weight, bias, axes, False)
    if input.ndim == axes + 1:
        return squeeze(
            _convolution(name, axes, unsqueeze(input, 0), weight, bias, stride, padding, dilation, groups), 0
        )
    stride, dilation = spread(stride, axes, "stride"), spread(dilation, axes, "dilation")
    positive(name, stride, "stride")
    positive(name, dilation, "dilation")
    _grouped(name, input.shape[1], weight, groups, False)
    kernel = tuple(weight.shape[2:])
    reach = tuple([gap * (n - 1) + 1 for gap, n in zip(dilation, kernel, strict=True)])
    if isinstance(padding, str):
        input, padding = _named_padding(name, input, padding, reach, stride)
    edges = spread(padding, axes, "padding")
    if any(n < 0 for n in edges):
        raise RuntimeError("negative padding is not supported")
    sizes = tuple(input.shape[2:])
    if any(n + 2 * edge < need for n, edge, need in zip(sizes, edges, reach, strict=True)):
        raise RuntimeError(
            f"Calculated padded input size per channel: {[n + 2 * e for n, e in zip(sizes, edges, strict=True)]}. "
            f"Kernel size: {list(reach)}. Kernel size can't be greater than actual input size"
        )
    out = tuple([(n + 2 * e - need) // by + 1 for n, e, need, by in zip(sizes, edges, reach, stride, strict=True)])
    xs = (input, weight, 0 if bias is None else bias)
    params = {"stride": stride, "padding": edges, "dilation": dilation, "out": out, "groups": groups}
    return dense(record(_convolved, xs, params, "ConvolutionBackward0", whole=True, pointwise=False))


def _named_padding(name: str, input: Tensor, padding: str, reach: Sizes, stride: Sizes) -> tuple[Tensor, Any]:
    if padding == "valid":
        return input, 0
    if padding != "same":
        raise RuntimeError(f"Invalid padding string: '{padding}'; it is 'valid' or 'same'")
    if any(by != 1 for by in stride):
        raise RuntimeError("padding='same' is not supported for strided convolutions")
    rest = [(n - 1) % 2 for n in reach]
    if any(rest):
        warn(
            "padding='same' with a kernel of even length and odd dilation pads one side more: the input is copied",
            UserWarning,
        )
        input = pad_frame(input, [n for extra in reversed(rest) for n in (0, extra)])
    return input, tuple([(n - 1) // 2 for n in reach])


def conv1d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor:
    """Sums of products of windows of (N, C, L) with the filters (O, C / groups, K), plus the bias (O,).

    `padding` is a number of zeros at both ends, 'valid' or 'same'. RuntimeError for sizes that do not fit.

    >>> import gradcli.eager as torch
    >>> conv1d(torch.tensor([[[1.0, 2.0, 4.0]]]), torch.tensor([[[1.0, -1.0]]]))
    tensor([[[-1., -2.]]])
    """
    return _convolution("conv1d", 1, input, weight, bias, stride, padding, dilation, groups)


def conv2d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor:
    """`conv1d` on images (N, C, H, W) with filters (O, C / groups, KH, KW)."""
    return _convolution("conv2d", 2, input, weight, bias, stride, padding, dilation, groups)


def conv3d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor:
    """`conv1d` on volumes (N, C, D, H, W)."""
    return _convolution("conv3d", 3, input, weight, bias, stride, padding, dilation, groups)


def _transposed(
    name: str,
    axes: int,
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Any,
    padding: Any,
    output_padding: Any,
    groups: int,
    dilation: Any,
) -> Tensor:
    _checked(name, input, weight, bias, axes, True)
    if input.ndim == axes + 1:
        whole = unsqueeze(input, 0)
        return squeeze(
            _transposed(name, axes, whole, weight, bias, stride, padding, output_padding, groups, dilation), 0
        )
    by, gaps = spread(stride, axes, "stride"), spread(dilation, axes, "dilation")
    edges, more = spread(padding, axes, "padding"), spread(output_padding, axes, "output_padding")
    positive(name, by, "stride")
    positive(name, gaps, "dilation")
    _grouped(name, input.shape[1], weight, groups, True)
    if any(n < 0 for n in edges) or any(n < 0 for n in more):
        raise RuntimeError("negative padding is not supported")
    if any(n >= max(step, gap) for n, step, gap in zip(more, by, gaps, strict=True)):
        raise RuntimeError("output padding must be smaller than either stride or dilation")
    rows = zip(input.shape[2:], weight.shape[2:], by, gaps, edges, more, strict=True)
    out = tuple([(n - 1) * step + gap * (k - 1) + 1 - 2 * edge + extra for n, k, step, gap, edge, extra in rows])
    if any(n <= 0 for n in out):
        raise RuntimeError(f"{name}: the output would have sizes {list(out)}, which are too small")
    xs = (input, weight, 0 if bias is None else bias)
    return fused(
        _spread_out, xs, "ConvolutionBackward0", stride=by, padding=edges, dilation=gaps, out=out, groups=groups
    )


def conv_transpose1d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Any = 1,
    padding: Any = 0,
    output_padding: Any = 0,
    groups: int = 1,
    dilation: Any = 1,
) -> Tensor:
    """The transpose of `conv1d`: each entry of (N, C, L) spreads its filter (C, O / groups, K) over the output."""
    return _transposed("conv_transpose1d", 1, input, weight, bias, stride, padding, output_padding, groups, dilation)


def conv_transpose2d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Any = 1,
    padding: Any = 0,
    output_padding: Any = 0,
    groups: int = 1,
    dilation: Any = 1,
) -> Tensor:
    """The transpose of `conv2d`."""
    return _transposed("conv_transpose2d", 2, input, weight, bias, stride, padding, output_padding, groups, dilation)
