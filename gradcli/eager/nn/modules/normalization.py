"""Normalization to mean 0 and variance 1: by layer, batch, instance and group; and by the root mean square."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from gradcli.eager._core import dtypes
from gradcli.eager._core.tensor import Tensor
from gradcli.eager._engine.arguments import checked
from gradcli.eager._engine.numpy_kernels import sums
from gradcli.eager._engine.record import declared
from gradcli.eager._ops.tensor_creation import ones, tensor, zeros
from gradcli.eager.nn import init
from gradcli.eager.nn._layer import Layer, combined, fused, layer, records, weighted, with_number
from gradcli.primitives.axes import reshaped


def _layer_norm(x: Any, weight: Any, bias: Any, *, axes: tuple[int, ...], eps: float) -> Any:
    return _affine_of(_standard(x, axes, eps), weight, bias)


def _standard(x: Any, axes: tuple[int, ...], eps: float, weight: Any = None) -> Any:
    """Shifted to mean 0 and scaled to variance 1 along some axes, or to the square of a weight."""
    away = x - _spread(declared("mean", x, axis=axes, keepdims=True), x)
    return _scaled(away, declared("mean", away**2, axis=axes, keepdims=True), eps, weight)


def _scaled(away: Any, var: Any, eps: float, weight: Any = None) -> Any:
    """Divided by the deviation, times a weight of the same few entries."""
    factor = 1 / declared("sqrt", var + eps)
    return away * _spread(factor if weight is None else _affine_of(factor, weight, None), away)


def _spread(x: Any, like: Any) -> Any:
    return declared("broadcast_to", x, shape=tuple(like.shape))


def _affine_of(x: Any, weight: Any, bias: Any) -> Any:
    x = x if weight is None else combined("mul", x, weight)
    return x if bias is None else combined("add", x, bias)


@records("NativeLayerNormBackward0", floating=True)
def layer_norm(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """The last axes shifted to mean 0 and scaled to variance 1, then times `weight` plus `bias`."""
    xs = (input, 1.0 if weight is None else weight, 0.0 if bias is None else bias)
    return fused(_layer_norm, xs, layer_norm.node, axes=_last_axes(input, normalized_shape), eps=eps)


def _last_axes(input: Tensor, normalized_shape: Sequence[int]) -> tuple[int, ...]:
    """The axes of a shape at the end of the input's. RuntimeError where that does not end so."""
    shape = tuple(normalized_shape)
    if not shape or tuple(input.shape[-len(shape) :]) != shape:
        raise RuntimeError(f"normalized_shape={list(shape)} is not the end of the input's shape {list(input.shape)}")
    return tuple(range(-len(shape), 0))


def _batch_norm(x: Any, *factors: Any, eps: float) -> Any:
    """By the mean and variance of the batch, or by the running ones where they are given."""
    weight, bias, *running = [_by_channel(factor, x) for factor in factors]
    if running:
        scaled = _scaled(x - _spread(running[0], x), running[1], eps, weight)
    else:
        scaled = _standard(x, tuple([i - len(x.shape) for i in range(len(x.shape)) if i != 1]), eps, weight)
    return _affine_of(scaled, None, bias)


def _by_channel(w: Any, x: Any) -> Any:
    """The numbers of the channels of x, along axis 1; a plain number as it is."""
    return reshaped(w, tuple([n if i == 1 else 1 for i, n in enumerate(x.shape)])) if w.shape else w


@records("NativeBatchNormBackward0", floating=True)
def batch_norm(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Each channel (axis 1) shifted and scaled by the mean and variance of the batch, or by the running ones.

    In training the running ones move towards those of the batch. ValueError for a channel with one value.
    """
    if training:
        count = input.numel() // max(input.shape[1], 1)
        if count <= 1:
            raise ValueError(f"Expected more than 1 value per channel when training, got input size {input.shape}")
        if running_mean is not None and running_var is not None:
            _follow(input, running_mean, running_var, momentum, count)
    elif running_mean is None or running_var is None:
        raise RuntimeError("without training, running_mean and running_var must be given")
    xs = (input, 1.0 if weight is None else weight, 0.0 if bias is None else bias)
    running = () if training else (running_mean, running_var)
    return fused(_batch_norm, (*xs, *running), batch_norm.node, edges=3, eps=eps)


def _follow(input: Tensor, mean: Tensor, var: Tensor, momentum: float, count: int) -> None:
    array = input._array.reshape(*input.shape[:2], -1)
    wide = np.promote_types(array.dtype, np.float32)
    center = sums(array.astype(wide, copy=False), (-1,)).sum(0, dtype=np.float64) / count
    away = array - center.astype(array.dtype)[:, None]
    away *= away
    spread = sums(away.astype(wide, copy=False), (-1,)).sum(0, dtype=np.float64) / (count - 1)
    for running, new in ((mean, center), (var, spread)):
        array_of = running._array
        array_of *= array_of.dtype.type(1 - momentum)
        array_of += (momentum * new).astype(array_of.dtype)
        running._counter.bump(None)


def _group_norm(x: Any, weight: Any, bias: Any, *, groups: int, eps: float) -> Any:
    rows = reshaped(x, (x.shape[0], groups, math.prod(x.shape[1:]) // groups))
    scaled = reshaped(_standard(rows, (-1,), eps), x.shape)
    return _affine_of(scaled, _by_channel(weight, x), _by_channel(bias, x))


@records("NativeGroupNormBackward0")
def group_norm(
    input: Tensor, num_groups: int, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5
) -> Tensor:
    """Each group of channels of each sample shifted to mean 0 and scaled to variance 1, then `weight` and `bias`.

    RuntimeError unless the groups are of one size.
    """
    if input.ndim < 2:
        raise RuntimeError(f"group_norm expects at least 2 dimensions, but the input has {input.ndim}")
    if num_groups <= 0 or input.shape[1] % num_groups:
        raise RuntimeError(f"Expected number of channels ({input.shape[1]}) to be divisible by num_groups={num_groups}")
    if math.prod(input.shape[1:]) * input.shape[0] // num_groups <= 1:
        raise ValueError(f"Expected more than 1 value per channel when training, got input size {input.shape}")
    xs = (input, 1.0 if weight is None else weight, 0.0 if bias is None else bias)
    return fused(_group_norm, xs, group_norm.node, groups=num_groups, eps=eps)


@checked
def instance_norm(
    input: Tensor,
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Each channel of each sample shifted to mean 0 and scaled to variance 1. RuntimeError for running averages."""
    if use_input_stats and (input.ndim < 3 or math.prod(input.shape[2:]) <= 1):
        raise ValueError(f"Expected more than 1 spatial element when training, got input size {input.shape}")
    if running_mean is not None or not use_input_stats:
        raise RuntimeError("instance_norm with running averages is not supported: it takes them from the input")
    batch, channels, *sizes = input.shape
    rows = input.view(1, batch * channels, *sizes)
    factor, shift = (None if w is None else w.repeat(batch) for w in (weight, bias))
    return batch_norm(rows, None, None, factor, shift, True, momentum, eps).view(input.shape)


@checked
def rms_norm(
    input: Tensor, normalized_shape: Sequence[int], weight: Tensor | None = None, eps: float | None = None
) -> Tensor:
    """The last axes divided by their root mean square, then times `weight`."""
    axes = _last_axes(input, normalized_shape)
    small = float(np.finfo(input.dtype.np).eps) if eps is None else eps
    squares = input.pow(2).mean(axes, True)
    scaled: Tensor = input * with_number("add", squares, small).rsqrt()
    return scaled if weight is None else scaled * weight


class _Norm(Layer):
    """A weight and a bias of the size that `_size` names, either of which may be missing."""

    _size: ClassVar[str] = "num_features"

    def _build(self, dtype: Any, **options: Any) -> None:
        size = options[self._size]
        shape = (size,) if isinstance(size, int) else tuple(size)
        if self._size == "num_channels" and size % options["num_groups"]:
            raise ValueError("num_channels must be divisible by num_groups")
        affine = options["affine" if "affine" in options else "elementwise_affine"]
        shapes = {"weight": shape if affine else None}
        if "bias" in options:
            shapes["bias"] = shape if options.pop("bias") and affine else None
        super()._build(**{**options, self._size: shape if self._size == "normalized_shape" else size})
        self._weights(dtype, **shapes)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Weight one, bias zero."""
        if self.weight is not None:
            init.ones_(self.weight)
        if self._parameters.get("bias") is not None:
            init.zeros_(self.bias)


class LayerNorm(_Norm, function=layer_norm):
    """The last axes shifted to mean 0 and scaled to variance 1, then times a weight plus a bias."""

    _size = "normalized_shape"
    _options = weighted("normalized_shape, eps=1e-5, elementwise_affine=True, bias=True")
    _shown = (
        "{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}, bias={self._has_bias}"
    )


class RMSNorm(_Norm, function=rms_norm):
    """The last axes divided by their root mean square, then times a weight."""

    _size = "normalized_shape"
    _options = weighted("normalized_shape, eps=None, elementwise_affine=True")
    _shown = "{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"


class GroupNorm(_Norm, function=group_norm):
    """Each group of channels of each sample normalized, then a weight and a bias for each channel."""

    _size = "num_channels"
    _options = weighted("num_groups, num_channels, eps=1e-5, affine=True, *, bias=True")
    _shown = "{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}, bias={self._has_bias}"


class _ChannelNorm(_Norm):
    """Channels (axis 1) normalized; `_ranks` are the numbers of axes that an input may have."""

    _ranks: ClassVar[tuple[int, ...]] = ()
    _shown = (
        "{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, bias={self._has_bias}, "
        "track_running_stats={self.track_running_stats}"
    )

    def _check(self, input: Tensor) -> None:
        if input.ndim not in self._ranks:
            wanted = " or ".join(f"{rank}D" for rank in self._ranks)
            raise ValueError(f"expected {wanted} input (got {input.ndim}D input)")


class _BatchNorm(_ChannelNorm):
    """Each channel shifted and scaled by the batch in training, by running averages in evaluation."""

    _options = weighted("num_features, eps=1e-5, momentum=0.1, affine=True, track_running_stats=True, *, bias=True")

    def _build(self, dtype: Any, **options: Any) -> None:
        super()._build(dtype=dtype, **options)
        count, tracked = options["num_features"], options["track_running_stats"]
        self.register_buffer("running_mean", zeros(count, dtype=dtype) if tracked else None)
        self.register_buffer("running_var", ones(count, dtype=dtype) if tracked else None)
        self.register_buffer("num_batches_tracked", tensor(0, dtype=dtypes.int64) if tracked else None)

    def forward(self, input: Tensor) -> Tensor:
        """The normalized channels. ValueError for another number of axes."""
        self._check(input)
        momentum = 0.0 if self.momentum is None else self.momentum
        if self.training and self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)
            if self.momentum is None:
                momentum = 1.0 / float(self.num_batches_tracked)
        of_batch = self.training or self.running_mean is None
        kept = not self.training or self.track_running_stats
        mean, var = (self.running_mean, self.running_var) if kept else (None, None)
        return batch_norm(input, mean, var, self.weight, self.bias, of_batch, momentum, self.eps)


class _InstanceNorm(_ChannelNorm):
    """The channels of each sample, normalized. RuntimeError for running averages."""

    _options = weighted("num_features, eps=1e-5, momentum=0.1, affine=False, track_running_stats=False, *, bias=True")

    def _build(self, **options: Any) -> None:  # type: ignore[override]
        if options["track_running_stats"]:
            raise RuntimeError("InstanceNorm: track_running_stats is not supported")
        super()._build(**options)

    def forward(self, input: Tensor) -> Tensor:
        """The channels of each sample, normalized. ValueError for another number of axes."""
        self._check(input)
        if input.ndim == self._ranks[0]:
            return self.forward(input.unsqueeze(0)).squeeze(0)
        return instance_norm(input, weight=self.weight, bias=self.bias, eps=self.eps)


BatchNorm1d = layer("BatchNorm1d", batch_norm, base=_BatchNorm, ranks=(2, 3))
BatchNorm2d = layer("BatchNorm2d", batch_norm, base=_BatchNorm, ranks=(4,))
BatchNorm3d = layer("BatchNorm3d", batch_norm, base=_BatchNorm, ranks=(5,))
InstanceNorm1d = layer("InstanceNorm1d", instance_norm, base=_InstanceNorm, ranks=(2, 3))
InstanceNorm2d = layer("InstanceNorm2d", instance_norm, base=_InstanceNorm, ranks=(3, 4))
InstanceNorm3d = layer("InstanceNorm3d", instance_norm, base=_InstanceNorm, ranks=(4, 5))
