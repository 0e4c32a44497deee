"""The error for a name that PyTorch has and this package does not have, with what to use instead.

It suggests what does the same, the name with the nearest spelling, or to run the file on PyTorch itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NoReturn

from gradcli.diagnostics import did_you_mean

VERSION = "2.13.0+gradcli"  # whose semantics these are; the suffix tells libraries that this is not PyTorch
REAL = "gradcli run --on torch runs the file on an installed PyTorch"
_WHOLE = "leave it out: the function itself runs, and gradcli records it"
_PRECISION = f"leave it out, everything is computed in its own format; {REAL}"
_ONE = f"gradcli runs in one process; {REAL}"
_TIMES = "`gradcli run --trace` shows what ran; Python's cProfile shows where the time went"

# names below `torch`, and what does the same
INSTEAD = {
    "clamp_max": "torch.clamp(x, max=...) does the same",
    "quantile": "torch.sort and torch.lerp of two neighbours do the same",
    "cov": "x = a - a.mean(1, keepdim=True); x @ x.T / (a.shape[1] - 1) has its entries",
    "diagflat": "torch.diag(x.reshape(-1)) does the same",
    "linalg.lstsq": "Q, R = torch.linalg.qr(A); torch.linalg.solve(R, Q.mT @ B) has the solution",
    "linalg.cond": "the first over the last of torch.linalg.svdvals does the same",
    "linalg.matrix_rank": "counting torch.linalg.svdvals above a bound does the same",
    "nn.Transformer": "torch.nn.MultiheadAttention, torch.nn.LayerNorm and torch.nn.Linear make one, "
    "torch.triu(torch.full((n, n), -torch.inf), 1) its causal mask",
    **dict.fromkeys(("jit", "fx", "export", "onnx"), _WHOLE),
    **dict.fromkeys(("distributed", "multiprocessing", "nn.DataParallel", "nn.parallel"), _ONE),
    **dict.fromkeys(("profiler", "autograd.profiler", "utils.bottleneck"), _TIMES),
    "quantization": _PRECISION,
    "utils.tensorboard": "print the numbers, or keep loss.item() in a list",
    "sparse": f"tensors are dense; {REAL}",
    "fft": f"numpy.fft transforms arrays, without a gradient; {REAL}",
    "hub": f"models are written as torch.nn modules; {REAL}",
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

    >>> print(missing("nn", "Linaer", ["Linear", "ReLU"]))  # doctest: +ELLIPSIS
    torch.nn has no 'Linaer' in gradcli; did you mean Linear? Otherwise gradcli run --on torch runs the file on ...
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
    if name.startswith("__"):
        return ""
    dotted = f"{room}.{name}" if room else name
    meant = did_you_mean(name, known)
    near = f"did you mean {meant}? Otherwise " if meant else ""
    return f"; {INSTEAD.get(dotted) or near + REAL}"
