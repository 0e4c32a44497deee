"""Hooks on random graphs, and backward twice through every operation: the same order and the same errors as PyTorch."""

from __future__ import annotations

import random
import warnings
from typing import Any

import pytest

import gradcli.eager
from tests.support.eager_snippets import SNIPPETS
from tests.support.eager_snippets_more import MORE
from tests.support.rows import all_rows


@pytest.fixture(scope="module")
def torch() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pytest.importorskip("torch")


def events(seed: int, torch: Any) -> list[Any]:
    """What the hooks of a random graph report, in order."""
    draw = random.Random(seed)
    leaves = [torch.tensor([1.0 + i, 2.0], requires_grad=True) for i in range(draw.randint(1, 3))]
    seen: list[Any] = []
    found, kept = list(leaves), []

    def noted(label: Any, *gradients: Any) -> None:
        seen.append((label, [None if g is None else [float(f"{v:.4g}") for v in g.tolist()] for g in gradients]))

    for i, leaf in enumerate(leaves):
        if draw.random() < 0.5:
            leaf.register_hook(lambda g, i=i: noted(("leaf", i), g))
        if draw.random() < 0.5:
            leaf.register_post_accumulate_grad_hook(lambda p, i=i: noted(("post", i), p.grad))
    for k in range(draw.randint(2, 9)):
        one, other = draw.choice(found), draw.choice(found)
        y = [one * other, one + other, one - other, one.exp() * 0.1, one.sin(), one * 2][draw.randint(0, 5)]
        found.append(y)
        for _ in range(draw.randint(0, 2)):
            kind = draw.randint(0, 3)
            if kind == 0:
                y.register_hook(lambda g, k=k: noted(("tensor", k), g))
            elif kind == 1:
                y.grad_fn.register_prehook(lambda gs, k=k: noted(("before", k), *gs))
            elif kind == 2:
                y.grad_fn.register_hook(lambda gi, go, k=k: noted(("node", k, len(gi)), *go))
            else:
                y.retain_grad()
                kept.append((k, y))
    total = sum(y.sum() for y in found[-2:])
    total.backward()
    for k, y in kept:
        noted(("kept", k), y.grad)
    for i, leaf in enumerate(leaves):
        noted(("grad", i), leaf.grad)
    return seen


@pytest.mark.peers
@pytest.mark.parametrize("block", range(4))
def test_hooks_run_in_pytorchs_order(block: int, torch: Any) -> None:
    for seed in range(block * 50, block * 50 + 50):
        assert events(seed, gradcli.eager) == events(seed, torch), seed


def test_hooks_of_one_tensor_run_in_order() -> None:
    seen: list[str] = []
    x = gradcli.eager.tensor([1.0, 2.0], requires_grad=True)
    y = x * 3
    y.register_hook(lambda g: seen.append("first"))
    y.grad_fn.register_prehook(lambda g: seen.append("prehook"))
    y.grad_fn.register_hook(lambda i, o: seen.append("node"))
    y.register_hook(lambda g: seen.append("second"))
    x.register_hook(lambda g: seen.append("leaf"))
    x.register_post_accumulate_grad_hook(lambda p: seen.append("post"))
    y.sum().backward()
    assert seen == ["first", "second", "prehook", "node", "leaf", "post"]


AREAS = ("unary", "scalar", "matrix", "axes", "product", "linalg")
TWICE = {
    name: text.replace("y.sum().backward()\n", "g = torch.ones_like(y)\ny.backward(g)\ny.backward(g)\n")
    for name, text in {**SNIPPETS, **MORE}.items()
    if name.split()[0] in AREAS and text.endswith("y.sum().backward()\n")
}


def outcome(text: str, torch: Any) -> str:
    names: dict[str, Any] = {"torch": torch}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            exec(compile(text, "twice.py", "exec"), names)
        except Exception as error:
            kind = next(c for c in type(error).__mro__ if c.__module__ == "builtins")
            return f"{kind.__name__} {'retain_graph' in str(error)}"
    return "fine"


SAVES_OTHERWISE = {
    "axes a.div(2, rounding_mode='floor')": "the derivative of a step function needs nothing",
}


@pytest.mark.peers
@all_rows("name", TWICE)
def test_second_backward_fails_where_pytorchs_fails(name: str, torch: Any) -> None:
    if name in SAVES_OTHERWISE:
        pytest.skip(SAVES_OTHERWISE[name])
    assert outcome(TWICE[name], gradcli.eager) == outcome(TWICE[name], torch)


NEVER = "x + 3|3 - x|-x|x.sum()|x.mean()|x.reshape(3, 1)|x[1]|x[:2]|torch.cat([x, x])|torch.stack([x, x])|x.expand(2, 3)|x.clone()"
ALWAYS = (
    "x * 3|x / 2|x ** 2|x.exp()|x.relu()|x.clamp(1, 2)|x.max()|torch.where(x > 1, x, 0.)|x[[0, 2]]|x @ x|x.sigmoid()"
)


@pytest.mark.parametrize("text", NEVER.split("|"))
def test_what_saves_nothing_may_be_walked_twice(text: str) -> None:
    assert (
        outcome(f"x = torch.ones(3, requires_grad=True)\ny = ({text}).sum()\ny.backward()\ny.backward()", gradcli.eager)
        == "fine"
    )


@pytest.mark.parametrize("text", ALWAYS.split("|"))
def test_what_saves_something_may_not(text: str) -> None:
    program = f"x = torch.ones(3, requires_grad=True)\ny = ({text}).sum()\ny.backward()\ny.backward()"
    assert outcome(program, gradcli.eager) == "RuntimeError True"


def test_hooks_off_the_path_to_an_input_do_not_run() -> None:
    torch = gradcli.eager
    p, q = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    seen: list[Any] = []
    p.register_hook(seen.append)
    middle = p.exp()
    middle.register_hook(seen.append)
    torch.autograd.grad((middle * q + p).sum(), q)
    assert seen == []
