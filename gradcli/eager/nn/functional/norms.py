"""Images or rows go in, the same in normal form come out: by row, batch, group of channels, image, root mean square."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.eager.nn.functional.fusing import declared, fused, shifted
from gradcli.primitives.broadcasting import together

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gradcli.eager.tensor import Tensor


def _layer_norm(x: Any, weight: Any, bias: Any, *, axes: tuple[int, ...], eps: float) -> Any:
    away = x - mean_of(x, axes)
    scaled = away / declared("sqrt", mean_of(away * away, axes) + eps)
    return affine_of(scaled, weight, bias)


def mean_of(x: Any, axes: tuple[int, ...]) -> Any:
    return declared("broadcast_to", declared("mean", x, axis=axes, keepdims=True), shape=tuple(x.shape))


def affine_of(x: Any, weight: Any, bias: Any) -> Any:
    for name, operand in (("mul", weight), ("add", bias)):
        if operand is not None:
            one, other = together(x, operand)
            x = one * other if name == "mul" else one + other
    return x


def layer_norm(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """The last axes shifted to mean 0 and scaled to variance 1, then times `weight` plus `bias`."""
    shape = tuple(normalized_shape)
    if tuple(input.shape[input.ndim - len(shape) :]) != shape or input.ndim < len(shape):
        raise RuntimeError(
            f"Given normalized_shape={list(shape)}, expected an input whose shape ends so, but it is "
            f"{list(input.shape)}"
        )
    xs = (input, 1.0 if weight is None else weight, 0.0 if bias is None else bias)
    return fused(_layer_norm, xs, "NativeLayerNormBackward0", axes=tuple(range(-len(shape), 0)), eps=eps)


def _batch_norm(x: Any, mean: Any, var: Any, weight: Any, bias: Any, *, trained: bool, eps: float) -> Any:
    axes = tuple(i - len(x.shape) for i in range(len(x.shape)) if i != 1)
    shape = tuple(n if i == 1 else 1 for i, n in enumerate(x.shape))
    if trained:
        away = x - mean_of(x, axes)
        var = mean_of(away * away, axes)
    else:
        one, other = together(x, declared("reshape", mean, shape=shape), verb="subtract")
        away = one - other
        var = declared("broadcast_to", declared("reshape", var, shape=shape), shape=tuple(x.shape))
    scaled = away / declared("sqrt", var + eps)
    return affine_of(scaled, *[declared("reshape", w, shape=shape) if w.shape else w for w in (weight, bias)])


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
    rest = (1.0 if weight is None else weight, 0.0 if bias is None else bias)
    if training:
        return fused(_batch_norm_of_batch, (input, *rest), "NativeBatchNormBackward0", eps=eps)
    name = "NativeBatchNormBackward0"
    return fused(_batch_norm_of_run, (input, *rest, running_mean, running_var), name, edges=3, eps=eps)


def _batch_norm_of_batch(x: Any, weight: Any, bias: Any, *, eps: float) -> Any:
    return _batch_norm(x, None, None, weight, bias, trained=True, eps=eps)


def _batch_norm_of_run(x: Any, weight: Any, bias: Any, mean: Any, var: Any, *, eps: float) -> Any:
    return _batch_norm(x, mean, var, weight, bias, trained=False, eps=eps)


def _follow(input: Tensor, mean: Tensor, var: Tensor, momentum: float, count: int) -> None:
    axes = tuple([i for i in range(input.ndim) if i != 1])
    array = input._array
    here = array.mean(axis=axes, dtype=np.float64)
    spread = array.var(axis=axes, dtype=np.float64) * (count / (count - 1))
    for running, new in ((mean, here), (var, spread)):
        array_of = running._array
        array_of *= array_of.dtype.type(1 - momentum)
        array_of += (momentum * new).astype(array_of.dtype)
        running._counter.bump(None)


def _group_norm(x: Any, weight: Any, bias: Any, *, groups: int, eps: float) -> Any:
    batch, channels = x.shape[:2]
    rows = declared("reshape", x, shape=(batch, groups, math.prod(x.shape[1:]) // groups))
    away = rows - mean_of(rows, (-1,))
    scaled = away / declared("sqrt", mean_of(away * away, (-1,)) + eps)
    shape = (channels, *(1,) * (len(x.shape) - 2))
    factors = [declared("reshape", w, shape=shape) if w.shape else w for w in (weight, bias)]
    return affine_of(declared("reshape", scaled, shape=tuple(x.shape)), *factors)


def group_norm(
    input: Tensor, num_groups: int, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5
) -> Tensor:
    """Each group of channels of each sample shifted to mean 0 and scaled to variance 1, then `weight` and `bias`.

    RuntimeError unless the groups are of one size.
    """
    if input.ndim < 2:
        raise RuntimeError(f"group_norm expects at least 2 dimensions, but the input has {input.ndim}")
    if num_groups == 0:
        raise ZeroDivisionError("group_norm: there must be one group at least")
    if num_groups < 0 or input.shape[1] % num_groups:
        raise RuntimeError(
            f"Expected number of channels in input to be divisible by num_groups, but got input of shape "
            f"{list(input.shape)} and num_groups={num_groups}"
        )
    if math.prod(input.shape[1:]) * input.shape[0] // num_groups <= 1:
        raise ValueError(f"Expected more than 1 value per channel when training, got input size {input.shape}")
    xs = (input, 1.0 if weight is None else weight, 0.0 if bias is None else bias)
    return fused(_group_norm, xs, "NativeGroupNormBackward0", groups=num_groups, eps=eps)


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
    if running_mean is not None or running_var is not None or not use_input_stats:
        raise RuntimeError("instance_norm with running averages is not supported: it takes them from the input")
    batch, channels, *sizes = input.shape
    rows = input.view(1, batch * channels, *sizes)
    factor, shift = (None if w is None else w.repeat(batch) for w in (weight, bias))
    scaled = batch_norm(rows, None, None, factor, shift, True, momentum, eps)
    found: Tensor = scaled.view(input.shape)
    return found


def rms_norm(
    input: Tensor, normalized_shape: Sequence[int], weight: Tensor | None = None, eps: float | None = None
) -> Tensor:
    """The last axes divided by their root mean square, then times `weight`."""
    shape = tuple(normalized_shape)
    if not shape or tuple(input.shape[input.ndim - len(shape) :]) != shape:
        raise RuntimeError(f"Given normalized_shape={list(shape)}, the input is {list(input.shape)}")
    small = float(np.finfo(input.dtype.np).eps) if eps is None else eps
    squares = input.pow(2).mean(tuple(range(-len(shape), 0)), True)
    found: Tensor = input * shifted(squares, small).rsqrt()
    return found if weight is None else found * weight
