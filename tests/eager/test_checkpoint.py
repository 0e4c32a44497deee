"""Checkpoints: the same gradients, one more run, less memory; hooks on what nodes save."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest

import gradcli.eager as torch
from gradcli.eager.utils.checkpoint import CheckpointError, checkpoint

FORMS = pytest.mark.parametrize("reentrant", [True, False])


@FORMS
def test_same_gradients_with_one_more_run(reentrant: bool) -> None:
    runs = []

    def function(x: Any) -> Any:
        runs.append(1)
        return torch.nn.functional.dropout((x * x).sin(), 0.5).exp()

    grads = []
    for wrapped in (function, lambda x: checkpoint(function, x, use_reentrant=reentrant)):
        torch.manual_seed(1)
        x = torch.tensor([0.5, 1.5, -2.0], requires_grad=True)
        wrapped(x).sum().backward()
        grads.append((x.grad.tolist(), torch.rand(1).item()))
    assert grads[0] == grads[1]
    assert len(runs) == 3


@FORMS
def test_parameters_read_from_outside_get_their_gradients(reentrant: bool) -> None:
    w = torch.tensor([2.0, 3.0], requires_grad=True)
    x = torch.tensor([1.0, 4.0], requires_grad=True)
    checkpoint(lambda x: (x * w).tanh() * w, x, use_reentrant=reentrant).sum().backward()
    got = w.grad.tolist(), x.grad.tolist()
    w.grad = x.grad = None
    ((x * w).tanh() * w).sum().backward()
    assert got == (w.grad.tolist(), x.grad.tolist())


@FORMS
def test_memory_between_checkpoints_is_given_back(reentrant: bool) -> None:
    size, parts, depth = 100_000, 6, 10

    def part(x: Any) -> Any:
        for _ in range(depth):
            x = x.sin()
        return x

    def peak(wrapped: Any) -> int:
        x = torch.ones(size, requires_grad=True)
        y = x
        tracemalloc.start()
        for _ in range(parts):
            y = wrapped(y)
        y.sum().backward()
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return found

    plain = peak(part)
    saved = peak(lambda x: checkpoint(part, x, use_reentrant=reentrant))
    one = size * 4
    assert plain > parts * depth * one  # each sine keeps its input
    assert saved < (parts + depth + 8) * one  # the inputs of the parts, and one part at a time


def test_functions_that_change_are_refused() -> None:
    runs: list[int] = []

    def fickle(x: Any) -> Any:
        runs.append(1)
        return x.sin().exp() if len(runs) == 1 else x * 1

    x = torch.ones(2, requires_grad=True)
    with pytest.raises(CheckpointError, match="fewer"):
        checkpoint(fickle, x, use_reentrant=False).sum().backward()


def test_form_must_be_chosen() -> None:
    x = torch.ones(2, requires_grad=True)
    with pytest.warns(UserWarning, match="use_reentrant"):
        checkpoint(lambda x: x * 2, x)
    assert checkpoint(lambda x: x.exp(), x, use_reentrant=False).grad_fn.name() == "ExpBackward0"


@FORMS
def test_nested_and_repeated(reentrant: bool) -> None:
    x = torch.tensor([0.3, 0.7], requires_grad=True)

    def inner(x: Any) -> Any:
        return checkpoint(lambda x: x.sin() * x, x, use_reentrant=reentrant)

    y = checkpoint(inner, x, use_reentrant=reentrant)
    y.sum().backward(retain_graph=True)
    y.sum().backward()
    expected = 2 * (np.cos(x.detach().numpy()) * x.detach().numpy() + np.sin(x.detach().numpy()))
    np.testing.assert_allclose(x.grad.numpy(), expected, rtol=1e-6)


def test_saved_tensors_may_live_elsewhere(tmp_path: Any) -> None:
    files = []

    def pack(x: Any) -> Any:
        path = tmp_path / f"{len(files)}.npy"
        np.save(path, x.detach().numpy())
        files.append(path)
        return path

    def unpack(path: Any) -> Any:
        return torch.from_numpy(np.load(path))

    x = torch.tensor([1.0, 2.0], requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
        y = (x.exp() * x).sum()
    assert len(files) >= 2
    y.backward()
    np.testing.assert_allclose(x.grad.numpy(), np.exp([1.0, 2.0]) * [2.0, 3.0], rtol=1e-6)
