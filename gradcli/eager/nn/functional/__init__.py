"""PyTorch's `torch.nn.functional`: what layers and losses compute, without the objects that hold parameters."""

from __future__ import annotations

from typing import Any

from gradcli.eager.nn.functional.activations import (
    celu,
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
from gradcli.eager.nn.functional.affine import bilinear, linear
from gradcli.eager.nn.functional.attention import scaled_dot_product_attention
from gradcli.eager.nn.functional.bags import embedding_bag
from gradcli.eager.nn.functional.classes import cross_entropy, nll_loss, one_hot
from gradcli.eager.nn.functional.columns import fold, unfold
from gradcli.eager.nn.functional.convolution import (
    conv1d,
    conv2d,
    conv3d,
    conv_transpose1d,
    conv_transpose2d,
)
from gradcli.eager.nn.functional.distances import (
    cosine_embedding_loss,
    cosine_similarity,
    gumbel_softmax,
    hinge_embedding_loss,
    normalize,
    pairwise_distance,
    soft_margin_loss,
    triplet_margin_loss,
)
from gradcli.eager.nn.functional.layers import dropout, dropout2d, embedding
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
from gradcli.eager.nn.functional.margins import multi_margin_loss, multilabel_soft_margin_loss
from gradcli.eager.nn.functional.norms import batch_norm, group_norm, instance_norm, layer_norm, rms_norm
from gradcli.eager.nn.functional.padding import pad
from gradcli.eager.nn.functional.pooling import avg_pool1d, avg_pool2d, max_pool1d, max_pool2d
from gradcli.eager.nn.functional.resizing import (
    adaptive_avg_pool1d,
    adaptive_avg_pool2d,
    adaptive_max_pool1d,
    adaptive_max_pool2d,
    interpolate,
    pixel_shuffle,
    pixel_unshuffle,
)
from gradcli.eager.signatures import checked as _checked
from gradcli.eager.unsupported import missing

__all__ = [
    "scaled_dot_product_attention",
    "cosine_embedding_loss",
    "gumbel_softmax",
    "hinge_embedding_loss",
    "pairwise_distance",
    "soft_margin_loss",
    "triplet_margin_loss",
    "dropout2d",
    "group_norm",
    "instance_norm",
    "rms_norm",
    "conv1d",
    "conv2d",
    "conv3d",
    "conv_transpose1d",
    "conv_transpose2d",
    "fold",
    "unfold",
    "adaptive_avg_pool1d",
    "adaptive_avg_pool2d",
    "adaptive_max_pool1d",
    "adaptive_max_pool2d",
    "avg_pool1d",
    "avg_pool2d",
    "interpolate",
    "max_pool1d",
    "max_pool2d",
    "pixel_shuffle",
    "pixel_unshuffle",
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
    "embedding_bag",
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
    "multi_margin_loss",
    "multilabel_soft_margin_loss",
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

# every function but those that small steps are made of checks its arguments
_HOT = ("linear", "relu", "tanh", "sigmoid", "softmax", "log_softmax", "mse_loss", "cross_entropy")
_FLOATING = (
    *("celu", "elu", "gelu", "hardshrink", "hardswish", "leaky_relu", "mish", "silu", "softplus", "softshrink", "glu"),
    *("softmin", "selu", "logsigmoid", "l1_loss", "smooth_l1_loss", "huber_loss", "layer_norm", "batch_norm"),
)
for _name in __all__:
    if _name not in _HOT:
        globals()[_name] = _checked(globals()[_name], floating=_name in _FLOATING)


def __getattr__(name: str) -> Any:
    raise missing("nn.functional", name, __all__)
