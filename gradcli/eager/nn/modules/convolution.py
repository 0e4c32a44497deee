"""Sizes go in, layers of convolution come out, started from PyTorch's numbers; they call `functional`."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, ClassVar

from gradcli.eager.factory import empty
from gradcli.eager.nn import functional, init
from gradcli.eager.nn.functional.windows import spread
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
        padding: Any = self.padding
        if self.padding_mode != "zeros":
            input, padding = functional.pad(input, self._frame(), self.padding_mode), 0
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

    def forward(self, input: Tensor, output_size: Any = None) -> Tensor:
        """The transposed convolution with the filters, plus the bias; of a given size, if that is possible.

        ValueError for sizes that no `output_padding` gives.
        """
        function = getattr(functional, f"conv_transpose{self.axes}d")
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
