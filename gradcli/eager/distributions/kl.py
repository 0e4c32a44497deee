"""Kullback-Leibler divergences of two distributions of one kind."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gradcli.eager.distributions.categorical import Categorical
from gradcli.eager.distributions.normal import Normal

if TYPE_CHECKING:
    from gradcli.eager._core.tensor import Tensor
    from gradcli.eager.distributions.distribution import Distribution


def _normal(p: Any, q: Any) -> Any:
    ratio = (p.scale / q.scale).pow(2)
    away = ((p.loc - q.loc) / q.scale).pow(2)
    return 0.5 * (ratio + away - 1 - ratio.log())


def _categorical(p: Any, q: Any) -> Any:
    each = p.probs * (p.logits - q.logits)
    each[(q.probs == 0).expand_as(each)] = float("inf")
    each[(p.probs == 0).expand_as(each)] = 0
    return each.sum(-1)


_RULES = {(Normal, Normal): _normal, (Categorical, Categorical): _categorical}


def kl_divergence(p: Distribution, q: Distribution) -> Tensor:
    """The divergence of p from q. NotImplementedError for pairs other than normal and categorical laws.

    >>> import gradcli.eager as torch
    >>> kl_divergence(Normal(0.0, 1.0), Normal(1.0, 1.0))
    tensor(0.5000)
    """
    rule = _RULES.get((type(p), type(q)))
    if rule is None:
        raise NotImplementedError(f"no KL(p || q) is known for p {type(p).__name__} and q {type(q).__name__}")
    found: Tensor = rule(p, q)
    return found
