"""PyTorch's `torch.distributions`: the distributions that policy gradients and latent variables need."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from gradcli.eager._core.dtypes import get_default_dtype
from gradcli.eager._core.modes import enable_grad, no_grad
from gradcli.eager._core.tensor import Size, Tensor
from gradcli.eager._core.unsupported import room
from gradcli.eager._ops.creation import bernoulli, full, multinomial, normal, ones, zeros
from gradcli.eager._ops.joining import broadcast_tensors
from gradcli.eager._ops.reductions import finfo, softmax
from gradcli.eager.nn.modules.activation import softplus
from gradcli.eager.nn.modules.loss import binary_cross_entropy_with_logits

Check = Callable[[Any], Any]
__all__ = ["Bernoulli", "Categorical", "Distribution", "Normal", "kl_divergence"]


class Distribution:
    """Base of distributions: `batch_shape` is that of the parameters, `event_shape` that of one draw.

    `parameters` holds for each parameter what must be true of it, and how PyTorch names that. ValueError where it is
    not, unless `validate_args=False`.
    """

    has_rsample = False
    parameters: dict[str, tuple[str, Check]] = {}
    _validate_args = True

    def __init__(self, batch_shape: Any = (), event_shape: Any = (), validate_args: bool | None = None) -> None:
        self._batch_shape, self._event_shape = Size(batch_shape), Size(event_shape)
        if validate_args is not None:
            self._validate_args = validate_args
        if not self._validate_args:
            return
        for name, (said, holds) in self.parameters.items():
            value = vars(self).get(name)
            if value is not None and not holds(value).all():
                raise ValueError(
                    f"Expected parameter {name} (Tensor of shape {tuple(value.shape)}) of distribution {self!r} to "
                    f"satisfy the constraint {said}, but found invalid values:\n{value}"
                )

    batch_shape = property(lambda self: self._batch_shape, doc="The shape of the parameters.")
    event_shape = property(lambda self: self._event_shape, doc="The shape of one draw.")
    stddev = property(lambda self: self.variance.sqrt(), doc="The standard deviation.")

    def rsample(self, sample_shape: Any = ()) -> Any:
        """A draw through which gradients flow."""
        raise NotImplementedError(f"{type(self).__name__} has no reparameterised samples: rsample() is not available")

    def sample(self, sample_shape: Any = ()) -> Any:
        """A draw without a gradient."""
        with no_grad():
            return self.rsample(sample_shape)

    def _extended_shape(self, sample_shape: Any = ()) -> tuple[int, ...]:
        return (*tuple(sample_shape), *self._batch_shape, *self._event_shape)

    def _check(self, value: Any, holds: Check) -> None:
        """ValueError for a value of another shape, or outside the support."""
        if not self._validate_args:
            return
        if not isinstance(value, Tensor):
            raise ValueError("The value argument to log_prob must be a Tensor")
        for n, m in zip(reversed(value.shape), reversed(self._batch_shape), strict=False):
            if n != m and 1 not in (n, m):
                raise ValueError(f"Value of {tuple(value.shape)} is not broadcastable with {tuple(self._batch_shape)}")
        if not holds(value).all():
            raise ValueError(f"Expected value argument to be within the support of {self!r}, but found {value}")

    def __repr__(self) -> str:
        shown = [(name, vars(self)[name]) for name in self.parameters if name in vars(self)]
        text = ", ".join(f"{name}: {x if x.numel() == 1 else x.size()}" for name, x in shown)
        return f"{type(self).__name__}({text})"


def _tensors(*values: Any) -> tuple[Tensor, ...]:
    """Numbers and tensors as tensors of one shape. ValueError for anything else."""
    for x in values:
        if not isinstance(x, (Tensor, int, float)):
            raise ValueError("Input arguments must all be instances of Number or torch.Tensor")
    kinds = [x.dtype for x in values if isinstance(x, Tensor)]
    kind = kinds[0] if kinds else get_default_dtype()
    tensors = [x if isinstance(x, Tensor) else full((), x, dtype=kind) for x in values]
    return broadcast_tensors(*tensors)


def _is_number(x: Any) -> Any:
    """Where entries are numbers."""
    return x == x


class Normal(Distribution):
    """The normal distribution with mean `loc` and standard deviation `scale`.

    >>> Normal(0.0, 1.0).log_prob(torch.tensor(0.0))
    tensor(-0.9189)
    """

    has_rsample = True
    parameters = {"loc": ("Real()", _is_number), "scale": ("GreaterThan(lower_bound=0.0)", lambda x: x > 0)}

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale = _tensors(loc, scale)
        super().__init__(self.loc.shape, validate_args=validate_args)

    mean = mode = property(lambda self: self.loc, doc="The mean, which is the most likely value too.")
    stddev = property(lambda self: self.scale, doc="The standard deviation.")
    variance = property(lambda self: self.scale.pow(2), doc="The variance.")

    def rsample(self, sample_shape: Any = ()) -> Any:
        """A draw through which gradients flow to the mean and the deviation."""
        shape = self._extended_shape(sample_shape)
        drawn = normal(zeros(shape, dtype=self.loc.dtype), ones(shape, dtype=self.loc.dtype))
        return self.loc + drawn * self.scale

    def log_prob(self, value: Tensor) -> Any:
        """The logarithm of the density. ValueError for what is not a number."""
        self._check(value, _is_number)
        away = -((value - self.loc) ** 2) / (2 * self.scale**2)
        return away - self.scale.log() - math.log(math.sqrt(2 * math.pi))

    def entropy(self) -> Any:
        """The entropy."""
        return 0.5 + 0.5 * math.log(2 * math.pi) + self.scale.log()

    def _divergence(self, other: Any) -> Any:
        ratio, away = (self.scale / other.scale).pow(2), ((self.loc - other.loc) / other.scale).pow(2)
        return 0.5 * (ratio + away - 1 - ratio.log())


class _ProbsOrLogits(Distribution):
    """A distribution of `probs` or `logits`; the other one is computed once, when it is read, with its gradient."""

    _axes = 0  # of the parameter, which belong to one draw
    _to_probs: Check
    _to_logits: Check

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        if (probs is None) == (logits is None):
            raise ValueError("Either `probs` or `logits` must be specified, but not both.")
        name, value = ("logits", logits) if probs is None else ("probs", probs)
        self._param = self._normalized(name, value)
        setattr(self, name, self._param)
        super().__init__(self._param.shape[: self._param.ndim - self._axes], validate_args=validate_args)

    def _normalized(self, name: str, value: Any) -> Tensor:
        """The parameter `name` as a tensor."""
        return _tensors(value)[0]

    def __getattr__(self, name: str) -> Any:
        """`probs` or `logits`, whichever was not given."""
        if name not in ("probs", "logits") or not {"probs", "logits"} & vars(self).keys():
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")
        with enable_grad():
            if name == "probs":
                value: Any = type(self)._to_probs(self.logits)
            else:
                small = finfo(self.probs.dtype).eps  # away from 0 and 1, so that the logarithms are finite
                value = type(self)._to_logits(self.probs.clamp(min=small, max=1 - small))
        setattr(self, name, value)
        return value


class Bernoulli(_ProbsOrLogits):
    """The distribution of 0 and 1: `probs` is the probability of 1, `logits` is log(probs / (1 - probs)).

    >>> Bernoulli(0.25).log_prob(torch.tensor(1.0)).exp()
    tensor(0.2500)
    """

    parameters = {
        "probs": ("Interval(lower_bound=0.0, upper_bound=1.0)", lambda x: (x >= 0) & (x <= 1)),
        "logits": ("Real()", _is_number),
    }
    _to_probs = staticmethod(lambda logits: logits.sigmoid())
    _to_logits = staticmethod(lambda probs: probs.log() - (-probs).log1p())

    mean = property(lambda self: self.probs, doc="The mean, which is the probability of 1.")
    variance = property(lambda self: self.probs * (1 - self.probs), doc="The variance.")

    @property
    def mode(self) -> Any:
        """The more likely value; NaN where both are equally likely."""
        return (self.probs >= 0.5).to(self.probs.dtype).masked_fill(self.probs == 0.5, math.nan)

    def sample(self, sample_shape: Any = ()) -> Any:
        """Zeros and ones that are drawn."""
        with no_grad():
            return bernoulli(self.probs.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Tensor) -> Any:
        """The logarithm of the probability of zeros and ones. ValueError for other values."""
        self._check(value, lambda x: (x == 0) | (x == 1))
        return -binary_cross_entropy_with_logits(*broadcast_tensors(self.logits, value), reduction="none")

    def entropy(self) -> Any:
        """The entropy."""
        return binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none")

    def _divergence(self, other: Any) -> Any:
        at_one: Any = self.probs * (softplus(-other.logits) - softplus(-self.logits))
        at_zero: Any = (1 - self.probs) * (softplus(other.logits) - softplus(self.logits))
        for each, certain in ((at_one, 0), (at_zero, 1)):
            each[other.probs == certain] = math.inf
            each[self.probs == certain] = 0
        return at_one + at_zero


class Categorical(_ProbsOrLogits):
    """The distribution of the classes 0, 1, ...: the last axis has probabilities, or `logits` up to a constant.

    >>> Categorical(torch.tensor([1.0, 3.0])).log_prob(torch.tensor(1)).exp()
    tensor(0.7500)
    """

    parameters = {
        "probs": ("Simplex()", lambda x: (x >= 0).all(-1) & ((x.sum(-1) - 1).abs() < 1e-6)),
        "logits": ("IndependentConstraint(Real(), 1)", _is_number),
    }
    _axes = 1
    _to_probs = staticmethod(lambda logits: softmax(logits, -1))
    _to_logits = staticmethod(lambda probs: probs.log())

    def _normalized(self, name: str, value: Any) -> Tensor:
        if value.dim() < 1:
            raise ValueError(f"`{name}` parameter must be at least one-dimensional.")
        self._num_events = value.shape[-1]
        total: Any = value.sum(-1, keepdim=True) if name == "probs" else value.logsumexp(-1, keepdim=True)
        normalized: Tensor = value / total if name == "probs" else value - total
        return normalized

    mode = property(lambda self: self.probs.argmax(-1), doc="The most likely class.")

    def sample(self, sample_shape: Any = ()) -> Any:
        """Classes that are drawn."""
        count = math.prod(sample_shape)
        drawn = multinomial(self.probs.detach().reshape(-1, self._num_events), count, True).T
        return drawn.reshape(self._extended_shape(sample_shape))

    def log_prob(self, value: Tensor) -> Any:
        """The logarithm of the probability of classes. ValueError for classes that do not exist."""
        self._check(value, lambda x: (x % 1 == 0) & (x >= 0) & (x <= self._num_events - 1))
        at: Any
        scores: Any
        at, scores = broadcast_tensors(value.long().unsqueeze(-1), self.logits)
        return scores.gather(-1, at[..., :1]).squeeze(-1)

    def entropy(self) -> Any:
        """The entropy."""
        bounded = self.logits.clamp(min=finfo(self.logits.dtype).min)
        return -(bounded * self.probs).sum(-1)

    def _divergence(self, other: Any) -> Any:
        each = self.probs * (self.logits - other.logits)
        each[(other.probs == 0).expand_as(each)] = math.inf
        each[(self.probs == 0).expand_as(each)] = 0
        return each.sum(-1)


def kl_divergence(p: Distribution, q: Distribution) -> Any:
    """The divergence of p from q. NotImplementedError unless both are of one class of those above.

    >>> kl_divergence(Normal(0.0, 1.0), Normal(1.0, 1.0))
    tensor(0.5000)
    """
    if type(p) is not type(q) or not hasattr(p, "_divergence"):
        raise NotImplementedError(f"no KL(p || q) is known for p {type(p).__name__} and q {type(q).__name__}")
    return p._divergence(q)


__getattr__, __dir__ = room("distributions", __all__)
