"""Sizes go in, layers that rearrange or norm images come out: frames, pixels, columns, groups of channels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gradcli.eager.factory import ones, zeros
from gradcli.eager.nn import functional, init
from gradcli.eager.nn.modules.layers import BatchNorm1d, Dropout
from gradcli.eager.nn.modules.module import Module
from gradcli.eager.nn.parameter import Parameter

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gradcli.eager.tensor import Tensor


class BatchNorm2d(BatchNorm1d):
    """`BatchNorm1d` for images (N, C, H, W). ValueError for other inputs."""

    ranks = (4,)


class BatchNorm3d(BatchNorm1d):
    """`BatchNorm1d` for volumes (N, C, D, H, W). ValueError for other inputs."""

    ranks = (5,)


class Dropout2d(Dropout):
    """In training whole channels are set to zero with probability p, the others divided by 1 - p."""

    def forward(self, input: Tensor) -> Tensor:
        """The tensor with some channels dropped; in evaluation the tensor itself."""
        return functional.dropout2d(input, self.p, self.training, self.inplace)


class GroupNorm(Module):
    """Each group of channels of each sample in normal form, then a weight and a bias for each channel."""

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-5,
        affine: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        if num_channels % num_groups:
            raise ValueError("num_channels must be divisible by num_groups")
        self.num_groups = num_groups
        self.num_channels = num_channels
        self.eps = eps
        self.affine = affine
        self.register_parameter("weight", Parameter(ones(num_channels, dtype=dtype)) if affine else None)
        self.register_parameter("bias", Parameter(zeros(num_channels, dtype=dtype)) if affine and bias else None)

    def reset_parameters(self) -> None:
        """Weight one, bias zero."""
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)

    def forward(self, input: Tensor) -> Tensor:
        """The groups in normal form."""
        return functional.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        given = self.bias is not None
        return f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}, bias={given}"


class _InstanceNorm(Module):
    rank = 0

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.1,
        affine: bool = False,
        track_running_stats: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        if track_running_stats:
            raise RuntimeError("InstanceNorm: track_running_stats is not supported")
        self.num_features = num_features
        self.eps = eps
        self.momentum = momentum
        self.affine = affine
        self.track_running_stats = track_running_stats
        self.register_parameter("weight", Parameter(ones(num_features, dtype=dtype)) if affine else None)
        self.register_parameter("bias", Parameter(zeros(num_features, dtype=dtype)) if affine else None)

    def forward(self, input: Tensor) -> Tensor:
        """The channels of each sample in normal form. ValueError for another number of axes."""
        if input.ndim not in (self.rank - 1, self.rank):
            raise ValueError(f"expected {self.rank - 1}D or {self.rank}D input (got {input.ndim}D input)")
        if input.ndim == self.rank - 1:
            single: Tensor = self.forward(input.unsqueeze(0)).squeeze(0)
            return single
        return functional.instance_norm(input, weight=self.weight, bias=self.bias, eps=self.eps)

    def extra_repr(self) -> str:
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, "
            f"bias={self.bias is not None}, track_running_stats={self.track_running_stats}"
        )


class InstanceNorm1d(_InstanceNorm):
    """Each channel of each sample of (N, C, L) in normal form."""

    rank = 3


class InstanceNorm2d(_InstanceNorm):
    """Each channel of each image of (N, C, H, W) in normal form."""

    rank = 4


class RMSNorm(Module):
    """The last axes divided by their root mean square, then times a weight."""

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float | None = None,
        elementwise_affine: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
        self.normalized_shape = shape
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        self.register_parameter("weight", Parameter(ones(*shape, dtype=dtype)) if elementwise_affine else None)

    def forward(self, input: Tensor) -> Tensor:
        """The tensor in this form."""
        return functional.rms_norm(input, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"


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
    """Images of another size, each pixel that of the nearest one."""

    def __init__(self, size: Any = None, scale_factor: Any = None, mode: str = "nearest") -> None:
        super().__init__()
        self.name = type(self).__name__
        self.size = size
        several = isinstance(scale_factor, (tuple, list))
        self.scale_factor = (
            None if scale_factor is None else tuple(map(float, scale_factor)) if several else float(scale_factor)
        )
        self.mode = mode

    def forward(self, input: Tensor) -> Tensor:
        """The images of that size."""
        return functional.interpolate(input, self.size, self.scale_factor, self.mode)

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


class ZeroPad2d(Module):
    """A frame of zeros: (left, right, top, bottom), or one width for all."""

    def __init__(self, padding: Any) -> None:
        super().__init__()
        self.value = 0.0
        self.padding = (padding,) * 4 if isinstance(padding, int) else tuple(padding)

    def forward(self, input: Tensor) -> Tensor:
        """The images with their frame."""
        return functional.pad(input, self.padding)

    def extra_repr(self) -> str:
        return str(self.padding)
