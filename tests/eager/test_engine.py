"""Facts about eager tensors that need no PyTorch to check: graphs, accumulation, freeing, depth, memory, in place."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy as np
import pytest

import gradcli
import gradcli.eager as torch


def test_gradients_add_up_over_paths_and_calls() -> None:
    x = torch.tensor(2.0, requires_grad=True)
    y = 2 * x + 5
    (y + x).backward()
    assert x.grad.item() == 3.0
    for expected in (4.0, 5.0):
        (x * 1).backward()
        assert x.grad.item() == expected


def test_two_leaves_never_share_a_gradient() -> None:
    x, z = torch.ones(3, requires_grad=True), torch.ones(3, requires_grad=True)
    (x + z).sum().backward()
    first = x.grad
    x.grad.zero_()
    assert z.grad.tolist() == [1, 1, 1]
    (x * 2).sum().backward()
    assert first.tolist() == [2, 2, 2]  # the second time is in place


def test_a_gradient_belongs_to_its_leaf_alone() -> None:
    """What a leaf takes over is neither the seed, nor saved, nor what another leaf has; it lies row by row."""
    rng = np.random.default_rng(3)
    x, w = (torch.tensor(rng.standard_normal((64, 64))).requires_grad_() for _ in range(2))
    seed = torch.tensor(rng.standard_normal((64, 64)))
    known = [one.detach().clone() for one in (x, w, seed)]
    for _ in range(5):  # from the third time on, the operations follow recipes
        for f in (torch.clone, lambda x: x.t().t(), lambda x: x + w, lambda x: x * w, lambda x: x @ w.t()):
            x.grad = w.grad = None
            y = f(x)
            y.backward(seed, retain_graph=True)
            first = x.grad.clone()
            x.grad.fill_(7.0)
            assert w.grad is None or not (w.grad == 7).any()
            x.grad = None
            y.backward(seed)
            assert torch.equal(x.grad, first) and x.grad.is_contiguous()
            assert w.grad is None or w.grad.is_contiguous()
    assert all(torch.equal(one, old) for one, old in zip((x, w, seed), known, strict=True))


def test_accumulator_is_one_object_while_held() -> None:
    x = torch.ones(2, requires_grad=True)
    held = (x * 2).grad_fn.next_functions[0][0]
    assert held is (x + 1).grad_fn.next_functions[0][0]
    assert held.variable is x
    assert type(held).__name__ == "AccumulateGrad"
    assert held._sequence_nr() == 2**64 - 1
    assert str(type((x * 2).grad_fn)) == "<class 'MulBackward0'>"


def test_deep_graph_runs_and_is_released_without_recursion() -> None:
    x = torch.tensor(1.0, requires_grad=True)
    y = x
    for _ in range(50_000):
        y = y + 1
    y.backward()
    assert x.grad.item() == 1.0
    node = weakref.ref(y.grad_fn)
    del y
    assert node() is None


def test_memory_goes_back_without_the_collector() -> None:
    gc.disable()
    try:
        x = torch.ones(1000, requires_grad=True)
        y = (x * x).exp()
        held = weakref.ref(y), weakref.ref(y.grad_fn)
        y.sum().backward()
        del y
        assert [one() for one in held] == [None, None]
    finally:
        gc.enable()


def test_second_backward_names_the_remedy_and_the_line() -> None:
    x = torch.ones(2, requires_grad=True)
    y = (x * 3).sum()
    y.backward()
    with pytest.raises(RuntimeError, match=r"retain_graph=True") as caught:
        y.backward()
    assert "test_engine.py, line" in str(caught.value)


def test_in_place_error_names_versions_and_the_line() -> None:
    x = torch.ones(2, requires_grad=True)
    y = x * 1
    z = y**2
    y.add_(1)
    with pytest.raises(RuntimeError, match=r"version 1, expected version 0") as caught:
        z.sum().backward()
    assert "PowBackward0" in str(caught.value)
    assert str(caught.value).count("test_engine.py, line") == 2


@pytest.mark.parametrize(
    ("run", "word"),
    [
        (lambda x: torch.ones(2).sum().backward(), "require"),
        (lambda x: (x * 2).backward(), "gradient="),
        (lambda x: x.add_(1), "leaf"),
        (lambda x: x.numpy(), "detach"),
        (lambda x: torch.autograd.grad((x * 2).sum(), [x, torch.ones(1, requires_grad=True)]), "allow_unused"),
    ],
)
def test_errors_have_the_word_that_people_search_for(run: Any, word: str) -> None:
    with pytest.raises(RuntimeError, match=word):
        run(torch.ones(2, requires_grad=True))


def test_inference_tensors_refuse_to_be_saved() -> None:
    with torch.inference_mode():
        y = torch.ones(2)
    with pytest.raises(RuntimeError, match="inference"):
        torch.ones(2, requires_grad=True) * y


def test_unknown_names_say_the_nearest() -> None:
    with pytest.raises(AttributeError, match="sigmoid"):
        torch.sigmoi  # noqa: B018
    with pytest.raises(AttributeError, match="requires_grad"):
        torch.ones(1).require_grad  # noqa: B018
    assert not hasattr(torch, "jit")


EXPRESSIONS = [
    "x * x + 3 * x",
    "sin(x) * exp(-x)",
    "x / (1 + x**2)",
    "log(1 + exp(x))",
    "sigmoid(x) * tanh(x)",
    "sqrt(x + 2) ** 3",
    "relu(x) - abs(x - 1)",
]


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_gradients_equal_those_of_the_script(text: str) -> None:
    point = np.array([0.3, -0.7, 1.9])
    script = gradcli.grad(f"sum({text})", at={"x": point}).gradient["x"]
    x = torch.tensor(point, requires_grad=True)
    names = {name: getattr(torch, name) for name in ("sin", "exp", "log", "sigmoid", "tanh", "sqrt", "relu", "abs")}
    y = eval(text, {"__builtins__": {}}, {**names, "x": x})
    (first,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    np.testing.assert_allclose(first.detach().numpy(), script, rtol=1e-12)


def test_higher_orders() -> None:
    x = torch.tensor(2.0, dtype=torch.float64, requires_grad=True)
    y = x**5
    for expected in (80.0, 160.0, 240.0, 240.0, 120.0):
        (y,) = torch.autograd.grad(y, x, create_graph=True)
        assert y.item() == expected


SMOOTH = [
    *("exp", "log", "sqrt", "sin", "cos", "tan", "asin", "atan", "sinh", "tanh", "erf", "sigmoid", "log1p", "expm1"),
    *("reciprocal", "square", "lgamma", "rsqrt"),
]


@pytest.mark.parametrize("name", SMOOTH)
def test_gradcheck_of_functions(name: str) -> None:
    x = torch.tensor([0.3, 0.6], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(getattr(torch, name), x)
    assert torch.autograd.gradgradcheck(getattr(torch, name), x)


@pytest.mark.parametrize(
    "function",
    [
        lambda a: a.softmax(1),
        lambda a: a.log_softmax(0),
        lambda a: a.logsumexp(1),
        lambda a: a.var(0),
        lambda a: a.norm(),
        lambda a: a @ a.T,
        lambda a: a.cumsum(0) * a,
        lambda a: a.prod(1),
        lambda a: a[[0, 0, 1]] * a[1],
        lambda a: torch.stack([a, a * a]).permute(2, 0, 1),
        lambda a: a.sort(0).values ** 2,
        lambda a: torch.where(a > 0, a, a**2),
    ],
)
def test_gradcheck_of_programs(function: Any) -> None:
    a = torch.tensor([[0.5, -1.2, 2.0], [1.5, 0.7, -0.3]], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(function, a)
    assert torch.autograd.gradgradcheck(function, a)


def test_branch_not_taken_gives_nan_as_in_pytorch() -> None:
    x = torch.tensor([0.0, 4.0], requires_grad=True)
    torch.where(x > 0, x.sqrt(), torch.zeros(2)).sum().backward()
    assert np.isnan(x.grad[0].item()) and x.grad[1].item() == 0.25


def test_views_follow_the_history_of_their_base() -> None:
    x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    y = x * 1
    v = y[:2]
    y.mul_(x)
    assert repr(v) == "tensor([1., 4.], grad_fn=<AsStridedBackward0>)"
    v[0] = x[2] * 10
    assert y.tolist() == [30.0, 4.0, 9.0]
    y.sum().backward()
    assert x.grad.tolist() == [0.0, 4.0, 16.0]


def test_second_derivatives_through_views_and_saved_results() -> None:
    x = torch.tensor([0.5, 1.0], dtype=torch.float64, requires_grad=True)

    def function(x: Any) -> Any:
        y = x.exp() * 1
        y[1:] = x[:1] * x[1:]
        return y * y

    assert torch.autograd.gradcheck(function, x)
    assert torch.autograd.gradgradcheck(function, x)


def test_random_graphs_have_the_gradients_of_forward_differences() -> None:
    generator = np.random.default_rng(5)
    for _ in range(20):
        steps = [(int(k), int(i), int(j)) for k, i, j in generator.integers(0, 1000, (12, 3))]

        def function(x: Any, steps: Any = steps) -> Any:
            values = [x, x * 0.5]
            for kind, i, j in steps:
                one, other = values[i % len(values)], values[j % len(values)]
                values.append([one * other, one + other, one.sin(), one.tanh(), one - other][kind % 5])
            return values[-1] + values[-3]

        x = torch.tensor([0.4, -0.8], dtype=torch.float64, requires_grad=True)
        assert torch.autograd.gradcheck(function, x)
