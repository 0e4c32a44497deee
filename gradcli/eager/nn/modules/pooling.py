"""Sizes go in, layers that make one entry of a window come out: the largest or the average; they call `functional`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from gradcli.eager.nn import functional
from gradcli.eager.nn.functional.windows import spread
from gradcli.eager.nn.modules.module import Module

if TYPE_CHECKING:
    from gradcli.eager.tensor import Tensor


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
