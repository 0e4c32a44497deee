"""Sizes go in, layers that rearrange images come out: pixels, columns, other sizes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gradcli.eager.nn import functional
from gradcli.eager.nn.modules.layers import Dropout
from gradcli.eager.nn.modules.module import Module

if TYPE_CHECKING:
    from gradcli.eager.tensor import Tensor


class Dropout2d(Dropout):
    """In training whole channels are set to zero with probability p, the others divided by 1 - p."""

    def forward(self, input: Tensor) -> Tensor:
        """The tensor with some channels dropped; in evaluation the tensor itself."""
        return functional.dropout2d(input, self.p, self.training, self.inplace)


class Unfold(Module):
    """The windows of images as columns."""

    def __init__(self, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.dilation = dilation
        self.padding = padding
        self.stride = stride

    def forward(self, input: Tensor) -> Tensor:
        """The columns."""
        return functional.unfold(input, self.kernel_size, self.dilation, self.padding, self.stride)

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, dilation={self.dilation}, padding={self.padding}, stride={self.stride}"


class Fold(Unfold):
    """Columns added up to images."""

    def __init__(
        self, output_size: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1
    ) -> None:
        super().__init__(kernel_size, dilation, padding, stride)
        self.output_size = output_size

    def forward(self, input: Tensor) -> Tensor:
        """The images."""
        sizes = (self.kernel_size, self.dilation, self.padding, self.stride)
        return functional.fold(input, self.output_size, *sizes)

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}, {super().extra_repr()}"


class Upsample(Module):
    """Images of another size, by `functional.interpolate`."""

    def __init__(
        self,
        size: Any = None,
        scale_factor: Any = None,
        mode: str = "nearest",
        align_corners: bool | None = None,
        recompute_scale_factor: bool | None = None,
    ) -> None:
        super().__init__()
        self.name = type(self).__name__
        self.size = size
        several = isinstance(scale_factor, (tuple, list))
        self.scale_factor = (
            None if scale_factor is None else tuple(map(float, scale_factor)) if several else float(scale_factor)
        )
        self.mode = mode
        self.align_corners = align_corners
        self.recompute_scale_factor = recompute_scale_factor

    def forward(self, input: Tensor) -> Tensor:
        """The images of that size."""
        sizes = (self.size, self.scale_factor, self.mode)
        return functional.interpolate(input, *sizes, self.align_corners, self.recompute_scale_factor)

    def extra_repr(self) -> str:
        what = f"size={self.size}" if self.scale_factor is None else f"scale_factor={self.scale_factor}"
        return f"{what}, mode={self.mode!r}"


class PixelShuffle(Module):
    """Channels become pixels."""

    def __init__(self, upscale_factor: int) -> None:
        super().__init__()
        self.upscale_factor = upscale_factor

    def forward(self, input: Tensor) -> Tensor:
        """The larger images."""
        return functional.pixel_shuffle(input, self.upscale_factor)

    def extra_repr(self) -> str:
        return f"upscale_factor={self.upscale_factor}"
