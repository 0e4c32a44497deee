"""PyTorch's `torch.distributions`, as far as policies and latent variables need it: laws to draw from and to learn."""

from __future__ import annotations

from typing import Any

from gradcli.eager._core.unsupported import missing
from gradcli.eager.distributions.bernoulli import Bernoulli
from gradcli.eager.distributions.categorical import Categorical
from gradcli.eager.distributions.distribution import Distribution
from gradcli.eager.distributions.kl import kl_divergence
from gradcli.eager.distributions.normal import Normal

__all__ = ["Bernoulli", "Categorical", "Distribution", "Normal", "kl_divergence"]


def __getattr__(name: str) -> Any:
    raise missing("distributions", name, __all__)
