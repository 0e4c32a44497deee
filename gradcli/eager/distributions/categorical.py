"""The distribution of classes, by their probabilities or logits."""

from __future__ import annotations

import math
from typing import Any

from gradcli.eager._core.tensor import Tensor
from gradcli.eager._ops.creation import full, multinomial
from gradcli.eager._ops.joining import broadcast_tensors
from gradcli.eager._ops.reductions import finfo, softmax
from gradcli.eager.distributions.distribution import Distribution, ProbsLogits, is_number, need_one


class Categorical(ProbsLogits, Distribution):
    """The law of whole numbers from 0 on, with probabilities in the last axis (`probs`, or `logits` up to a constant).

    >>> import gradcli.eager as torch
    >>> Categorical(torch.tensor([1.0, 3.0])).log_prob(torch.tensor(1)).exp()
    tensor(0.7500)
    """

    parameters = {
        "probs": ("Simplex()", lambda x: (x >= 0).all(-1) & ((x.sum(-1) - 1).abs() < 1e-6)),
        "logits": ("IndependentConstraint(Real(), 1)", is_number),
    }

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        need_one(probs, logits)
        given, name = (logits, "logits") if probs is None else (probs, "probs")
        if given.dim() < 1:
            raise ValueError(f"`{name}` parameter must be at least one-dimensional.")
        if probs is not None:
            self.probs = self._param = probs / probs.sum(-1, keepdim=True)
        else:
            self.logits = self._param = logits - logits.logsumexp(-1, keepdim=True)
        self._num_events = self._param.shape[-1]
        super().__init__(self._param.shape[:-1], validate_args=validate_args)

    def _of_probs(self, probs: Any) -> Any:
        return probs.log()

    def _of_logits(self, logits: Any) -> Any:
        return softmax(logits, -1)

    @property
    def mode(self) -> Tensor:
        """The most likely class."""
        found: Tensor = self.probs.argmax(-1)
        return found

    @property
    def mean(self) -> Tensor:
        """No number: classes have no mean."""
        return full(self._extended_shape(), math.nan, dtype=self.probs.dtype)

    variance = mean

    def sample(self, sample_shape: Any = ()) -> Tensor:
        """Classes that are drawn."""
        count = math.prod(sample_shape)
        drawn = multinomial(self.probs.detach().reshape(-1, self._num_events), count, True).T
        found: Tensor = drawn.reshape(self._extended_shape(sample_shape))
        return found

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the probability of classes. ValueError for classes that do not exist."""
        self._check(value, lambda x: (x % 1 == 0) & (x >= 0) & (x <= self._num_events - 1))
        at: Any
        scores: Any
        at, scores = broadcast_tensors(value.long().unsqueeze(-1), self.logits)
        found: Tensor = scores.gather(-1, at[..., :1]).squeeze(-1)
        return found

    def entropy(self) -> Tensor:
        """The entropy."""
        bounded = self.logits.clamp(min=finfo(self.logits.dtype).min)
        found: Tensor = -(bounded * self.probs).sum(-1)
        return found
