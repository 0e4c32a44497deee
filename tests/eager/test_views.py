"""Random programs of views and in-place changes run under PyTorch and ours; gradients, flags and errors must agree."""

from __future__ import annotations

import random
import warnings
from typing import Any

import numpy as np
import pytest

import gradcli.eager


def program(seed: int, torch: Any) -> Any:
    """The facts that a random program leaves, or the name of its error."""
    draw = random.Random(seed)
    x = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], requires_grad=True)
    z = torch.tensor([0.5, 1.5, 2.5], requires_grad=draw.random() < 0.5)
    found = [x * 1 if draw.random() < 0.8 else torch.ones(2, 3)]
    try:
        for _ in range(draw.randint(2, 7)):
            step(draw, torch, found, draw.choice(found), z)
        total = sum((v * v).sum() for v in found)
        grads = torch.autograd.grad(total, [y for y in (x, z) if y.requires_grad], allow_unused=True)
    except (RuntimeError, IndexError, TypeError, ValueError) as error:
        return type(error).__name__
    arrays = [None if g is None else np.array(g.numpy()) for g in grads]
    arrays += [np.array(v.detach().numpy()) for v in found]
    names = [None if v.grad_fn is None else type(v.grad_fn).__name__ for v in found]
    return arrays, [(v.requires_grad, v.is_leaf) for v in found], names


def step(draw: random.Random, torch: Any, found: list[Any], v: Any, z: Any) -> None:
    kind = draw.randint(0, 15)
    if kind == 0:
        found.append(v[0])
    elif kind == 1:
        found.append(v.T if v.ndim == 2 else v.view(-1))
    elif kind == 2:
        found.append(v[..., 1:])
    elif kind == 3:
        v.mul_(2)
    elif kind == 4:
        v.add_(draw.choice(found).sum())
    elif kind == 5:
        found.append(v * v)
    elif kind == 6:
        v[0] = draw.choice([3.0, None]) or z.sum()
    elif kind == 7:
        found.append(v.detach() if draw.random() < 0.5 else v.exp().sqrt())
    elif kind == 8:
        v.mul_(z[:1])
    elif kind == 9:
        with torch.no_grad():
            if draw.random() < 0.5:
                found.append(v[..., :1])
            else:
                v.add_(1)
    elif kind == 10:
        found.extend(v.unbind())
    elif kind == 11:
        v.zero_()
    elif kind == 12:
        found.append(v.reshape(-1))
    elif kind == 13:
        found.extend(v.split(2, -1))
    elif kind == 14:
        found.append((1.5 - v) / (draw.choice(found).sigmoid() + v * v))
    else:
        v.copy_(draw.choice(found) * 1.5)


@pytest.mark.peers
@pytest.mark.parametrize("block", range(10))
def test_random_views_and_changes(block: int) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch = pytest.importorskip("torch")
        for seed in range(block * 500, block * 500 + 500):
            ours, theirs = program(seed, gradcli.eager), program(seed, torch)
            if isinstance(theirs, str):
                assert ours == theirs, seed
                continue
            assert ours[1:] == theirs[1:], seed
            for one, other in zip(ours[0], theirs[0], strict=True):
                assert (one is None) == (other is None), seed
                if other is not None:
                    np.testing.assert_allclose(one, other, rtol=1e-4, err_msg=str(seed))


def test_a_view_of_a_result_in_column_order_is_written_with_its_gradient() -> None:
    x = gradcli.eager.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    y = x.t() * 1
    y.t().view(-1)[1:3].mul_(10)
    y.sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [[1.0, 10.0], [10.0, 1.0]]


@pytest.mark.parametrize("made", [lambda x: x.unfold(0, 2, 1), lambda x: x.T.diagonal()])
def test_copies_where_pytorch_has_views_are_not_written(made: Any) -> None:
    with pytest.raises(RuntimeError, match="copies here"):
        made(gradcli.eager.ones(3, 4)).zero_()


def test_whole_numbers_that_are_written_keep_no_history() -> None:
    x = gradcli.eager.tensor([1.5, 2.5], requires_grad=True)
    y = gradcli.eager.tensor([1, 2])
    y[0] = x[1]
    assert y.tolist() == [2, 2]
    assert not y.requires_grad
