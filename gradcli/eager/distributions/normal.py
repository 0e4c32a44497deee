"""The normal distribution, by mean and standard deviation."""

from __future__ import annotations

import math
from typing import Any

from gradcli.eager._core.modes import no_grad
from gradcli.eager._core.tensor import Tensor
from gradcli.eager._ops.creation import normal, ones, zeros
from gradcli.eager._ops.elementwise import ROWS as ELEMENTWISE
from gradcli.eager.distributions.distribution import Distribution, is_number, tensors


class Normal(Distribution):
    """The normal law with mean `loc` and standard deviation `scale`.

    >>> import gradcli.eager as torch
    >>> Normal(0.0, 1.0).log_prob(torch.tensor(0.0))
    tensor(-0.9189)
    """

    has_rsample = True
    parameters = {"loc": ("Real()", is_number), "scale": ("GreaterThan(lower_bound=0.0)", lambda x: x > 0)}

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale = tensors(loc, scale)
        super().__init__(self.loc.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        """The mean, which is the most likely value too."""
        return self.loc

    mode = mean

    @property
    def stddev(self) -> Tensor:
        """The standard deviation."""
        return self.scale

    @property
    def variance(self) -> Tensor:
        """The variance."""
        found: Tensor = self.scale.pow(2)
        return found

    def sample(self, sample_shape: Any = ()) -> Tensor:
        """A draw without a gradient."""
        shape = self._extended_shape(sample_shape)
        with no_grad():
            return normal(self.loc.expand(shape), self.scale.expand(shape))

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """A draw through which gradients flow to the mean and the deviation."""
        shape = self._extended_shape(sample_shape)
        drawn = normal(zeros(shape, dtype=self.loc.dtype), ones(shape, dtype=self.loc.dtype))
        found: Tensor = self.loc + drawn * self.scale
        return found

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density. ValueError for what is no number."""
        self._check(value, is_number)
        away = -((value - self.loc) ** 2) / (2 * self.scale**2)
        found: Tensor = away - self.scale.log() - math.log(math.sqrt(2 * math.pi))
        return found

    def cdf(self, value: Tensor) -> Tensor:
        """The share of the draws below a value."""
        self._check(value, is_number)
        found: Tensor = 0.5 * (1 + ELEMENTWISE["erf"]((value - self.loc) * self.scale.reciprocal() / math.sqrt(2)))
        return found

    def icdf(self, value: Tensor) -> Tensor:
        """The value below which a share of the draws lies."""
        found: Tensor = self.loc + self.scale * ELEMENTWISE["erfinv"](2 * value - 1) * math.sqrt(2)
        return found

    def entropy(self) -> Tensor:
        """The entropy."""
        found: Tensor = 0.5 + 0.5 * math.log(2 * math.pi) + self.scale.log()
        return found
