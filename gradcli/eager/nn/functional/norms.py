"""Images or rows go in, the same in normal form come out: by group of channels, by image, by root mean square."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.eager.nn.functional.fusing import declared, fused, shifted
from gradcli.eager.nn.functional.layers import affine_of, batch_norm, mean_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gradcli.eager.tensor import Tensor


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
    if running_mean is not None or running_var is not None or not use_input_stats:
        raise RuntimeError("instance_norm with running averages is not supported: it takes them from the input")
    if input.ndim < 3 or math.prod(input.shape[2:]) <= 1:
        raise ValueError(f"Expected more than 1 spatial element when training, got input size {input.shape}")
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
