"""PyTorch's `torch.nn.functional`: what layers and losses compute, without the objects that hold parameters."""

from __future__ import annotations

from typing import Any

from gradcli.diagnostics import did_you_mean
from gradcli.eager.nn.functional.activations import (
    celu,
    cosine_similarity,
    elu,
    gelu,
    glu,
    hardshrink,
    hardsigmoid,
    hardswish,
    hardtanh,
    leaky_relu,
    log_softmax,
    logsigmoid,
    mish,
    normalize,
    prelu,
    relu,
    relu6,
    selu,
    sigmoid,
    silu,
    softmax,
    softmin,
    softplus,
    softshrink,
    softsign,
    tanh,
    tanhshrink,
    threshold,
)
from gradcli.eager.nn.functional.classes import cross_entropy, nll_loss, one_hot
from gradcli.eager.nn.functional.layers import batch_norm, bilinear, dropout, embedding, layer_norm, linear, pad
from gradcli.eager.nn.functional.losses import (
    binary_cross_entropy,
    binary_cross_entropy_with_logits,
    gaussian_nll_loss,
    huber_loss,
    kl_div,
    l1_loss,
    margin_ranking_loss,
    mse_loss,
    poisson_nll_loss,
    smooth_l1_loss,
)

__all__ = [
    "batch_norm",
    "bilinear",
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "celu",
    "cosine_similarity",
    "cross_entropy",
    "dropout",
    "elu",
    "embedding",
    "gaussian_nll_loss",
    "gelu",
    "glu",
    "hardshrink",
    "hardsigmoid",
    "hardswish",
    "hardtanh",
    "huber_loss",
    "kl_div",
    "l1_loss",
    "layer_norm",
    "leaky_relu",
    "linear",
    "log_softmax",
    "logsigmoid",
    "margin_ranking_loss",
    "mish",
    "mse_loss",
    "nll_loss",
    "normalize",
    "one_hot",
    "pad",
    "poisson_nll_loss",
    "prelu",
    "relu",
    "relu6",
    "selu",
    "sigmoid",
    "silu",
    "smooth_l1_loss",
    "softmax",
    "softmin",
    "softplus",
    "softshrink",
    "softsign",
    "tanh",
    "tanhshrink",
    "threshold",
]


def __getattr__(name: str) -> Any:
    meant = None if name.startswith("__") else did_you_mean(name, __all__)
    hint = f"; the nearest that exists is {meant}" if meant else ""
    raise AttributeError(f"gradcli.eager.nn.functional has no {name!r}{hint}")
