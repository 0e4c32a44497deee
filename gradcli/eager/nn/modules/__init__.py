"""The modules of PyTorch's `torch.nn`, by their names."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from gradcli.eager.nn.modules import (
    activations,
    attention,
    cells,
    containers,
    convolution,
    embeddings,
    images,
    layers,
    lazy,
    losses,
    norms,
    padding,
    pooling,
    recurrent,
    transformers,
)
from gradcli.eager.nn.modules.module import Module

TABLE: dict[str, type[Module]] = {"Module": Module}
for _file in (
    activations,
    containers,
    layers,
    lazy,
    embeddings,
    norms,
    losses,
    convolution,
    pooling,
    padding,
    images,
    recurrent,
    cells,
    attention,
    transformers,
):
    TABLE.update(
        {
            name: found
            for name, found in vars(_file).items()
            if isinstance(found, type) and issubclass(found, Module) and not name.startswith("_")
        }
    )
globals().update(TABLE)

# base classes and helpers that programs ask for by PyTorch's names
_BatchNorm, _ConvNd, _Loss = norms.BatchNorm1d, convolution._Convolution, losses._Loss


def _ntuple(n: int) -> Callable[[Any], tuple[Any, ...]]:
    """A function that repeats a number `n` times, and makes a tuple of anything else."""
    return lambda x: tuple(x) if isinstance(x, Iterable) else (x,) * n


_single, _pair, _triple, _quadruple = _ntuple(1), _ntuple(2), _ntuple(3), _ntuple(4)
