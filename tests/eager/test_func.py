"""Transforms of functions: derivatives against the script's, vmap against a loop, and nothing wrong in silence."""

from __future__ import annotations

import warnings
import weakref
from typing import Any

import numpy as np
import pytest

import gradcli
import gradcli.eager as torch
from gradcli.eager import func
from gradcli.eager._core.tensor import Tensor
from tests.support.rows import all_rows

F = torch.nn.functional


def tensor(values: Any, grad: bool = False) -> Any:
    return torch.tensor(values, dtype=torch.float64, requires_grad=grad)


POINT = [0.3, -0.7, 1.9]
FUNCTIONS: dict[str, Any] = {
    "sin(x)*exp(-x)": lambda x: x.sin() * (-x).exp(),
    "x/(1 + x**2)": lambda x: x / (1 + x**2),
    "softmax(x)*x[0]": lambda x: x.softmax(0) * x[0],
    "cumsum(x)*norm(x)": lambda x: x.cumsum(0) * x.norm(),
    "where(x > 0, x, x**2)": lambda x: torch.where(x > 0, x, x**2),
    "tanh(outer(x, x) @ x)": lambda x: (x[:, None] * x[None, :] @ x).tanh(),
    "log(sum(exp(x)))*x": lambda x: x.logsumexp(0) * x,
}


@pytest.mark.parametrize("script", FUNCTIONS)
def test_jacobians_and_hessians_are_those_of_the_script(script: str) -> None:
    f, x = FUNCTIONS[script], tensor(POINT)
    exact = gradcli.jacobian(script, at={"x": np.array(POINT)}).jacobian["x"]
    np.testing.assert_allclose(func.jacrev(f)(x).numpy(), exact, rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(func.jacfwd(f)(x).numpy(), exact, rtol=1e-11, atol=1e-13)
    second = gradcli.hessian(f"sum({script})", at={"x": np.array(POINT)}).hessian["x"]["x"]
    g = lambda x: f(x).sum()  # noqa: E731
    for found in (func.hessian(g), func.jacrev(func.jacrev(g)), func.jacfwd(func.jacfwd(g)), func.jacrev(func.grad(g))):
        np.testing.assert_allclose(found(x).numpy(), second, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("script", FUNCTIONS)
def test_vmap_of_transforms_equals_a_loop(script: str) -> None:
    f = FUNCTIONS[script]
    rows = tensor([POINT, [1.1, 0.2, -0.4]])
    g = lambda x: f(x).sum()  # noqa: E731
    turned = lambda x: func.jvp(f, (x,), (x * 2,))[1]  # noqa: E731
    pulled = lambda x: func.vjp(f, x)[1](x * 2)[0]  # noqa: E731
    for h in (f, func.grad(g), func.jacrev(f), func.jacfwd(f), func.hessian(g), turned, pulled):
        expected = np.stack([h(row).numpy() for row in rows])
        np.testing.assert_allclose(func.vmap(h)(rows).numpy(), expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("script", FUNCTIONS)
def test_gradients_through_vmap(script: str) -> None:
    f, rows, shared = FUNCTIONS[script], tensor([POINT, [1.1, 0.2, -0.4]]), tensor([0.5, 2.0, -1.5])

    def mapped(rows: Any, shared: Any) -> Any:
        return func.vmap(lambda x: f(x * shared).sin())(rows)

    def looped(rows: Any, shared: Any) -> Any:
        return torch.stack([f(x * shared).sin() for x in rows.unbind()])

    points = [x.requires_grad_() for x in (rows, shared)]
    for one, other in zip(
        torch.autograd.grad(mapped(*points).pow(2).sum(), points),
        torch.autograd.grad(looped(*points).pow(2).sum(), points),
        strict=True,
    ):
        np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=1e-10, atol=1e-12)
    assert torch.autograd.gradgradcheck(mapped, points)


def test_higher_orders_by_nesting() -> None:
    f = lambda x: x**5  # noqa: E731
    x = tensor(2.0)
    for expected in (80.0, 160.0, 240.0, 240.0, 120.0, 0.0):
        f = func.grad(f)
        assert f(x).item() == expected
        assert func.vmap(f)(x[None]).item() == expected


def test_perturbations_are_not_confused() -> None:
    inner = lambda x: func.grad(lambda y: x + y)(tensor(1.0))  # noqa: E731
    assert func.grad(lambda x: x * inner(x))(tensor(2.0)).item() == 1.0
    assert func.grad(lambda x: func.grad(lambda y: y * x)(x))(tensor(3.0)).item() == 1.0
    assert func.vmap(func.grad(lambda x: func.grad(lambda y: y * x)(x)))(tensor([3.0])).item() == 1.0


def test_results_of_the_outermost_transform_carry_no_graph() -> None:
    x, w = tensor([1.0, 2.0]), tensor([3.0, 4.0], True)
    assert not func.grad(lambda x: (x * x).sum())(x).requires_grad
    assert func.grad(lambda x: (x * x * w).sum())(x).requires_grad
    assert func.grad(lambda w: (w * w).sum())(w).requires_grad
    with torch.no_grad():
        found = func.grad(lambda x: (x * x * w).sum())(x)
    assert not found.requires_grad and found.tolist() == [6.0, 16.0]
    assert x.grad is None and w.grad is None


def test_per_sample_gradients_of_a_model() -> None:
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 2)).double()
    params = {name: p.detach() for name, p in net.named_parameters()}
    x, labels = torch.randn(5, 3, dtype=torch.float64), torch.tensor([0, 1, 1, 0, 1])

    def loss(params: Any, x: Any, label: Any) -> Any:
        return F.cross_entropy(func.functional_call(net, params, (x[None],)), label[None])

    each = func.vmap(func.grad(loss), in_dims=(None, 0, 0))(params, x, labels)
    for i in range(5):
        net.zero_grad()
        F.cross_entropy(net(x[i : i + 1]), labels[i : i + 1]).backward()
        for name, p in net.named_parameters():
            np.testing.assert_allclose(each[name][i].numpy(), p.grad.numpy(), rtol=1e-10, atol=1e-14)


def test_memory_of_a_mapped_function_goes_back() -> None:
    rows = tensor([POINT, POINT], True)
    y = func.vmap(lambda x: (x * x).sum())(rows * 1)
    held = weakref.ref(y.grad_fn.saved[0])
    y.sum().backward()
    assert held() is None
    with pytest.raises(RuntimeError, match="retain_graph"):
        y.sum().backward()


def test_ensembles() -> None:
    nets = [torch.nn.Linear(3, 2) for _ in range(4)]
    params, buffers = func.stack_module_state(nets)
    x = torch.ones(3)
    found = func.vmap(lambda p: func.functional_call(nets[0], (p, buffers), (x,)))(params)
    np.testing.assert_allclose(found.detach().numpy(), np.stack([net(x).detach().numpy() for net in nets]), rtol=1e-6)
    found.sum().backward()
    assert params["weight"].grad.tolist() == np.ones((4, 2, 3)).tolist()


def test_axes_of_arguments_and_results() -> None:
    a, b = tensor(np.arange(6.0).reshape(2, 3)), tensor(np.arange(3.0))
    assert func.vmap(lambda x, y: x * y, in_dims=(1, 0), out_dims=1)(a, b).tolist() == (a * b).tolist()
    assert func.vmap(lambda x, y: x + y, in_dims=(0, None))(a, b).tolist() == (a + b).tolist()
    assert func.vmap(lambda d: d["x"].sum() + d["y"], in_dims=({"x": 0, "y": None},))({"x": a, "y": b}).shape == (2, 3)
    assert func.vmap(func.vmap(lambda x: x * 2), in_dims=1, out_dims=1)(a).tolist() == (a * 2).tolist()
    assert func.vmap(lambda x: b)(a).tolist() == [b.tolist()] * 2


@pytest.mark.parametrize(
    ("run", "error", "word"),
    [
        (lambda a: func.vmap(lambda x: x.item())(a[0]), RuntimeError, "item"),
        (lambda a: func.vmap(lambda x: x if x > 0 else -x)(a[0]), RuntimeError, "torch.where"),
        (lambda a: func.vmap(lambda x: x + torch.rand(3))(a), RuntimeError, "random"),
        (lambda a: func.vmap(lambda x: F.dropout(x))(a), RuntimeError, "random"),
        (lambda a: func.vmap(lambda x: x[x > 1])(a), RuntimeError, "nonzero"),
        (lambda a: func.vmap(lambda x: np.sin(x))(a), RuntimeError, "array"),
        (lambda a: func.vmap(lambda x: torch.zeros(3).add_(x))(a), RuntimeError, "in place"),
        (lambda a: func.vmap(lambda x, y: x)(a, a.T), ValueError, "same size"),
        (lambda a: func.vmap(lambda x: x, in_dims=4)(a), ValueError, "in_dims"),
        (lambda a: func.vmap(lambda x: 3)(a), ValueError, "tensors"),
        (lambda a: func.grad(lambda x: x)(a), RuntimeError, "one number"),
        (lambda a: func.grad(lambda x: [x.sum().backward(), x.sum()][1])(a), RuntimeError, "backward"),
        (lambda a: func.grad(lambda x: x.sum(), argnums=3)(a), RuntimeError, "argnum"),
        (lambda a: func.jvp(torch.sin, (a,), (a[0],)), RuntimeError, "does not match"),
        (lambda a: func.vjp(torch.sin, a)[1](a[0]), RuntimeError, "does not match"),
        (lambda a: func.vmap(Cube.apply)(a), RuntimeError, "setup_context"),
    ],
)
def test_what_is_refused(run: Any, error: Any, word: str) -> None:
    with pytest.raises(error, match=word):
        run(tensor([[1.0, 2.0, 3.0], [4.0, -5.0, 6.0]]))
    assert func.vmap(torch.sin)(tensor([[0.0]])).tolist() == [[0.0]]  # nothing is left behind
    assert torch.rand(1).shape == (1,)


class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x**3

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return grad


UNARY = sorted(
    {name for name in dir(torch) if not name.startswith("_") and callable(getattr(torch, name))}
    | {name for name in dir(Tensor) if not name.startswith("_")}
)


@all_rows("name", [name for name in UNARY if not name.startswith(("set_", "manual_seed"))])
def test_vmap_gives_what_a_loop_gives_or_refuses(name: str) -> None:
    """Whatever function of one tensor there is: stand-ins may be refused, but never frozen into a constant."""
    rows = tensor([[0.3, 0.9, 0.5], [0.8, 0.2, 0.6]])

    def call(x: Any) -> Any:
        function = getattr(x, name, None)
        if function is None or not callable(function):
            function = getattr(torch, name, None)
            return function(x) if callable(function) else getattr(x, name)
        return function()

    def tensors_of(value: Any) -> list[Any]:
        parts = value if isinstance(value, (tuple, list)) else [value]
        return [one for one in parts if isinstance(one, Tensor)]

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            looped = [tensors_of(call(row.clone())) for row in rows]
    except (TypeError, ValueError, RuntimeError, IndexError, AttributeError, AssertionError):
        return
    if not looped[0] or [one.shape for one in looped[0]] != [one.shape for one in looped[1]]:
        return
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = func.vmap(lambda x: tuple(tensors_of(call(x.clone()))))(rows)
    except (RuntimeError, TypeError):
        return
    if "rand" in name or "empty" in name:
        return
    for k, one in enumerate(found):
        expected = np.stack([part[k].detach().numpy() for part in looped])
        np.testing.assert_allclose(one.detach().numpy(), expected, rtol=1e-9, atol=1e-12)
