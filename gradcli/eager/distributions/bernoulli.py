"""The distribution of zeros and ones, by probability or logit."""

from __future__ import annotations

from typing import Any

from gradcli.eager._core.modes import no_grad
from gradcli.eager._core.tensor import Tensor
from gradcli.eager._ops.creation import bernoulli
from gradcli.eager._ops.elementwise import ROWS
from gradcli.eager.distributions.distribution import Distribution, ProbsLogits, is_number, need_one, tensors
from gradcli.eager.nn.modules.loss import binary_cross_entropy_with_logits


class Bernoulli(ProbsLogits, Distribution):
    """The law of 0 and 1, with the probability of 1 (`probs`) or its logit (`logits`).

    >>> import gradcli.eager as torch
    >>> Bernoulli(0.25).log_prob(torch.tensor(1.0)).exp()
    tensor(0.2500)
    """

    parameters = {
        "probs": ("Interval(lower_bound=0.0, upper_bound=1.0)", lambda x: (x >= 0) & (x <= 1)),
        "logits": ("Real()", is_number),
    }

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        need_one(probs, logits)
        if probs is not None:
            (self.probs,) = tensors(probs)
            self._param = self.probs
        else:
            (self.logits,) = tensors(logits)
            self._param = self.logits
        super().__init__(self._param.shape, validate_args=validate_args)

    def _of_probs(self, probs: Any) -> Any:
        return probs.log() - ROWS["log1p"](-probs)

    def _of_logits(self, logits: Any) -> Any:
        return logits.sigmoid()

    @property
    def mean(self) -> Tensor:
        """The probability of 1."""
        found: Tensor = self.probs
        return found

    @property
    def variance(self) -> Tensor:
        """The variance."""
        found: Tensor = self.probs * (1 - self.probs)
        return found

    def sample(self, sample_shape: Any = ()) -> Tensor:
        """Zeros and ones that are drawn."""
        with no_grad():
            return bernoulli(self.probs.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the probability. ValueError for values other than 0 and 1."""
        self._check(value, lambda x: (x == 0) | (x == 1))
        scores, values = tensors(self.logits, value)
        return -binary_cross_entropy_with_logits(scores, values, reduction="none")

    def entropy(self) -> Tensor:
        """The entropy."""
        return binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none")
