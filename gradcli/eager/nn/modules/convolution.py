"""Sizes go in, layers of convolution and pooling come out, started from PyTorch's numbers; they call `functional`."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, ClassVar

from gradcli.eager.factory import empty
from gradcli.eager.nn import functional, init
from gradcli.eager.nn.functional.convolution import spread
from gradcli.eager.nn.modules.module import Module
from gradcli.eager.nn.parameter import Parameter

if TYPE_CHECKING:
    from gradcli.eager.tensor import Tensor


class _Convolution(Module):
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
            raise RuntimeError(f"padding_mode={padding_mode!r} is not supported: only 'zeros' is")
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
        return ", ".join(parts)


class _Forward(_Convolution):
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
        function = getattr(functional, f"conv{self.axes}d")
        found: Tensor = function(input, self.weight, self.bias, self.stride, self.padding, self.dilation, self.groups)
        return found


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


class _Backward(_Convolution):
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

    def forward(self, input: Tensor) -> Tensor:
        """The transposed convolution with the filters, plus the bias."""
        function = getattr(functional, f"conv_transpose{self.axes}d")
        more = (self.stride, self.padding, self.output_padding, self.groups, self.dilation)
        found: Tensor = function(input, self.weight, self.bias, *more)
        return found


class ConvTranspose1d(_Backward):
    """`functional.conv_transpose1d` with filters of its own."""

    axes = 1


class ConvTranspose2d(_Backward):
    """`functional.conv_transpose2d` with filters of its own."""

    axes = 2


# --- pooling ---------------------------------------------------------------------------------------------------------


class _MaxPool(Module):
    axes: ClassVar[int] = 0

    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        dilation: Any = 1,
        return_indices: bool = False,
        ceil_mode: bool = False,
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding = padding
        self.dilation = dilation
        self.return_indices = return_indices
        self.ceil_mode = ceil_mode

    def forward(self, input: Tensor) -> Any:
        """The largest entries of windows."""
        function = getattr(functional, f"max_pool{self.axes}d")
        sizes = (self.kernel_size, self.stride, self.padding, self.dilation)
        return function(input, *sizes, self.ceil_mode, self.return_indices)

    def extra_repr(self) -> str:
        return (
            f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}, dilation={self.dilation}, "
            f"ceil_mode={self.ceil_mode}"
        )


class MaxPool1d(_MaxPool):
    """`functional.max_pool1d` with sizes of its own."""

    axes = 1


class MaxPool2d(_MaxPool):
    """`functional.max_pool2d` with sizes of its own."""

    axes = 2


class AvgPool1d(Module):
    """`functional.avg_pool1d` with sizes of its own."""

    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> None:
        super().__init__()
        self.kernel_size = spread(kernel_size, 1, "kernel_size")
        self.stride = spread(kernel_size if stride is None else stride, 1, "stride")
        self.padding = spread(padding, 1, "padding")
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad

    def forward(self, input: Tensor) -> Tensor:
        """The averages of windows."""
        sizes = (self.kernel_size, self.stride, self.padding)
        return functional.avg_pool1d(input, *sizes, self.ceil_mode, self.count_include_pad)

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class AvgPool2d(Module):
    """`functional.avg_pool2d` with sizes of its own."""

    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding = padding
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad
        self.divisor_override = divisor_override

    def forward(self, input: Tensor) -> Tensor:
        """The averages of windows."""
        sizes = (self.kernel_size, self.stride, self.padding)
        return functional.avg_pool2d(input, *sizes, self.ceil_mode, self.count_include_pad, self.divisor_override)

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class _Adaptive(Module):
    function: ClassVar[str] = ""

    def __init__(self, output_size: Any) -> None:
        super().__init__()
        self.output_size = output_size

    def forward(self, input: Tensor) -> Tensor:
        """One entry for each of so many windows."""
        found: Tensor = getattr(functional, self.function)(input, self.output_size)
        return found

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}"


class AdaptiveAvgPool1d(_Adaptive):
    """`functional.adaptive_avg_pool1d` with a size of its own."""

    function = "adaptive_avg_pool1d"


class AdaptiveAvgPool2d(_Adaptive):
    """`functional.adaptive_avg_pool2d` with a size of its own."""

    function = "adaptive_avg_pool2d"


class AdaptiveMaxPool2d(_Adaptive):
    """`functional.adaptive_max_pool2d` with a size of its own."""

    function = "adaptive_max_pool2d"

    def __init__(self, output_size: Any, return_indices: bool = False) -> None:
        super().__init__(output_size)
        if return_indices:
            raise RuntimeError("AdaptiveMaxPool2d: return_indices is not supported")
        self.return_indices = return_indices
