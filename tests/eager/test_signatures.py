"""Every layer, function, optimizer and scheduler takes the arguments of PyTorch's, in the same order, with its defaults."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

import gradcli.eager.nn
import gradcli.eager.optim

# arguments that say where and how PyTorch computes
PLACE = ("device", "dtype")
# what of PyTorch's arguments this package leaves out, by the name that has them
LACKS: dict[str, set[str]] = {
    "nn.Embedding": {"_freeze"},
    "nn.Hardtanh": {"min_value", "max_value"},
    "nn.functional.embedding": {"max_norm", "norm_type", "scale_grad_by_freq", "sparse"},
    "nn.functional.normalize": {"out"},
    "nn.functional.huber_loss": {"weight"},
    "nn.functional.l1_loss": {"weight"},
    "nn.functional.mse_loss": {"weight"},
}
# of losses, deprecated in PyTorch: what follows them is taken by name only
OLD_SWITCHES = {"size_average", "reduce"}


def rooms() -> dict[str, list[str]]:
    eager = gradcli.eager
    return {
        "nn": sorted(eager.nn.modules.TABLE),
        "nn.functional": sorted(eager.nn.functional.__all__),
        "nn.init": sorted(name for name in vars(eager.nn.init) if name.endswith("_") and name[0] != "_"),
        "optim": sorted(name for name in eager.optim.__all__ if name != "lr_scheduler"),
        "optim.lr_scheduler": sorted(eager.optim.lr_scheduler.__all__),
    }


NAMES = [f"{room}.{name}" for room, names in rooms().items() for name in names]


def reached(library: Any, dotted: str) -> Any:
    for part in dotted.split("."):
        library = getattr(library, part)
    return library


def arguments(thing: Any) -> dict[str, inspect.Parameter] | None:
    """The arguments by name; None where they are written in C++ or in `*args`."""
    try:
        given = inspect.signature(thing).parameters.values()
    except (TypeError, ValueError):
        return None
    if any(one.kind in (one.VAR_POSITIONAL, one.VAR_KEYWORD) for one in given):
        return None
    return {one.name: one for one in given if one.name not in PLACE}


def by_position(given: dict[str, inspect.Parameter]) -> list[str]:
    return [name for name, one in given.items() if one.kind is not one.KEYWORD_ONLY]


def differences(name: str, ours: dict[str, inspect.Parameter], theirs: dict[str, inspect.Parameter]) -> list[str]:
    """What differs: names, the order of those that may come without their names, and defaults that are plain values."""
    old = [at for at, one in enumerate(theirs) if one in OLD_SWITCHES]
    theirs = {
        other: one.replace(kind=one.KEYWORD_ONLY) if old and at > old[0] else one
        for at, (other, one) in enumerate(theirs.items())
        if other not in OLD_SWITCHES | LACKS.get(name, set())
    }
    if sorted(ours) != sorted(theirs) or by_position(ours) != by_position(theirs):
        return [f"{name} takes {list(ours)}, PyTorch's takes {list(theirs)}"]
    return [
        f"{name}: {one} is {ours[one].default!r}, PyTorch's is {theirs[one].default!r}"
        for one in ours
        if not callable(ours[one].default) and ours[one].default != theirs[one].default
    ]


@pytest.mark.peers
def test_arguments_are_those_of_pytorch() -> None:
    torch = pytest.importorskip("torch")
    found, compared = [], 0
    for name in NAMES:
        ours, theirs = arguments(reached(gradcli.eager, name)), arguments(reached(torch, name))
        if ours is not None and theirs is not None:
            compared += 1
            found += differences(name, ours, theirs)
    assert not found, "\n".join(found)
    assert compared > 120  # the others are written in C++, or take `*args`
