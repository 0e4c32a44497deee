"""Activations, softmax along an axis, and dropout: the functions, then their layers.

Every activation is one node with PyTorch's name, over declared operations, unless PyTorch builds it from several. To
add one, write its function, and declare its layer at the end.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from gradcli.eager import random as streams
from gradcli.eager._core.modes import warn
from gradcli.eager._core.tensor import Tensor
from gradcli.eager._engine.arguments import checked
from gradcli.eager._engine.record import cast, declared, record
from gradcli.eager._ops import elementwise, tensor_reductions
from gradcli.eager._ops import inplace as in_place
from gradcli.eager._ops.table import described
from gradcli.eager._ops.tensor_creation import empty_like, full, zeros_like
from gradcli.eager.nn._layer import Layer, layer, layers, need_tensor, one_node, records, weighted
from gradcli.eager.nn.parameter import Parameter
from gradcli.primitives.indexing import index

_relu: Callable[[Tensor], Tensor] = elementwise.ROWS["relu"]


def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """The entries that are positive, zeros for the others.

    >>> relu(torch.tensor([-1.0, 2.0]))
    tensor([0., 2.])
    """
    if inplace or not isinstance(input, Tensor):
        need_tensor(input, "relu")
        return in_place.change(input, _relu)
    return _relu(input)


def tanh(input: Tensor) -> Tensor:
    """The hyperbolic tangent of each entry."""
    return elementwise.ROWS["tanh"](input)


def sigmoid(input: Tensor) -> Tensor:
    """The logistic function of each entry."""
    return elementwise.ROWS["sigmoid"](input)


def _declared(name: str, node: str, summary: str, floating: bool = True) -> Any:
    """An activation that is a declared operation."""

    def formula(input: Tensor, inplace: bool = False) -> Any:
        return declared(name, input)

    return one_node(node, floating)(described(formula, name, summary))


selu = _declared("selu", "EluBackward0", "The scaled elu, which keeps mean 0 and variance 1.")
silu = _declared("silu", "SiluBackward0", "x times sigmoid(x).")
mish = _declared("mish", "MishBackward0", "x times tanh(softplus(x)).")
hardsigmoid = _declared("hardsigmoid", "HardsigmoidBackward0", "A sigmoid of three straight lines.", False)


@one_node("LeakyReluBackward0")
def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Any:
    """Positive entries as they are, others times the slope."""
    return declared("leaky_relu", input, negative_slope)


@one_node("EluBackward0 EluBackward1")
def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Any:
    """Positive entries as they are, others alpha*(exp(x) - 1)."""
    return declared("elu", input, alpha)


@one_node("CeluBackward0")
def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Any:
    """Positive entries as they are, others alpha*(exp(x/alpha) - 1). RuntimeError for alpha = 0."""
    if alpha == 0:
        raise RuntimeError("celu divides by alpha, which cannot be 0")
    return declared("elu", input / alpha, 1) * alpha


@one_node("GeluBackward0")
def gelu(input: Tensor, approximate: str = "none") -> Any:
    """x times the normal distribution function, exact or with a tanh (`approximate="tanh"`)."""
    if approximate not in ("none", "tanh"):
        raise RuntimeError(f"gelu: approximate must be 'none' or 'tanh', not {approximate!r}")
    return declared("gelu", input, approximate=approximate)


@one_node("LogSigmoidBackward0")
def logsigmoid(input: Tensor) -> Any:
    """The logarithm of the logistic function."""
    return declared("logsigmoid", input)


@one_node("SoftplusBackward0")
def softplus(input: Tensor, beta: float = 1.0, threshold: float = 20.0) -> Any:
    """log(1 + exp(beta*x))/beta, and x itself where beta*x is above the threshold."""
    scaled = input * beta
    return _where(scaled > threshold, input, declared("softplus", scaled) / beta)


@checked
def softsign(input: Tensor) -> Tensor:
    """x/(1 + |x|), from three nodes."""
    return input / (input.abs() + 1)


@checked
def tanhshrink(input: Tensor) -> Tensor:
    """x - tanh(x), from two nodes."""
    return input - tanh(input)


# --- straight lines: the slope at a corner is PyTorch's ------------------------------------------------------


def _where(condition: Any, x: Any, y: Any) -> Any:
    return declared("where", condition, x, y)


@one_node("HardtanhBackward0", floating=False)
def _held(input: Tensor, min_val: float, max_val: float, inplace: bool = False) -> Any:
    return _where(input <= min_val, min_val, _where(input >= max_val, max_val, input))


@checked
def hardtanh(input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Tensor:
    """Entries held between two bounds; the slope at a bound is 0. ValueError for bounds in the wrong order."""
    if min_val > max_val:
        raise ValueError("min_val cannot be greater than max_val")
    return _held(input, min_val, max_val, inplace)


@checked
def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    """Entries held between 0 and 6."""
    return _held(input, 0.0, 6.0, inplace)


@one_node("HardswishBackward0")
def hardswish(input: Tensor, inplace: bool = False) -> Any:
    """x times hardsigmoid(x)."""
    return _where(input <= -3, 0, _where(input >= 3, input, input * (input + 3) / 6))


@one_node("SoftshrinkBackward0", floating=False)
def softshrink(input: Tensor, lambd: float = 0.5) -> Any:
    """Entries moved towards 0 by `lambd`. RuntimeError for a negative one."""
    if lambd < 0:
        raise RuntimeError(f"softshrink: lambda must be greater or equal to 0, but it is {lambd}")
    return _where(input > lambd, input - lambd, _where(input < -lambd, input + lambd, 0))


@one_node("HardshrinkBackward0")
def hardshrink(input: Tensor, lambd: float = 0.5) -> Any:
    """Zeros for the entries not larger than `lambd` in size."""
    return _where(declared("abs", input) <= lambd, 0, input)


@one_node("ThresholdBackward0", floating=False)
def threshold(input: Tensor, threshold: float, value: float, inplace: bool = False) -> Any:
    """Entries above a limit, one value for the others."""
    return _where(input <= threshold, value, input)


_prelu = partial(declared, "leaky_relu")


@records("PreluKernelBackward0")
def prelu(input: Tensor, weight: Tensor) -> Tensor:
    """Positive entries as they are, others times a learned slope, one for all or one for each channel."""
    if weight.numel() != 1 and (input.ndim < 2 or weight.numel() != input.shape[1]):
        raise RuntimeError(f"prelu: {weight.numel()} slopes do not fit an input of shape {list(input.shape)}")
    shape = (1, -1, *(1,) * (input.ndim - 2)) if input.ndim >= 2 else (1,) * input.ndim
    return record(_prelu, (input, weight.reshape(shape)), {}, prelu.node, pointwise=True)


@one_node("GluBackward0", pointwise=False)
def glu(input: Tensor, dim: int = -1) -> Any:
    """The first half of an axis times the sigmoid of the second. RuntimeError for an odd size."""
    axis = dim - len(input.shape) if dim >= 0 else dim
    if input.shape[axis] % 2:
        raise RuntimeError(f"glu: the size of dimension {dim} must be even, but it is {input.shape[axis]}")
    half, rest = input.shape[axis] // 2, (slice(None),) * (-axis - 1)
    left, right = (index(input, (..., part, *rest)) for part in (slice(0, half), slice(half, 2 * half)))
    return left * declared("sigmoid", right)


def _along_axis(name: str, summary: str, along: Any) -> Any:
    def function(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Any:
        x = input if dtype is None else cast(input, dtype)
        if x._raw.dtype.kind in "iub":
            raise NotImplementedError(f"{name} is not implemented for {x.dtype}: it needs a floating-point dtype")
        if dim is None:
            warn(f"{name} without dim= chooses a dimension by the rank, which is deprecated: pass dim=X", UserWarning)
            dim = 0 if x.ndim in (0, 1, 3) else 1
        if type(dim) is not int:
            raise TypeError(f"{name}(): argument 'dim' must be int, not {type(dim).__name__}")
        return along(x, dim)

    return described(function, name, f"{summary} along an axis; UserWarning where the axis is not named.")


softmax = _along_axis("softmax", "Exponentials divided by their sum", tensor_reductions.softmax)
log_softmax = _along_axis("log_softmax", "The logarithm of softmax", tensor_reductions.log_softmax)
softmin = _along_axis("softmin", "softmax(-x)", lambda x, dim: tensor_reductions.softmax(-x, dim))


@checked
def gumbel_softmax(logits: Tensor, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1) -> Tensor:
    """Random shares near one class, drawn with probabilities softmax(logits) (Jang, Gu and Poole, 2017).

    `hard`: the nearest row of zeros and a one, with the gradient of the shares.
    """
    noise = -empty_like(logits).exponential_().log()
    shares = tensor_reductions.softmax((logits + noise) / tau, dim)
    if not hard:
        return shares
    nearest = shares.max(dim, keepdim=True)[1]
    return zeros_like(logits).scatter_(dim, nearest, value=1.0) - shares.detach() + shares


def _check_probability(p: float) -> None:
    if not 0.0 <= p <= 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")


def _dropped(x: Tensor, shape: tuple[int, ...], p: float, inplace: bool) -> Tensor:
    """Some entries set to zero, the others divided by 1 - p; where the shape has size 1, along a whole axis."""
    kind, raw = x.dtype.np, x._raw
    if p == 1:
        noise = np.zeros(shape, kind)
    else:
        kept = streams.own.default_generator.bernoulli(shape, 1 - p)
        if shape == raw.shape and isinstance(raw, np.ndarray) and not raw.flags.c_contiguous:
            kept = streams.laid_out(kept, raw)
        noise = kept.astype(kind, "C") / kind.type(1 - p)
    factor = Tensor(noise)
    return in_place.change(x, lambda old: old * factor, (factor,)) if inplace else x * factor


@checked
def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Zeros with probability p, the other entries divided by 1 - p; the tensor itself without training.

    The same entries as PyTorch's after the same `manual_seed`. ValueError for p outside [0, 1].

    >>> _ = torch.manual_seed(0)
    >>> dropout(torch.ones(4))
    tensor([0., 0., 2., 0.])
    """
    _check_probability(p)
    return _dropped(input, input._raw.shape, p, inplace) if training and p and input.numel() else input


@checked
def dropout2d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Whole channels of (N, C, ...) set to zero with probability p, the others divided by 1 - p."""
    _check_probability(p)
    shape = (*input.shape[:2], *(1,) * (input.ndim - 2))
    return _dropped(input, shape, p, inplace) if training and p and input.numel() else input


class _Dropout(Layer):
    _shown = "p={self.p}, inplace={self.inplace}"

    def _build(self, **options: Any) -> None:
        _check_probability(options["p"])
        super()._build(**options)


class _ReLU6(Layer):
    def _build(self, **options: Any) -> None:
        super()._build(**options, min_val=0.0, max_val=6.0)


ReLU6 = layer("ReLU6", relu6, base=_ReLU6)
Hardsigmoid = layer("Hardsigmoid", hardsigmoid, shown="")
Dropout, Dropout2d = layers({"Dropout": dropout, "Dropout2d": dropout2d}, base=_Dropout).values()
globals().update(
    layers({"ReLU": relu, "LeakyReLU": leaky_relu, "ELU": elu, "SELU": selu, "CELU": celu, "GLU": glu, "GELU": gelu}),
    **layers({"Tanh": tanh, "Sigmoid": sigmoid, "LogSigmoid": logsigmoid, "SiLU": silu, "Mish": mish}),
    **layers({"Softplus": softplus, "Softsign": softsign, "Tanhshrink": tanhshrink, "Hardtanh": hardtanh}),
    **layers({"Hardswish": hardswish, "Threshold": threshold}),
    **layers({"Softshrink": softshrink, "Hardshrink": hardshrink}, shown="{self.lambd}"),
    **layers({"Softmax": softmax, "LogSoftmax": log_softmax, "Softmin": softmin}, leave_out=("_stacklevel", "dtype")),
)


class PReLU(Layer, function=prelu):
    """Positive entries as they are, others times a learned slope, one for all or one for each channel."""

    _options = weighted("num_parameters=1, init=0.25")
    _shown = "num_parameters={self.num_parameters}"

    def _build(self, num_parameters: int, init: float, dtype: Any) -> None:
        super()._build(num_parameters=num_parameters, init=init)
        self.weight = Parameter(full((num_parameters,), init, dtype=dtype))
