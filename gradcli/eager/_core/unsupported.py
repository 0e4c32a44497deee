"""The error for a name that PyTorch has and this package does not have, with what to use instead.

It suggests what does the same, the name with the nearest spelling, or to run the file on PyTorch itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NoReturn

from gradcli.base.diagnostics import did_you_mean

VERSION = "2.13.0+gradcli"  # whose semantics these are; the suffix tells libraries that this is not PyTorch
CODE = "GC749"
ON_TORCH = f"run it on PyTorch: --on torch [{CODE}]"
_WHOLE = f"leave it out, the function itself runs; or {ON_TORCH}"
_ONE = f"gradcli runs in one process; {ON_TORCH}"
_TIMES = f"`gradcli run --trace` shows what ran; for times {ON_TORCH}"

# names of PyTorch by their module below `torch`: they serve other ends than autograd, and no name here is near them
_GONE = {
    "": "addmv adjoint aminmax amp are_deterministic_algorithms_enabled as_strided autocast backends bfloat16 "
    "block_diag broadcast_shapes bucketize can_cast cartesian_prod combinations copysign corrcoef cummax "
    "cummin dist distributions dstack float_power fmax fmin get_autocast_dtype "
    "get_float32_matmul_precision get_num_threads histc hsplit index_copy index_fill index_put "
    "initial_seed is_autocast_enabled isin kthvalue ldexp load logcumsumexp masked_scatter mode mps msort "
    "nanmean nansum polar promote_types quantization randint_like resolve_conj resolve_neg result_type "
    "rot90 save scalar_tensor seed serialization set_float32_matmul_precision set_num_threads sgn sparse "
    "take tensor_split trapezoid use_deterministic_algorithms version view_as_complex vsplit xpu",
    "autograd.forward_ad": "enter_dual_level exit_dual_level",
    "autograd.graph": "disable_saved_tensors_hooks get_gradient_edge increment_version",
    "cuda": "amp",
    "linalg": "multi_dot vecdot",
    "nn": "AdaptiveMaxPool1d AdaptiveMaxPool2d Bilinear CircularPad1d CircularPad2d CircularPad3d ConstantPad1d "
    "ConstantPad2d ConstantPad3d ConvTranspose1d ConvTranspose2d ConvTranspose3d EmbeddingBag Fold GRU "
    "GRUCell GaussianNLLLoss HingeEmbeddingLoss LSTM LSTMCell LazyBatchNorm1d LazyBatchNorm2d "
    "LazyBatchNorm3d LazyConv1d LazyConv2d LazyConv3d LazyConvTranspose1d LazyConvTranspose2d LazyLinear "
    "MultiLabelSoftMarginLoss MultiMarginLoss MultiheadAttention PixelShuffle PixelUnshuffle "
    "PoissonNLLLoss RNN RNNCell ReflectionPad1d ReflectionPad2d ReflectionPad3d ReplicationPad1d "
    "ReplicationPad2d ReplicationPad3d SoftMarginLoss Transformer TransformerDecoder "
    "TransformerDecoderLayer TransformerEncoder TransformerEncoderLayer Unfold Upsample ZeroPad1d "
    "ZeroPad2d ZeroPad3d modules.lazy modules.rnn modules.transformer utils.rnn",
    "nn.functional": "conv_transpose1d conv_transpose2d conv_transpose3d fold interpolate pixel_shuffle "
    "pixel_unshuffle scaled_dot_product_attention unfold upsample",
    "nn.init": "dirac_ sparse_",
    "nn.utils": "clip_grads_with_norm_ get_total_norm",
    "optim": "ASGD Adamax LBFGS NAdam RAdam Rprop lbfgs",
    "optim.lr_scheduler": "ChainedScheduler ConstantLR CosineAnnealingWarmRestarts CyclicLR LinearLR MultiStepLR "
    "MultiplicativeLR OneCycleLR PolynomialLR ReduceLROnPlateau SequentialLR",
    "utils.checkpoint": "checkpoint_sequential",
    "utils.data": "BatchSampler ChainDataset ConcatDataset IterableDataset RandomSampler Sampler "
    "SequentialSampler SubsetRandomSampler WeightedRandomSampler distributed get_worker_info "
    "sampler",
}
# names below `torch`, and what to use
INSTEAD = {f"{room}.{name}".lstrip("."): ON_TORCH for room, names in _GONE.items() for name in names.split()} | {
    "clamp_max": "torch.clamp(x, max=...) does the same",
    "quantile": "torch.sort and torch.lerp of two neighbours do the same",
    "cov": "x = a - a.mean(1, keepdim=True); x @ x.T / (a.shape[1] - 1) has its entries",
    "diagflat": "torch.diag(x.reshape(-1)) does the same",
    "linalg.lstsq": "Q, R = torch.linalg.qr(A); torch.linalg.solve(R, Q.mT @ B) has the solution",
    "linalg.cond": "the first over the last of torch.linalg.svdvals does the same",
    "linalg.matrix_rank": "counting torch.linalg.svdvals above a bound does the same",
    **dict.fromkeys(("compile", "compiler", "export", "fx", "jit", "onnx"), _WHOLE),
    **dict.fromkeys(("distributed", "multiprocessing", "nn.DataParallel", "nn.parallel"), _ONE),
    **dict.fromkeys(("profiler", "autograd.profiler"), _TIMES),
    "utils.tensorboard": "print the numbers, or keep loss.item() in a list",
    "fft": f"numpy.fft transforms arrays, without a gradient; {ON_TORCH}",
    "hub": f"models are written as torch.nn modules; {ON_TORCH}",
}

# packages that are built on PyTorch itself: they cannot run on these tensors
COMPANIONS = {
    "torchviz": "`gradcli graph FILE.py` draws the graph that a file built",
    "torchsummary": "print(model) shows its modules",
    "torchinfo": "print(model) shows its modules",
}
COMPANIONS |= dict.fromkeys(
    ("torchvision", "torchaudio", "torchtext", "torchdata", "pytorch_lightning", "lightning", "ignite", "transformers"),
    f"it is built on PyTorch itself; {ON_TORCH}",
)


def missing(room: str, name: str, known: Iterable[str]) -> AttributeError:
    """The error for a name that a module does not have; `room` is `nn`, `optim`, ..., or empty for `torch` itself.

    >>> print(missing("nn", "Linaer", ["Linear", "ReLU"]))
    torch.nn has no 'Linaer' in gradcli; did you mean Linear? Otherwise run it on PyTorch: --on torch [GC749]
    """
    where = f"torch.{room}" if room else "torch"
    return AttributeError(f"{where} has no {name!r} in gradcli{advice(room, name, known)}", name=name)


def room(name: str, known: Iterable[str]) -> tuple[Callable[[str], NoReturn], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of the module of this name, which has no public names but the known ones."""

    def refuse(attribute: str) -> NoReturn:
        raise missing(name, attribute, known)

    return refuse, lambda: sorted(known)


def advice(room: str, name: str, known: Iterable[str]) -> str:
    """`; ` and what does the same, the name with the nearest spelling, or how PyTorch itself runs the file."""
    return "" if name.startswith("__") else f"; {_hint(f'{room}.{name}'.lstrip('.'), name, known)}"


def no_module(name: str, known: Iterable[str]) -> str:
    """The message for a module below `torch` that does not exist: what to use, or the nearest of the known names."""
    return f"No module named {name!r} in gradcli; {_hint(name.partition('.')[2], name, known)}"


def _hint(path: str, name: str, known: Iterable[str]) -> str:
    """What to use for a name that stands at a path below `torch`; that of its module where the table has only this."""
    parts = path.split(".")
    for end in range(len(parts), 0, -1):
        if (hint := INSTEAD.get(".".join(parts[:end]))) is not None:
            return hint
    near = did_you_mean(name, known)
    return f"did you mean {near}? Otherwise {ON_TORCH}" if near else ON_TORCH
