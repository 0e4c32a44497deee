"""Convolutions of rows, images and volumes, each one node.

A window is made of slices, one for each place of the kernel, so that all derivatives are those of slices and matrix
products: none is written here.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar

from gradcli.eager._core.tensor import Tensor
from gradcli.eager._core.unsupported import ON_TORCH
from gradcli.eager._engine.arguments import Shape
from gradcli.eager._engine.record import declared, record
from gradcli.eager._ops.table import described
from gradcli.eager._ops.views import squeeze, unsqueeze
from gradcli.eager.nn._layer import Affine, Windows, combined, dense, layer, records, spread, weighted
from gradcli.primitives.axes import reshaped


def _convolved(x: Any, weight: Any, bias: Any, *, windows: Windows, groups: int) -> Any:
    (batch, channels), filters = x.shape[:2], weight.shape[0]
    rows, length = channels // groups * math.prod(windows.kernel), math.prod(windows.out)
    lead = (groups,) if groups > 1 else ()
    left = reshaped(weight, (*lead, filters // groups, rows))
    product = declared("matmul", left, reshaped(windows.columns(x), (batch, *lead, rows, length)))
    return reshaped(_biased(reshaped(product, (batch, filters, length)), bias), (batch, filters, *windows.out))


def _biased(x: Any, bias: Any) -> Any:
    if not bias.shape:
        return x
    return combined("add", x, reshaped(bias, (*bias.shape, *(1,) * (len(x.shape) - 2))))


def _named_padding(padding: str, kernel: Shape, dilation: Shape, stride: Shape, error: type[Exception]) -> Shape:
    """The widths that "valid" and "same" mean. `error` where they are not the same at both ends."""
    if padding == "valid":
        return (0,) * len(kernel)
    if padding != "same":
        raise error(f"Invalid padding string: '{padding}'; it is 'valid' or 'same'")
    if any(by != 1 for by in stride):
        raise error("padding='same' is not supported for strided convolutions")
    widths = [gap * (n - 1) for n, gap in zip(kernel, dilation, strict=True)]
    if any(n % 2 for n in widths):
        raise error("padding='same' with a kernel of even size is not supported: call functional.pad first")
    return tuple([n // 2 for n in widths])


def _convolution(axes: int, xs: tuple[Any, ...], stride: Any, padding: Any, dilation: Any, groups: int) -> Tensor:
    """A convolution of images with filters, plus a bias or None.

    RuntimeError for ranks, dtypes and sizes that do not fit.
    """
    name, (input, weight, bias) = f"conv{axes}d", xs
    if input.ndim == axes + 1:
        return squeeze(_convolution(axes, (unsqueeze(input, 0), weight, bias), stride, padding, dilation, groups), 0)
    for what, x in (("weight", weight), ("input", input)):
        if x.ndim != axes + 2:
            raise RuntimeError(f"Expected {axes + 2}D {what} for {name}, but got {what} of size: {list(x.shape)}")
    if any(x is not None and x.dtype is not input.dtype for x in xs):
        raise RuntimeError(f"Input type ({input.dtype}) and weight type ({weight.dtype}) and bias should be the same")
    stride, dilation = spread(stride, axes, "stride"), spread(dilation, axes, "dilation")
    for sizes, what in ((stride, "stride"), (dilation, "dilation"), ((groups,), "groups")):
        if any(n <= 0 for n in sizes):
            raise RuntimeError(f"{name}: non-positive {what} is not supported")
    (filters, each, *kernel), channels = weight.shape, input.shape[1]
    if filters % groups or channels != each * groups:
        raise RuntimeError(
            f"weight {list(weight.shape)}: expected input to have {each * groups} channels, but got {channels}"
        )
    if bias is not None and tuple(bias.shape) != (filters,):
        raise RuntimeError(f"{name}: the bias must have one entry for each of the {filters} filters")
    if isinstance(padding, str):
        padding = _named_padding(padding, tuple(kernel), dilation, stride, RuntimeError)
    padding, sizes = spread(padding, axes, "padding"), tuple(input.shape[2:])
    if any(n < 0 for n in padding):
        raise RuntimeError("negative padding is not supported")
    windows = Windows.on(sizes, tuple(kernel), stride, padding, dilation)
    if any(n < 1 for n in windows.out):
        placed = f"{kernel} with dilation {list(dilation)} on {list(sizes)} with padding {list(padding)}"
        raise RuntimeError(f"Kernel size can't be greater than actual input size: {placed}")
    xs = (input, weight, 0 if bias is None else bias)
    params = {"windows": windows, "groups": groups}
    return dense(record(_convolved, xs, params, conv1d.node, keep_integer=True))


def _conv(axes: int, images: str) -> Any:
    def convolve(
        input: Tensor,
        weight: Tensor,
        bias: Tensor | None = None,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
    ) -> Tensor:
        return _convolution(axes, (input, weight, bias), stride, padding, dilation, groups)

    name = f"conv{axes}d"
    doc = f"""Sums of products of windows of {images} with filters (O, C / groups, ...), plus a bias (O,).

    `padding` is a number of zeros at both ends, 'valid' or 'same'. RuntimeError for sizes that do not fit.

    >>> ones = (1,) * {axes - 1}
    >>> x, filters = torch.tensor([1.0, 2.0, 4.0]), torch.tensor([1.0, -1.0])
    >>> {name}(x.view(1, 1, *ones, 3), filters.view(1, 1, *ones, 2)).flatten()
    tensor([-1., -2.])
    """
    return records("ConvolutionBackward0")(described(convolve, name, doc))


conv1d, conv2d, conv3d = _conv(1, "(N, C, L)"), _conv(2, "(N, C, H, W)"), _conv(3, "(N, C, D, H, W)")


class _ConvNd(Affine):
    """Filters and a bias; `_axes` is the number of axes of the images. ValueError for sizes that do not fit."""

    _axes: ClassVar[int] = 0
    _options = weighted(
        "in_channels, out_channels, kernel_size, stride=1, padding=0, dilation=1, groups=1, bias=True, "
        "padding_mode='zeros'"
    )
    _shown = "{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"

    @property
    def _usual(self) -> dict[str, Any]:  # type: ignore[override]
        axes = self._axes
        return {"padding": (0,) * axes, "dilation": (1,) * axes, "groups": 1, "bias": True}

    def _build(
        self, in_channels: int, out_channels: int, groups: int, bias: bool, padding_mode: str, dtype: Any, **sizes: Any
    ) -> None:
        if groups <= 0:
            raise ValueError("groups must be a positive integer")
        for count, what in ((in_channels, "in_channels"), (out_channels, "out_channels")):
            if count % groups:
                raise ValueError(f"{what} must be divisible by groups")
        if padding_mode != "zeros":
            raise ValueError(f"padding_mode={padding_mode!r} is not part of gradcli; {ON_TORCH}")
        for name, value in sizes.items():
            sizes[name] = value if isinstance(value, str) else spread(value, self._axes, name)
        if isinstance(sizes["padding"], str):
            _named_padding(sizes["padding"], sizes["kernel_size"], sizes["dilation"], sizes["stride"], ValueError)
        super()._build(
            in_channels=in_channels, out_channels=out_channels, groups=groups, padding_mode=padding_mode, **sizes
        )
        self.transposed, self.output_padding = False, (0,) * self._axes  # PyTorch's layers have them too
        shape = (out_channels, in_channels // groups, *self.kernel_size)
        self._weights(dtype, weight=shape, bias=(out_channels,) if bias else None)
        self.reset_parameters()


Conv1d = layer("Conv1d", conv1d, base=_ConvNd, axes=1)
Conv2d = layer("Conv2d", conv2d, base=_ConvNd, axes=2)
Conv3d = layer("Conv3d", conv3d, base=_ConvNd, axes=3)
