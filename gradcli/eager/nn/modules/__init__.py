"""PyTorch's `torch.nn.modules`: one file a family, with the functions of `torch.nn.functional` and their layers.

Begin with `activation.py`, where layers follow from their functions; `linear.py` has a layer with parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from gradcli.eager.nn import _module
from gradcli.eager.nn._module import Module
from gradcli.eager.nn.modules import activation, conv, linear, loss, normalization, padding, pooling

FAMILIES = (activation, linear, conv, pooling, padding, normalization, loss, _module)


def public(kind: Callable[[Any], bool]) -> dict[str, Any]:
    """The public names of all families that are of a kind, each from the file that defines it."""
    return {
        name: value
        for family in FAMILIES
        for name, value in vars(family).items()
        if not name.startswith("_") and getattr(value, "__module__", "") == family.__name__ and kind(value)
    }


TABLE: dict[str, type[Module]] = public(lambda x: isinstance(x, type) and issubclass(x, Module))
globals().update(TABLE)

# base classes and helpers that programs ask for by PyTorch's names
_BatchNorm, _ConvNd, _Loss = normalization._BatchNorm, conv._ConvNd, loss._Loss


def _ntuple(n: int) -> Callable[[Any], tuple[Any, ...]]:
    """A function that repeats a number `n` times, and makes a tuple of anything else."""
    return lambda x: tuple(x) if isinstance(x, Iterable) else (x,) * n


_single, _pair, _triple, _quadruple = _ntuple(1), _ntuple(2), _ntuple(3), _ntuple(4)
