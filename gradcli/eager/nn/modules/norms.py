"""Sizes go in, layers that bring values into normal form come out: by row, batch, group or image."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from gradcli.eager import dtypes
from gradcli.eager.factory import ones, tensor, zeros
from gradcli.eager.nn import functional, init
from gradcli.eager.nn.modules.module import Module
from gradcli.eager.nn.parameter import Parameter

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gradcli.eager.tensor import Tensor


class _Normal(Module):
    """A weight and a bias, either of which may be missing, for what is in normal form."""

    weight: Parameter | None
    bias: Parameter | None

    def _scaled(self, shape: tuple[int, ...], weight: bool, bias: bool, dtype: Any) -> None:
        self.register_parameter("weight", Parameter(ones(*shape, dtype=dtype)) if weight else None)
        self.register_parameter("bias", Parameter(zeros(*shape, dtype=dtype)) if bias else None)

    def reset_parameters(self) -> None:
        """Weight one, bias zero."""
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)


class LayerNorm(_Normal):
    """The last axes shifted to mean 0 and scaled to variance 1, then times a weight plus a bias."""

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
        self.normalized_shape = shape
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        self._scaled(shape, elementwise_affine, elementwise_affine and bias, dtype)

    def forward(self, input: Tensor) -> Tensor:
        """The tensor in normal form."""
        return functional.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return (
            f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}, "
            f"bias={self.bias is not None}"
        )


class BatchNorm1d(Module):
    """Each channel (axis 1) shifted and scaled by the batch in training, by running averages in evaluation."""

    ranks: ClassVar[tuple[int, ...]] = (2, 3)

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.num_features = num_features
        self.eps = eps
        self.momentum = momentum
        self.affine = affine
        self.track_running_stats = track_running_stats
        self.register_parameter("weight", Parameter(ones(num_features, dtype=dtype)) if affine else None)
        self.register_parameter("bias", Parameter(zeros(num_features, dtype=dtype)) if affine else None)
        tracked = track_running_stats
        self.register_buffer("running_mean", zeros(num_features, dtype=dtype) if tracked else None)
        self.register_buffer("running_var", ones(num_features, dtype=dtype) if tracked else None)
        self.register_buffer("num_batches_tracked", tensor(0, dtype=dtypes.int64) if tracked else None)

    def forward(self, input: Tensor) -> Tensor:
        """The channels in normal form. ValueError for another number of axes."""
        if input.ndim not in self.ranks:
            wanted = " or ".join(f"{rank}D" for rank in self.ranks)
            raise ValueError(f"expected {wanted} input (got {input.ndim}D input)")
        momentum = 0.0 if self.momentum is None else self.momentum
        if self.training and self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)
            if self.momentum is None:
                momentum = 1.0 / float(self.num_batches_tracked)
        of_batch = self.training or self.running_mean is None
        kept = not self.training or self.track_running_stats
        mean, var = (self.running_mean, self.running_var) if kept else (None, None)
        return functional.batch_norm(input, mean, var, self.weight, self.bias, of_batch, momentum, self.eps)

    def extra_repr(self) -> str:
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, "
            f"bias={self.bias is not None}, track_running_stats={self.track_running_stats}"
        )


class BatchNorm2d(BatchNorm1d):
    """`BatchNorm1d` for images (N, C, H, W). ValueError for other inputs."""

    ranks = (4,)


class BatchNorm3d(BatchNorm1d):
    """`BatchNorm1d` for volumes (N, C, D, H, W). ValueError for other inputs."""

    ranks = (5,)


class GroupNorm(_Normal):
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
        self._scaled((num_channels,), affine, affine and bias, dtype)

    def forward(self, input: Tensor) -> Tensor:
        """The groups in normal form."""
        return functional.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        given = self.bias is not None
        return f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}, bias={given}"


class _InstanceNorm(_Normal):
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
        self._scaled((num_features,), affine, affine, dtype)

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
