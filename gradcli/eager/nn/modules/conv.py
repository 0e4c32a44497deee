"""Convolutions and their transposes, of rows, images and volumes, each one node.

A window is made of slices, one for each place of the kernel, so that all derivatives are those of slices and matrix
products: none is written here.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar

from gradcli.eager._core.modes import warn
from gradcli.eager._core.tensor import Tensor
from gradcli.eager._engine.record import declared, record
from gradcli.eager._ops.creation import empty
from gradcli.eager._ops.views import squeeze, unsqueeze
from gradcli.eager.nn import init
from gradcli.eager.nn.layer import checks, dense, fused, need_tensor
from gradcli.eager.nn.module import Module
from gradcli.eager.nn.modules.padding import pad as pad_frame
from gradcli.eager.nn.parameter import Parameter
from gradcli.eager.nn.windows import (
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
    return dense(record(_convolved, xs, params, "ConvolutionBackward0", keep_integer=True, pointwise=False))


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


def _conv(axes: int, images: str) -> Any:
    name = f"conv{axes}d"

    def convolve(
        input: Tensor,
        weight: Tensor,
        bias: Tensor | None = None,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
    ) -> Tensor:
        return _convolution(name, axes, input, weight, bias, stride, padding, dilation, groups)

    convolve.__doc__ = f"""Sums of products of windows of {images} with filters (O, C / groups, ...), plus a bias (O,).

    `padding` is a number of zeros at both ends, 'valid' or 'same'. RuntimeError for sizes that do not fit.

    >>> import gradcli.eager as torch
    >>> ones = (1,) * {axes - 1}
    >>> x, filters = torch.tensor([1.0, 2.0, 4.0]), torch.tensor([1.0, -1.0])
    >>> {name}(x.view(1, 1, *ones, 3), filters.view(1, 1, *ones, 2)).flatten()
    tensor([-1., -2.])
    """
    convolve.__name__ = convolve.__qualname__ = name
    return checks(convolve)


conv1d, conv2d, conv3d = _conv(1, "(N, C, L)"), _conv(2, "(N, C, H, W)"), _conv(3, "(N, C, D, H, W)")


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


def _conv_transpose(axes: int) -> Any:
    name = f"conv_transpose{axes}d"

    def spread_out(
        input: Tensor,
        weight: Tensor,
        bias: Tensor | None = None,
        stride: Any = 1,
        padding: Any = 0,
        output_padding: Any = 0,
        groups: int = 1,
        dilation: Any = 1,
    ) -> Tensor:
        return _transposed(name, axes, input, weight, bias, stride, padding, output_padding, groups, dilation)

    spread_out.__doc__ = f"""The transpose of `conv{axes}d`: each entry spreads its filter (C, O / groups, ...)."""
    spread_out.__name__ = spread_out.__qualname__ = name
    return checks(spread_out)


conv_transpose1d, conv_transpose2d, conv_transpose3d = _conv_transpose(1), _conv_transpose(2), _conv_transpose(3)


# --- layers ------------------------------------------------------------------------------------------------------

_FORWARD, _TRANSPOSED = (conv1d, conv2d, conv3d), (conv_transpose1d, conv_transpose2d, conv_transpose3d)


class _ConvNd(Module):
    """Filters and a bias; `axes` says how many axes the images have."""

    axes: ClassVar[int] = 0
    spreads: ClassVar[bool] = False

    def _built(
        self,
        channels: tuple[int, int],
        sizes: tuple[Any, Any, Any, Any, Any],
        groups: int,
        bias: bool,
        padding_mode: str,
        dtype: Any,
    ) -> None:
        self.in_channels, self.out_channels = channels
        if groups <= 0:
            raise ValueError("groups must be a positive integer")
        for count, what in zip(channels, ("in_channels", "out_channels"), strict=True):
            if count % groups:
                raise ValueError(f"{what} must be divisible by groups")
        if padding_mode != "zeros":
            if padding_mode not in ("reflect", "replicate", "circular"):
                raise ValueError(
                    f"padding_mode must be 'zeros', 'reflect', 'replicate' or 'circular': {padding_mode!r}"
                )
            if self.spreads:
                raise ValueError(f'Only "zeros" padding mode is supported for {type(self).__name__}')
        kernel, stride, padding, dilation, more = sizes
        if isinstance(padding, str) and padding not in ("same", "valid"):
            raise ValueError(f"Invalid padding string {padding!r}, should be one of 'valid', 'same'")
        self.kernel_size = spread(kernel, self.axes, "kernel_size")
        self.stride = spread(stride, self.axes, "stride")
        if padding == "same" and any(n != 1 for n in self.stride):
            raise ValueError("padding='same' is not supported for strided convolutions")
        self.padding = padding if isinstance(padding, str) else spread(padding, self.axes, "padding")
        self.dilation = spread(dilation, self.axes, "dilation")
        self.transposed = type(self).spreads
        self.output_padding = spread(more, self.axes, "output_padding")
        self.groups = groups
        self.padding_mode = padding_mode
        first, second = reversed(channels) if not self.spreads else channels
        self.weight = Parameter(empty(first, second // groups, *self.kernel_size, dtype=dtype))
        self.register_parameter("bias", Parameter(empty(channels[1], dtype=dtype)) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Start again from new random numbers."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            fan_in = math.prod(self.weight.shape[1:])
            if fan_in:
                init.uniform_(self.bias, -1 / math.sqrt(fan_in), 1 / math.sqrt(fan_in))

    def extra_repr(self) -> str:
        parts = [f"{self.in_channels}, {self.out_channels}"]
        parts.append(f"kernel_size={self.kernel_size}, stride={self.stride}")
        if self.padding != (0,) * self.axes:
            parts.append(f"padding={self.padding}")
        if self.dilation != (1,) * self.axes:
            parts.append(f"dilation={self.dilation}")
        if self.output_padding != (0,) * self.axes:
            parts.append(f"output_padding={self.output_padding}")
        if self.groups != 1:
            parts.append(f"groups={self.groups}")
        if self.bias is None:
            parts.append("bias=False")
        if self.padding_mode != "zeros":
            parts.append(f"padding_mode={self.padding_mode}")
        return ", ".join(parts)


class _Forward(_ConvNd):
    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        sizes = (kernel_size, stride, padding, dilation, 0)
        self._built((in_channels, out_channels), sizes, groups, bias, padding_mode, dtype)

    def forward(self, input: Tensor) -> Tensor:
        """The convolution with the filters, plus the bias."""
        function = _FORWARD[self.axes - 1]
        padding: Any = self.padding
        if self.padding_mode != "zeros":
            input, padding = pad_frame(input, self._frame(), self.padding_mode), 0
        found: Tensor = function(input, self.weight, self.bias, self.stride, padding, self.dilation, self.groups)
        return found

    def _frame(self) -> list[int]:
        """The frame of copies around the input, the last axis first."""
        if self.padding == "valid":
            return [0] * (2 * self.axes)
        if self.padding == "same":
            rows = zip(self.kernel_size, self.dilation, strict=True)
            pairs = [(gap * (n - 1) // 2, (gap * (n - 1) + 1) // 2) for n, gap in rows]
        else:
            pairs = [(n, n) for n in spread(self.padding, self.axes, "padding")]
        return [n for pair in reversed(pairs) for n in pair]


class Conv1d(_Forward):
    """`functional.conv1d` with filters of its own."""

    axes = 1


class Conv2d(_Forward):
    """`functional.conv2d` with filters of its own.

    >>> Conv2d(1, 6, 5)
    Conv2d(1, 6, kernel_size=(5, 5), stride=(1, 1))
    """

    axes = 2


class Conv3d(_Forward):
    """`functional.conv3d` with filters of its own."""

    axes = 3


class _Backward(_ConvNd):
    spreads = True

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        output_padding: Any = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Any = 1,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        sizes = (kernel_size, stride, padding, dilation, output_padding)
        self._built((in_channels, out_channels), sizes, groups, bias, padding_mode, dtype)

    def forward(self, input: Tensor, output_size: Any = None) -> Tensor:
        """The transposed convolution with the filters, plus the bias; of a given size, if that is possible.

        ValueError for sizes that no `output_padding` gives.
        """
        function = _TRANSPOSED[self.axes - 1]
        added = self.output_padding if output_size is None else self._added(input, list(output_size))
        more = (self.stride, self.padding, added, self.groups, self.dilation)
        found: Tensor = function(input, self.weight, self.bias, *more)
        return found

    def _added(self, input: Tensor, wanted: list[int]) -> tuple[int, ...]:
        """The `output_padding` that gives an output of the wanted size."""
        before = input.ndim - self.axes
        if len(wanted) == input.ndim:
            wanted = wanted[before:]
        if len(wanted) != self.axes:
            raise ValueError(
                f"output_size has {self.axes} or {input.ndim} elements for an input of {input.ndim} axes, not "
                f"{len(wanted)}"
            )
        padding = spread(self.padding, self.axes, "padding")
        rows = zip(input.shape[before:], self.kernel_size, self.stride, padding, self.dilation, strict=True)
        least = [(n - 1) * step - 2 * edge + gap * (k - 1) + 1 for n, k, step, edge, gap in rows]
        most = [n + step - 1 for n, step in zip(least, self.stride, strict=True)]
        if not all(low <= n <= high for low, n, high in zip(least, wanted, most, strict=True)):
            raise ValueError(f"an output of size {wanted} is not possible: sizes range from {least} to {most}")
        return tuple([n - low for n, low in zip(wanted, least, strict=True)])


class ConvTranspose1d(_Backward):
    """`functional.conv_transpose1d` with filters of its own."""

    axes = 1


class ConvTranspose2d(_Backward):
    """`functional.conv_transpose2d` with filters of its own."""

    axes = 2


class ConvTranspose3d(_Backward):
    """`functional.conv_transpose3d` with filters of its own."""

    axes = 3
