"""A tensor goes in, what a layer without parameters does to its entries comes out; draws no random number.

Every function is one node with PyTorch's name, over declared operations, unless PyTorch builds it from several.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gradcli.eager import dtypes, inplace, pointwise, reductions
from gradcli.eager.dispatch import cast
from gradcli.eager.nn.functional.fusing import by_entry, declared, fused, need_tensor
from gradcli.eager.state import warn
from gradcli.eager.tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Callable

_relu: Callable[[Tensor], Tensor] = pointwise.TABLE["relu"]


def _either(x: Tensor, inplace_too: bool, function: Callable[[Tensor], Tensor], name: str) -> Tensor:
    need_tensor(x, name)
    return inplace.change(x, function) if inplace_too else function(x)


def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """The entries that are positive, zeros for the others.

    >>> import gradcli.eager as torch
    >>> relu(torch.tensor([-1.0, 2.0]))
    tensor([0., 2.])
    """
    if inplace or not isinstance(input, Tensor):
        return _either(input, inplace, _relu, "relu")
    return _relu(input)


def tanh(input: Tensor) -> Tensor:
    """The hyperbolic tangent of each entry."""
    result: Tensor = pointwise.TABLE["tanh"](input)
    return result


def sigmoid(input: Tensor) -> Tensor:
    """The logistic function of each entry."""
    result: Tensor = pointwise.TABLE["sigmoid"](input)
    return result


def _leaky_relu(x: Any, *, slope: float) -> Any:
    return declared("leaky_relu", x, slope)


def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """Positive entries as they are, others times the slope."""
    return _either(
        input,
        inplace,
        lambda x: by_entry(_leaky_relu, (x,), "LeakyReluBackward0", slope=negative_slope),
        "leaky_relu",
    )


def _elu(x: Any, *, alpha: float) -> Any:
    return declared("elu", x, alpha)


def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """Positive entries as they are, others alpha*(exp(x) - 1)."""
    name = "EluBackward1" if inplace else "EluBackward0"
    return _either(input, inplace, lambda x: by_entry(_elu, (x,), name, alpha=alpha), "elu")


def _named(x: Any, *, name: str, **params: Any) -> Any:
    return declared(name, x, **params)


def selu(input: Tensor, inplace: bool = False) -> Tensor:
    """The scaled elu, which keeps mean 0 and variance 1."""
    return _either(input, inplace, lambda x: by_entry(_named, (x,), "EluBackward0", name="selu"), "selu")


def _celu(x: Any, *, alpha: float) -> Any:
    return declared("elu", x / alpha, 1) * alpha


def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """Positive entries as they are, others alpha*(exp(x/alpha) - 1). RuntimeError for alpha = 0."""
    if alpha == 0:
        raise RuntimeError("celu divides by alpha, which cannot be 0")
    return _either(input, inplace, lambda x: by_entry(_celu, (x,), "CeluBackward0", alpha=alpha), "celu")


def gelu(input: Tensor, *, approximate: str = "none") -> Tensor:
    """x times the normal distribution function, exact or with a tanh (`approximate="tanh"`)."""
    if approximate not in ("none", "tanh"):
        raise RuntimeError(f"gelu: approximate is 'none' or 'tanh', not {approximate!r}")
    return by_entry(_named, (need_tensor(input, "gelu"),), "GeluBackward0", name="gelu", approximate=approximate)


def silu(input: Tensor, inplace: bool = False) -> Tensor:
    """x times sigmoid(x)."""
    return _either(input, inplace, lambda x: by_entry(_named, (x,), "SiluBackward0", name="silu"), "silu")


def mish(input: Tensor, inplace: bool = False) -> Tensor:
    """x times tanh(softplus(x))."""
    return _either(input, inplace, lambda x: by_entry(_named, (x,), "MishBackward0", name="mish"), "mish")


def _softplus(x: Any, *, beta: float, threshold: float) -> Any:
    scaled = x * beta
    return declared("where", scaled > threshold, x, declared("softplus", scaled) / beta)


def softplus(input: Tensor, beta: float = 1.0, threshold: float = 20.0) -> Tensor:
    """log(1 + exp(beta*x))/beta, and x itself where beta*x is above the threshold."""
    x = need_tensor(input, "softplus")
    return by_entry(_softplus, (x,), "SoftplusBackward0", beta=beta, threshold=threshold)


def logsigmoid(input: Tensor) -> Tensor:
    """The logarithm of the logistic function."""
    return by_entry(_named, (need_tensor(input, "logsigmoid"),), "LogSigmoidBackward0", name="logsigmoid")


def softsign(input: Tensor) -> Tensor:
    """x/(1 + |x|), from three nodes."""
    result: Tensor = input / (need_tensor(input, "softsign").abs() + 1)
    return result


def tanhshrink(input: Tensor) -> Tensor:
    """x - tanh(x), from two nodes."""
    return input - tanh(need_tensor(input, "tanhshrink"))


def _where(condition: Any, x: Any, y: Any) -> Any:
    return declared("where", condition, x, y)


# --- straight lines: the slope at a corner is PyTorch's ------------------------------------------------------


def _hardtanh(x: Any, *, low: float, high: float) -> Any:
    return _where(x <= low, low, _where(x >= high, high, x))


def hardtanh(input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Tensor:
    """Entries held between two bounds; the slope at a bound is 0."""
    if min_val > max_val:
        raise ValueError("min_val cannot be greater than max_val")
    return _either(
        input,
        inplace,
        lambda x: by_entry(_hardtanh, (x,), "HardtanhBackward0", low=min_val, high=max_val),
        "hardtanh",
    )


def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    """Entries held between 0 and 6."""
    return hardtanh(input, 0.0, 6.0, inplace)


def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    """A sigmoid of three straight lines."""
    return _either(
        input, inplace, lambda x: by_entry(_named, (x,), "HardsigmoidBackward0", name="hardsigmoid"), "hardsigmoid"
    )


def _hardswish(x: Any) -> Any:
    return _where(x <= -3, 0, _where(x >= 3, x, x * (x + 3) / 6))


def hardswish(input: Tensor, inplace: bool = False) -> Tensor:
    """x times hardsigmoid(x)."""
    return _either(input, inplace, lambda x: by_entry(_hardswish, (x,), "HardswishBackward0"), "hardswish")


def _softshrink(x: Any, *, size: float) -> Any:
    return _where(x > size, x - size, _where(x < -size, x + size, 0))


def softshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """Entries moved towards 0 by `lambd`. RuntimeError for a negative one."""
    if lambd < 0:
        raise RuntimeError(f"softshrink: lambda must be greater or equal to 0, but it is {lambd}")
    return by_entry(_softshrink, (need_tensor(input, "softshrink"),), "SoftshrinkBackward0", size=lambd)


def _hardshrink(x: Any, *, size: float) -> Any:
    return declared("where", declared("abs", x) <= size, 0, x)


def hardshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """Zeros for the entries not larger than `lambd` in size."""
    return by_entry(_hardshrink, (need_tensor(input, "hardshrink"),), "HardshrinkBackward0", size=lambd)


def _threshold(x: Any, *, limit: float, value: float) -> Any:
    return declared("where", x <= limit, value, x)


def threshold(input: Tensor, threshold: float, value: float, inplace: bool = False) -> Tensor:
    """Entries above a limit, one value for the others."""
    return _either(
        input,
        inplace,
        lambda x: by_entry(_threshold, (x,), "ThresholdBackward0", limit=threshold, value=value),
        "threshold",
    )


def _prelu(x: Any, weight: Any) -> Any:
    return declared("leaky_relu", x, weight)


def prelu(input: Tensor, weight: Tensor) -> Tensor:
    """Positive entries as they are, others times a learned slope, one for all or one for each channel."""
    if weight.numel() != 1 and (input.ndim < 2 or weight.numel() != input.shape[1]):
        raise RuntimeError(f"prelu: {weight.numel()} slopes do not fit an input of shape {list(input.shape)}")
    shape = (1, -1, *(1,) * (input.ndim - 2)) if input.ndim >= 2 else (1,) * input.ndim
    return by_entry(_prelu, (input, weight.reshape(shape)), "PreluKernelBackward0")


def _glu(x: Any, *, axis: int) -> Any:
    from gradcli.primitives.indexing import index

    half = x.shape[axis] // 2
    rest = (slice(None),) * (-axis - 1)
    left, right = (index(x, (..., part, *rest)) for part in (slice(0, half), slice(half, 2 * half)))
    return left * declared("sigmoid", right)


def glu(input: Tensor, dim: int = -1) -> Tensor:
    """The first half of an axis times the sigmoid of the second. RuntimeError for an odd size."""
    axis = dim - input.ndim if dim >= 0 else dim
    if input.shape[axis] % 2:
        raise RuntimeError(f"glu: the size of dimension {dim} must be even, but it is {input.shape[axis]}")
    return fused(_glu, (input,), "GluBackward0", axis=axis)


# --- soft maxima ---------------------------------------------------------------------------------------------


def _dim(input: Tensor, dim: int | None, name: str) -> int:
    if input._raw.dtype.kind in "iub":
        raise NotImplementedError(f"{name} is not implemented for {input.dtype}: it needs numbers with a point")
    if dim is not None:
        if type(dim) is not int:
            raise TypeError(f"{name}(): argument 'dim' must be int, not {type(dim).__name__}")
        return dim
    warn(f"{name} without dim= chooses a dimension by the rank, which is deprecated: pass dim=X", UserWarning)
    return 0 if input.ndim in (0, 1, 3) else 1


def _converted(input: Tensor, dtype: dtypes.dtype | None) -> Tensor:
    return input if dtype is None else cast(input, dtype)


def softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:
    """Exponentials divided by their sum along an axis; UserWarning where the axis is not named."""
    return reductions.softmax(_converted(input, dtype), _dim(input, dim, "softmax"))


def log_softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:
    """The logarithm of softmax along an axis; UserWarning where the axis is not named."""
    return reductions.log_softmax(_converted(input, dtype), _dim(input, dim, "log_softmax"))


def softmin(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:
    """softmax(-x)."""
    return reductions.softmax(-_converted(input, dtype), _dim(input, dim, "softmin"))
