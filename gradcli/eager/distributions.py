"""PyTorch's `torch.distributions`: the distributions that policy gradients and latent variables need."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from gradcli.eager._core.dtypes import get_default_dtype
from gradcli.eager._core.modes import no_grad
from gradcli.eager._core.tensor import Size, Tensor
from gradcli.eager._core.unsupported import room
from gradcli.eager._ops.creation import full, multinomial, normal, ones, zeros
from gradcli.eager._ops.joining import broadcast_tensors
from gradcli.eager._ops.reductions import finfo, softmax

if TYPE_CHECKING:
    from collections.abc import Callable

    Check = Callable[[Any], Any]

__all__ = ["Categorical", "Distribution", "Normal", "kl_divergence"]


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

    @property
    def batch_shape(self) -> Size:
        """The shape of the parameters."""
        return self._batch_shape

    @property
    def event_shape(self) -> Size:
        """The shape of one draw."""
        return self._event_shape

    def rsample(self, sample_shape: Any = ()) -> Any:
        """A draw through which gradients flow."""
        raise NotImplementedError(
            f"{type(self).__name__} has no reparameterised samples, so rsample() is not available"
        )

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
                raise ValueError(
                    f"Value is not broadcastable with batch_shape+event_shape: {tuple(value.shape)} vs "
                    f"{tuple(self._batch_shape)}."
                )
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
    made = [x if isinstance(x, Tensor) else full((), x, dtype=kind) for x in values]
    return broadcast_tensors(*made)


def _is_number(x: Any) -> Any:
    """Where entries are numbers."""
    return x == x


class Normal(Distribution):
    """The normal law with mean `loc` and standard deviation `scale`.

    >>> import gradcli.eager as torch
    >>> Normal(0.0, 1.0).log_prob(torch.tensor(0.0))
    tensor(-0.9189)
    """

    has_rsample = True
    parameters = {"loc": ("Real()", _is_number), "scale": ("GreaterThan(lower_bound=0.0)", lambda x: x > 0)}

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale = _tensors(loc, scale)
        super().__init__(self.loc.shape, validate_args=validate_args)

    @property
    def mean(self) -> Any:
        """The mean, which is the most likely value too."""
        return self.loc

    mode = mean

    @property
    def stddev(self) -> Any:
        """The standard deviation."""
        return self.scale

    @property
    def variance(self) -> Any:
        """The variance."""
        return self.scale.pow(2)

    def sample(self, sample_shape: Any = ()) -> Any:
        """A draw without a gradient."""
        shape = self._extended_shape(sample_shape)
        with no_grad():
            return normal(self.loc.expand(shape), self.scale.expand(shape))

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


class Categorical(Distribution):
    """The law of whole numbers from 0 on, with probabilities in the last axis (`probs`, or `logits` up to a constant).

    >>> import gradcli.eager as torch
    >>> Categorical(torch.tensor([1.0, 3.0])).log_prob(torch.tensor(1)).exp()
    tensor(0.7500)
    """

    parameters = {
        "probs": ("Simplex()", lambda x: (x >= 0).all(-1) & ((x.sum(-1) - 1).abs() < 1e-6)),
        "logits": ("IndependentConstraint(Real(), 1)", _is_number),
    }

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        if (probs is None) == (logits is None):
            raise ValueError("Either `probs` or `logits` must be specified, but not both.")
        given, name = (logits, "logits") if probs is None else (probs, "probs")
        if given.dim() < 1:
            raise ValueError(f"`{name}` parameter must be at least one-dimensional.")
        if probs is not None:
            self.probs = self._param = probs / probs.sum(-1, keepdim=True)
        else:
            self.logits = self._param = logits - logits.logsumexp(-1, keepdim=True)
        self._num_events = self._param.shape[-1]
        super().__init__(self._param.shape[:-1], validate_args=validate_args)

    def __getattr__(self, name: str) -> Any:
        """`probs` or `logits`, whichever was not given; it is computed once, when it is read."""
        if name not in ("probs", "logits") or not {"probs", "logits"} & vars(self).keys():
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")
        if name == "probs":
            value: Any = softmax(self.logits, -1)
        else:
            small = finfo(self.probs.dtype).eps  # away from 0 and 1, so that the logarithms are finite
            value = self.probs.clamp(min=small, max=1 - small).log()
        setattr(self, name, value)
        return value

    @property
    def mode(self) -> Any:
        """The most likely class."""
        return self.probs.argmax(-1)

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


def _of_normal(p: Any, q: Any) -> Any:
    ratio = (p.scale / q.scale).pow(2)
    away = ((p.loc - q.loc) / q.scale).pow(2)
    return 0.5 * (ratio + away - 1 - ratio.log())


def _of_categorical(p: Any, q: Any) -> Any:
    each = p.probs * (p.logits - q.logits)
    each[(q.probs == 0).expand_as(each)] = float("inf")
    each[(p.probs == 0).expand_as(each)] = 0
    return each.sum(-1)


_RULES = {(Normal, Normal): _of_normal, (Categorical, Categorical): _of_categorical}


def kl_divergence(p: Distribution, q: Distribution) -> Any:
    """The divergence of p from q. NotImplementedError for pairs other than normal and categorical laws.

    >>> import gradcli.eager as torch
    >>> kl_divergence(Normal(0.0, 1.0), Normal(1.0, 1.0))
    tensor(0.5000)
    """
    rule = _RULES.get((type(p), type(q)))
    if rule is None:
        raise NotImplementedError(f"no KL(p || q) is known for p {type(p).__name__} and q {type(q).__name__}")
    return rule(p, q)


__getattr__, __dir__ = room("distributions", __all__)
