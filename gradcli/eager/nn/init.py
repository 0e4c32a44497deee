"""PyTorch's `torch.nn.init`: fills tensors by PyTorch's rules from PyTorch's stream of random numbers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gradcli.eager import random as streams
from gradcli.eager._core import events
from gradcli.eager._core.modes import place, warn
from gradcli.eager._core.tensor import Tensor

_LINEAR = ("linear", "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d")
_GAINS = {**dict.fromkeys((*_LINEAR, "sigmoid"), 1), "tanh": 5.0 / 3, "relu": math.sqrt(2.0), "selu": 3.0 / 4}


def _stream(generator: Any) -> streams.Generator:
    """The generator to draw from. TypeError for anything else."""
    if generator is not None and not isinstance(generator, streams.Generator):
        raise TypeError(f"generator must be a torch.Generator, not {type(generator).__name__}")
    return streams.own.default_generator if generator is None else generator


def _filled(tensor: Tensor, values: Any) -> Tensor:
    """Write into the memory of a tensor, as inside no_grad."""
    tensor._array[...] = values
    tensor._counter.bump(place())
    events.report("filled", tensor, "")
    return tensor


def uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0, generator: Any = None) -> Tensor:
    """Uniform numbers from a to b.

    >>> _ = torch.manual_seed(0)
    >>> uniform_(torch.empty(2))
    tensor([0.4963, 0.7682])
    """
    return _filled(tensor, _stream(generator).uniform_like(tensor._array, a, b))


def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator: Any = None) -> Tensor:
    """Normal numbers of a mean and a standard deviation."""
    return _filled(tensor, _stream(generator).normal_like(tensor._array, mean, std))


def constant_(tensor: Tensor, val: float) -> Tensor:
    """One number everywhere."""
    return _filled(tensor, val)


def ones_(tensor: Tensor) -> Tensor:
    """Ones everywhere."""
    return _filled(tensor, 1)


def zeros_(tensor: Tensor) -> Tensor:
    """Zeros everywhere."""
    return _filled(tensor, 0)


def eye_(tensor: Tensor) -> Tensor:
    """Ones on the diagonal of a matrix. ValueError for other ranks."""
    if tensor.ndim != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    return _filled(tensor, np.eye(*tensor.shape))


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """The factor that keeps the variance through a nonlinearity. ValueError for an unknown one.

    >>> calculate_gain("tanh")
    1.6666666666666667
    """
    if nonlinearity == "leaky_relu":
        slope = 0.01 if param is None else param
        if isinstance(slope, bool) or not isinstance(slope, (int, float)):
            raise ValueError(f"negative_slope {param} not a valid number")
        return math.sqrt(2.0 / (1 + slope**2))
    if nonlinearity not in _GAINS:
        raise ValueError(f"Unsupported nonlinearity {nonlinearity}")
    return _GAINS[nonlinearity]


def _fans(tensor: Tensor) -> tuple[int, int]:
    if tensor.ndim < 2:
        raise ValueError("Fan in and fan out can not be computed for tensor with fewer than 2 dimensions")
    field = math.prod(tensor.shape[2:])
    return tensor.shape[1] * field, tensor.shape[0] * field


def xavier_uniform_(tensor: Tensor, gain: float = 1.0, generator: Any = None) -> Tensor:
    """Uniform numbers whose variance is kept on the way forward and back (Glorot and Bengio, 2010)."""
    bound = math.sqrt(3.0) * (gain * math.sqrt(2.0 / sum(_fans(tensor))))
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator: Any = None) -> Tensor:
    """Normal numbers whose variance is kept on the way forward and back (Glorot and Bengio, 2010)."""
    return normal_(tensor, 0.0, gain * math.sqrt(2.0 / sum(_fans(tensor))), generator)


def _kaiming(tensor: Tensor, a: float, mode: str, nonlinearity: str) -> float:
    if 0 in tensor.shape:
        warn("Initializing zero-element tensors is a no-op", UserWarning)
        return 0.0
    mode = mode.lower()
    if mode not in ("fan_in", "fan_out"):
        raise ValueError(f"Mode {mode} not supported, please use one of ['fan_in', 'fan_out']")
    fan = _fans(tensor)[mode == "fan_out"]
    return calculate_gain(nonlinearity, a) / math.sqrt(fan)


def kaiming_uniform_(
    tensor: Tensor, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu", generator: Any = None
) -> Tensor:
    """Uniform numbers for layers before a rectifier (He et al., 2015). UserWarning for no entries."""
    bound = math.sqrt(3.0) * _kaiming(tensor, a, mode, nonlinearity)
    return uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(
    tensor: Tensor, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu", generator: Any = None
) -> Tensor:
    """Normal numbers for layers before a rectifier (He et al., 2015). UserWarning for no entries."""
    return normal_(tensor, 0.0, _kaiming(tensor, a, mode, nonlinearity), generator)


def orthogonal_(tensor: Tensor, gain: float = 1, generator: Any = None) -> Tensor:
    """Rows, or columns where there are fewer, of a matrix drawn evenly from all that keep lengths, times the gain
    (Mezzadri, 2007). More axes than two count as columns. ValueError for fewer.
    """
    if tensor.ndim < 2:
        raise ValueError("Only tensors with 2 or more dimensions are supported")
    if 0 in tensor.shape:
        return tensor
    shape = (tensor.shape[0], math.prod(tensor.shape[1:]))
    drawn = _stream(generator).normal(shape, dtype=tensor.dtype.name)
    wide = drawn.shape[0] < drawn.shape[1]
    matrix, triangle = np.linalg.qr(drawn.T if wide else drawn)
    matrix *= np.sign(np.diag(triangle))
    return _filled(tensor, np.reshape(matrix.T if wide else matrix, tensor.shape) * tensor.dtype.np.type(gain))


def trunc_normal_(
    tensor: Tensor, mean: float = 0.0, std: float = 1.0, a: float = -2.0, b: float = 2.0, generator: Any = None
) -> Tensor:
    """Normal numbers from a to b: what falls outside is drawn again.

    RuntimeError where less than three in ten normal numbers fall between a and b.
    """
    stream, kind = _stream(generator), tensor.dtype.np
    share = (math.erf((b - mean) / std / math.sqrt(2.0)) - math.erf((a - mean) / std / math.sqrt(2.0))) / 2
    if share <= 0.3:
        raise RuntimeError(f"trunc_normal_ of a tail is not supported: only {share:.0%} fall between {a} and {b}")
    low, high = kind.type(a), kind.type(b)
    drawn = stream.normal(tensor.shape, mean, std, kind.name)
    while (outside := (drawn < low) | (drawn > high)).any():
        drawn = np.where(outside, stream.normal(tensor.shape, mean, std, kind.name), drawn)
    return _filled(tensor, drawn)
