"""The error for a name that PyTorch has and this package does not have, with what to use instead.

It suggests the name with the nearest spelling; for names that people use often, a way that does the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from gradcli.diagnostics import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

VERSION = "2.13.0+gradcli"  # whose semantics these are; the suffix tells libraries that this is not PyTorch
REAL = "gradcli run --on torch runs the file on an installed PyTorch"
_ATTENTION = "torch.nn.MultiheadAttention, torch.nn.LayerNorm and torch.nn.Linear make one"
_WHOLE = "leave it out: the function itself runs, and gradcli records it"
_PRECISION = f"leave it out, everything is computed in its own format; {REAL}"
_ONE = f"gradcli runs in one process; {REAL}"

# names below `torch`, and what does the same
INSTEAD = {
    "quantile": "torch.sort and torch.lerp of two neighbours do the same",
    "kthvalue": "torch.sort(x, dim) and the row k - 1 of both results do the same",
    "cummax": "torch.max of the first entries, for each number of them, does the same",
    "cummin": "torch.min of the first entries, for each number of them, does the same",
    "aminmax": "torch.amin and torch.amax do the same",
    "nansum": "torch.where(x.isnan(), 0, x).sum() does the same",
    "nanmean": "the sum of torch.where(x.isnan(), 0, x) over the number of the others does the same",
    "logcumsumexp": "torch.logsumexp of the first entries, for each number of them, does the same",
    "histc": "torch.bucketize and torch.bincount do the same",
    "block_diag": "torch.cat of blocks and torch.zeros does the same",
    "rot90": "x.transpose(0, 1).flip(0) does the same",
    "ldexp": "x * 2**n does the same",
    "copysign": "torch.where(y < 0, -x.abs(), x.abs()) does the same",
    "fmax": "torch.maximum does the same where nothing is NaN",
    "fmin": "torch.minimum does the same where nothing is NaN",
    "float_power": "x.double() ** y does the same",
    "polar": "torch.complex(r * angle.cos(), r * angle.sin()) does the same",
    "linalg.cond": "the first over the last of torch.linalg.svdvals does the same",
    "linalg.matrix_rank": "counting torch.linalg.svdvals above a bound does the same",
    "nn.Transformer": _ATTENTION,
    "nn.TransformerDecoderLayer": _ATTENTION,
    "nn.EmbeddingBag": "torch.nn.Embedding and .sum(1), .mean(1) or .amax(1) of its rows do the same",
    "nn.Bilinear": "torch.einsum('bi,kij,bj->bk', x, weight, y) does the same",
    "nn.MultiMarginLoss": "torch.relu(margin - x.gather(1, target[:, None]) + x) has its entries",
    "linalg.lstsq": "Q, R = torch.linalg.qr(A); torch.linalg.solve(R, Q.mT @ B) has the solution",
    "linalg.multi_dot": "`@` multiplies matrices, one after the other",
    "cov": "x = a - a.mean(1, keepdim=True); x @ x.T / (a.shape[1] - 1) has its entries",
    "trapezoid": "((y[..., 1:] + y[..., :-1]) / 2 * dx).sum(-1) does the same",
    "nn.Unfold": "x.unfold(dimension, size, step) of a tensor gives windows along an axis",
    "nn.Fold": "torch.nn.functional.conv_transpose2d with filters of ones and zeros adds windows up",
    "nn.PixelUnshuffle": "x.reshape(N, C, H, r, W, r).permute(0, 1, 3, 5, 2, 4) has its entries",
    "nn.AdaptiveMaxPool2d": "torch.nn.MaxPool2d with a kernel of the right size does the same",
    "nn.HingeEmbeddingLoss": "torch.where(target == 1, x, torch.relu(margin - x)).mean() does the same",
    "nn.CosineEmbeddingLoss": "torch.nn.functional.cosine_similarity and torch.where make one",
    "nn.MarginRankingLoss": "torch.relu(margin - target * (x1 - x2)).mean() does the same",
    "nn.SoftMarginLoss": "torch.nn.functional.softplus(-target * x).mean() does the same",
    "nn.MultiLabelSoftMarginLoss": "torch.nn.BCEWithLogitsLoss does the same",
    "nn.PoissonNLLLoss": "(x.exp() - target * x).mean() does the same",
    "nn.GaussianNLLLoss": "0.5 * (var.log() + (x - target) ** 2 / var).mean() does the same",
    "nn.functional.gumbel_softmax": "torch.softmax((x - (-torch.rand_like(x).log()).log()) / tau, -1) does the same",
    "optim.NAdam": "torch.optim.Adam is the closest equivalent",
    "optim.RAdam": "torch.optim.Adam with a warm-up of its rate is the closest equivalent",
    "optim.ASGD": "torch.optim.SGD, and a running mean of the parameters, do the same",
    "optim.Adamax": "torch.optim.Adam is the closest equivalent",
    **{
        f"optim.lr_scheduler.{name}": "torch.optim.lr_scheduler.LambdaLR takes any function of the step"
        for name in (
            "ConstantLR",
            "CosineAnnealingWarmRestarts",
            "CyclicLR",
            "MultiplicativeLR",
            "OneCycleLR",
            "PolynomialLR",
        )
    },
    "optim.lr_scheduler.ChainedScheduler": "call step() of each scheduler",
    "distributions.Bernoulli": "torch.bernoulli draws, and torch.nn.functional.binary_cross_entropy is -log_prob",
    "utils.data.ChainDataset": "itertools.chain joins streams",
    "utils.checkpoint.checkpoint_sequential": "call torch.utils.checkpoint.checkpoint for each part",
    "autograd.graph.register_multi_grad_hook": "register_hook of each tensor is called with its gradient",
    "nn.DataParallel": _ONE,
    "nn.parallel": _ONE,
    "jit": _WHOLE,
    "fx": _WHOLE,
    "export": _WHOLE,
    "onnx": _WHOLE,
    "distributed": _ONE,
    "multiprocessing": _ONE,
    "quantization": _PRECISION,
    "profiler": "`gradcli run --trace` shows what ran; Python's cProfile shows where the time went",
    "autograd.profiler": "`gradcli run --trace` shows what ran; Python's cProfile shows where the time went",
    "utils.tensorboard": "print the numbers, or keep loss.item() in a list",
    "utils.bottleneck": "Python's cProfile shows where the time went",
    "sparse": f"tensors are dense; {REAL}",
    "fft": f"numpy.fft transforms arrays, without a gradient; {REAL}",
    "hub": f"models are written as torch.nn modules; {REAL}",
}
INSTEAD |= {
    f"nn.functional.{function}": INSTEAD[f"nn.{layer}"]
    for function, layer in (
        ("embedding_bag", "EmbeddingBag"),
        ("bilinear", "Bilinear"),
        ("multi_margin_loss", "MultiMarginLoss"),
        ("unfold", "Unfold"),
        ("fold", "Fold"),
        ("pixel_unshuffle", "PixelUnshuffle"),
        ("adaptive_max_pool2d", "AdaptiveMaxPool2d"),
        ("hinge_embedding_loss", "HingeEmbeddingLoss"),
        ("cosine_embedding_loss", "CosineEmbeddingLoss"),
        ("margin_ranking_loss", "MarginRankingLoss"),
        ("soft_margin_loss", "SoftMarginLoss"),
        ("multilabel_soft_margin_loss", "MultiLabelSoftMarginLoss"),
        ("poisson_nll_loss", "PoissonNLLLoss"),
        ("gaussian_nll_loss", "GaussianNLLLoss"),
    )
}

# packages that are built on PyTorch itself: they cannot run on these tensors
COMPANIONS = {
    "torchviz": "`gradcli graph FILE.py` draws the graph that a file built",
    "torchsummary": "print(model) shows its modules",
    "torchinfo": "print(model) shows its modules",
}
COMPANIONS |= dict.fromkeys(
    ("torchvision", "torchaudio", "torchtext", "torchdata", "pytorch_lightning", "lightning", "ignite", "transformers"),
    f"it is built on PyTorch itself; {REAL}",
)


def missing(room: str, name: str, known: Iterable[str]) -> AttributeError:
    """The error for a name that a module does not have; `room` is `nn`, `optim`, ..., or empty for `torch` itself.

    >>> str(missing("nn", "Linaer", ["Linear", "ReLU"]))
    "torch.nn has no 'Linaer' in gradcli; did you mean Linear?"
    """
    where = f"torch.{room}" if room else "torch"
    return AttributeError(f"{where} has no {name!r} in gradcli{advice(room, name, known)}", name=name)


def room(name: str, known: Iterable[str]) -> tuple[Callable[[str], NoReturn], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of the module of this name, which has no public names but the known ones."""

    def refuse(attribute: str) -> NoReturn:
        raise missing(name, attribute, known)

    return refuse, lambda: sorted(known)


def advice(room: str, name: str, known: Iterable[str]) -> str:
    """`; did you mean ...?`, what does the same, or nothing."""
    dotted = f"{room}.{name}" if room else name
    if name.startswith("__"):
        return ""
    if dotted in INSTEAD:
        return f"; {INSTEAD[dotted]}"
    meant = did_you_mean(name, known)
    return f"; did you mean {meant}?" if meant else ""
