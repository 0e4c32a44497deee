"""Layers, losses, optimizers, transforms and checkpoints under PyTorch and under gradcli.eager: the same must be left."""

from __future__ import annotations

from typing import Any

import pytest

import gradcli.eager
from tests.eager.test_against_torch import agree, left_by, operations, torch
from tests.support.eager_layer_snippets import LAYER_MODULES, LAYERS
from tests.support.eager_training_snippets import FUNCTIONAL, MODULES, OPTIM, USES
from tests.support.eager_transform_snippets import CHECKPOINTS, LOADING, PRODUCTS, TRANSFORMS
from tests.support.eager_tutorial_snippets import TUTORIALS
from tests.support.rows import all_rows

__all__ = ["torch"]  # the fixture

SNIPPETS = {
    f"{room}: {name}": text
    for room, table in {
        "functional": FUNCTIONAL,
        "module": MODULES,
        "use": USES,
        "optim": OPTIM,
        "func": TRANSFORMS,
        "functional derivatives": PRODUCTS,
        "data": LOADING,
        "checkpoint": CHECKPOINTS,
        "layers": LAYERS,
        "tutorial": TUTORIALS,
        "module of layers": LAYER_MODULES,
    }.items()
    for name, text in table.items()
}


@pytest.mark.peers
@all_rows("name", SNIPPETS)
def test_training_program_leaves_what_pytorch_leaves(name: str, torch: Any) -> None:
    text = SNIPPETS[name]
    ours, our_error, our_warnings = left_by(text, gradcli.eager)
    theirs, their_error, their_warnings = left_by(text, torch)
    assert our_error == their_error
    assert our_warnings == their_warnings
    assert sorted(ours) == sorted(theirs)
    for variable in theirs:
        agree(ours[variable], theirs[variable], f"{name}: {variable}", operations(theirs))
