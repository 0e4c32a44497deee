"""How nodes of a kind are read: why one passes no gradient on, and what else an operation does with its operands."""

from __future__ import annotations


def kind_of(node: str) -> str:
    """The name of a node without its ending: `Relu` of `ReluBackward0`."""
    return node.partition("Backward")[0]


# the first words are the reasons why a node passes no gradient on although something arrived; then whether one spreads
# one gradient over entries, mixes entries by weights, branches, compares outputs with targets, combines entries of
# equal places, only views its operand, or masks: an infinity comes in there on purpose
READINGS: dict[str, set[str]] = {
    word: set(kinds.split())
    for word, kinds in {
        "step-function": "Ceil Floor Round Sign Trunc",
        "sampled": "Bernoulli Normal Poisson",
        "dead-relu": "LeakyRelu Relu",
        "saturated": "Elu Erf Gelu Hardsigmoid LogSigmoid Sigmoid Softmax Softplus Tanh",
        "not-selected": "Amax Amin Clamp ClampMax ClampMin Embedding Hardtanh Index MaskedFill Max Maximum Min Minimum "
        "Select Slice Where",
        "times-zero": "Addmm Baddbmm Bmm Convolution Div Dot Mm Mul Mv",
        "spreads": "Expand Mean Permute Repeat Select Sum T Transpose Unsqueeze View",
        "mixes": "Addmm Baddbmm Bmm Convolution Mm Mv",
        "branches": "MaskedFill Where",
        "compares": "Expand HuberLoss MseLoss SmoothL1Loss Sub",
        "combines": "Add Div Mul Sub",
        "views": "Clone Expand Permute ReshapeAlias Select Slice Squeeze T ToCopy Transpose Unsqueeze UnsafeView View",
        "picks": "Clone Expand Gather Index Permute Select Slice Squeeze T Transpose Unsqueeze UnsafeView View",
        "masks": "Add CopySlices Fill MaskedFill Where",
        "normalises": "CudnnBatchNorm NativeBatchNorm NativeGroupNorm NativeLayerNorm",
        "linear": "Add Clone Div Expand Mean Mul Neg Squeeze Sub Sum Unsqueeze View",
    }.items()
}
WHY_ZERO = ("step-function", "sampled", "dead-relu", "saturated", "not-selected", "times-zero")


def reads(node: str, word: str) -> bool:
    """Whether a node is read so: it "spreads", "mixes", "masks" or "branches"."""
    return kind_of(node) in READINGS[word]


def flat_reason(node: str) -> str:
    """Why a node passes no gradient on although something arrived; what is piecewise linear has no second slope."""
    if "BackwardBackward" in node:
        return "flat"
    return next((word for word in WHY_ZERO if reads(node, word)), "flat")


def is_float(dtype: str) -> bool:
    """Whether tensors of a format can require grad."""
    return dtype.startswith(("float", "complex", "bfloat"))
