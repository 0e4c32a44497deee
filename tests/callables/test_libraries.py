"""Functions of tensors go in, gradcli's own, PyTorch's and JAX's: their backward passes are judged by their values."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import gradcli
import gradcli.eager as eager
from gradcli import check_callable

X = np.array([-1.5, 0.2, 2.0])


def pairs(report: Any) -> list[tuple[str | None, str]]:
    return [(one.leaf, one.verdict) for one in report.checks]


def functions(torch: Any) -> dict[str, Any]:
    """Custom functions in PyTorch's form, for any library that has it."""

    class Right(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * x * x

        @staticmethod
        def backward(ctx: Any, ct: Any) -> Any:
            (x,) = ctx.saved_tensors
            return ct * 3 * x * x

    class Wrong(Right):
        @staticmethod
        def backward(ctx: Any, ct: Any) -> Any:
            (x,) = ctx.saved_tensors
            return ct * 2 * x * x

    class Silent(Right):
        @staticmethod
        def backward(ctx: Any, ct: Any) -> Any:
            return None

    class Raises(Right):
        @staticmethod
        def backward(ctx: Any, ct: Any) -> Any:
            raise ValueError("no way back")

    class Two(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, y: Any) -> Any:
            ctx.save_for_backward(x, y)
            return x * y

        @staticmethod
        def backward(ctx: Any, ct: Any) -> Any:
            x, y = ctx.saved_tensors
            return ct * x, ct * y

    return {"right": Right, "wrong": Wrong, "silent": Silent, "raises": Raises, "two": Two}


def judged_in(torch: Any, good: str) -> None:
    """What holds for every library of tensors; `good` is said of what is right."""
    made = functions(torch)
    assert pairs(check_callable(made["right"], at=X)) == [("x", good)]
    assert pairs(check_callable(made["right"].apply, at=torch.tensor(X, dtype=torch.float64), names=["x"])) == [
        ("x", good)
    ]
    assert pairs(check_callable(made["wrong"], at=X)) == [("x", "DISAGREES")]
    assert pairs(check_callable(made["silent"], at=X)) == [("x", "DISAGREES")]
    raised = check_callable(made["raises"], at=X).checks[0]
    assert raised.verdict == "ERROR" and "the backward pass raises ValueError: no way back" in raised.message
    swapped = check_callable(made["two"], at={"x": X, "y": X + 0.3})
    assert pairs(swapped) == [("x", "DISAGREES"), ("y", "DISAGREES")]

    def energy(x: Any, scale: Any) -> Any:
        return torch.sum(torch.exp(x) * x) * scale

    assert pairs(check_callable(energy, at={"x": X, "scale": 2.0})) == [("x", good), ("scale", good)]
    own = check_callable(energy, lambda x, scale: (scale * torch.exp(x) * (1 + x), None), at={"x": X, "scale": 2.0})
    assert pairs(own) == [("x", "AGREES" if torch is eager else "PROVED")]
    assert pairs(check_callable(lambda x: torch.sum(torch.relu(x)), at=np.array([0.0, 1.0]))) == [("x", "KINK")]
    cut = check_callable(lambda x: torch.sum(torch.exp(x.detach())), at=X).checks[0]
    assert cut.verdict == "ERROR" and "requires a gradient" in cut.message


def test_gradclis_own_tensors() -> None:
    judged_in(eager, "PROVED")
    assert pairs(gradcli.check(functions(eager)["right"], at=X)) == [("x", "PROVED")]


@pytest.mark.peers
def test_pytorch() -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install gradcli[peers]")
    judged_in(torch, "PROVED")
    single = check_callable(functions(torch)["right"], at=torch.tensor([1.5, 2.0]))
    assert pairs(single) == [("x", "PROVED")]
    assert any("float32" in one.message for one in single.diagnostics)
    narrow = check_callable(torch.nn.Linear(3, 2), at=np.ones(3))  # its parameters are float32
    assert pairs(narrow) == [("input", "PROVED")] and any("float32" in one.message for one in narrow.diagnostics)
    layer = torch.nn.Linear(3, 2).double()
    assert pairs(check_callable(layer, at=torch.ones(4, 3, dtype=torch.float64))) == [("input", "PROVED")]
    both = check_callable(lambda x: (torch.sin(x), torch.cos(x).sum()), at=torch.tensor(X))
    assert pairs(both) == [("x", "PROVED")]


@pytest.mark.peers
def test_labels_of_pytorch() -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install gradcli[peers]")

    class Rows(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, w: Any, rows: Any) -> Any:
            ctx.save_for_backward(rows)
            ctx.shape = w.shape
            return w[rows]

        @staticmethod
        def backward(ctx: Any, ct: Any) -> Any:
            (rows,) = ctx.saved_tensors
            dw = torch.zeros(ctx.shape, dtype=ct.dtype)
            dw[rows] += ct  # a row that is read twice counts once
            return dw, None

    table = np.arange(8.0).reshape(4, 2) + 0.5
    assert pairs(check_callable(Rows, at={"w": table, "rows": [0.0, 3.0]})) == [("w", "PROVED")]
    assert pairs(check_callable(Rows, at={"w": table, "rows": [3.0, 3.0]})) == [("w", "DISAGREES")]
    entropy = torch.nn.functional.cross_entropy
    found = check_callable(lambda z, y: entropy(z, y), at=(table, [0.0, 1.0, 1.0, 0.0]))
    assert [pair[0] for pair in pairs(found)] == ["z"] and found.checks[0].verdict in {"PROVED", "CERTIFIED"}
    torch.manual_seed(0)  # for some weights the gradient in float32 is IMPRECISE
    layer = torch.nn.Linear(2, 3)
    narrow = check_callable(lambda x, y: entropy(layer(x), y), at=(table, [0.0, 2.0, 1.0, 0.0]))
    assert [pair[0] for pair in pairs(narrow)] == ["x"] and narrow.checks[0].verdict in {
        "PROVED",
        "CERTIFIED",
        "AGREES",
    }


@pytest.mark.peers
@pytest.mark.parametrize("factor", [6.0, 5.0, -6.0])
def test_a_backward_that_is_differentiated(factor: float) -> None:
    """A penalty on a gradient: its own gradient goes through the backward of a backward."""
    torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install gradcli[peers]")

    class Slope(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, ct: Any) -> Any:
            ctx.save_for_backward(x, ct)
            return 3 * x**2 * ct

        @staticmethod
        def backward(ctx: Any, ct: Any) -> Any:
            x, before = ctx.saved_tensors
            return factor * x * before * ct, 3 * x**2 * ct

    class Cube(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x**3

        @staticmethod
        def backward(ctx: Any, ct: Any) -> Any:
            return Slope.apply(*ctx.saved_tensors, ct)

    def penalty(x: Any) -> Any:
        (slope,) = torch.autograd.grad(Cube.apply(x).sum(), x, create_graph=True)
        return (slope**2).sum()

    def twice(x: Any) -> Any:
        return torch.autograd.grad(penalty(x), x)[0]

    x = torch.tensor([1.0, 2.0], dtype=torch.float64, requires_grad=True)
    verdicts = {"PROVED", "AGREES"} if factor == 6 else {"DISAGREES"}
    assert pairs(check_callable(Cube, at=X)) == [("x", "PROVED")]
    assert pairs(check_callable(penalty, lambda x: 36 * x**3, at=x)) == [("x", "PROVED")]
    assert check_callable(penalty, at=x).checks[0].verdict in verdicts
    assert check_callable(penalty, twice, at=x).checks[0].verdict in verdicts
    assert check_callable(penalty, lambda x: 6 * factor * x**3, at=x).checks[0].verdict in verdicts


@pytest.mark.peers
def test_a_function_with_a_context_of_its_own() -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install gradcli[peers]")

    class Scaled(torch.autograd.Function):
        @staticmethod
        def forward(x: Any, k: int) -> Any:
            return torch.sin(x) * k

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            ctx.save_for_backward(inputs[0])
            ctx.k = inputs[1]

        @staticmethod
        def backward(ctx: Any, ct: Any) -> Any:
            (x,) = ctx.saved_tensors
            return ct * torch.cos(x) * ctx.k, None

    found = check_callable(Scaled, at={"x": X, "k": 3})
    assert pairs(found) == [("x", "PROVED")]
    assert any("gives nothing for k" in one.message for one in found.diagnostics)


@pytest.mark.peers
def test_jax() -> None:
    jax = pytest.importorskip("jax", reason="JAX is not installed: pip install gradcli[peers]")
    jnp = jax.numpy

    def rule(slope: Any) -> Any:
        f = jax.custom_vjp(jnp.sin)
        f.defvjp(lambda x: (jnp.sin(x), x), lambda x, ct: (ct * slope(x),))
        return f

    assert pairs(check_callable(rule(jnp.cos), at=X, names=["x"])) == [("x", "PROVED")]
    assert pairs(check_callable(rule(jnp.sin), at=X, names=["x"])) == [("x", "DISAGREES")]

    def loss(x: Any) -> Any:
        return jnp.sum(jnp.tanh(x) * x)

    for at in (X, jnp.asarray(X)):
        report = check_callable(loss, at=at)
        assert pairs(report) == [("x", "PROVED")]
        assert report.checks[0].evidence["agree_bits"] > 56  # float64, though JAX has float32 by default
        assert pairs(check_callable(loss, jax.grad(loss), at=at)) == [("x", "AGREES" if at is X else "PROVED")]
    assert jnp.ones(2).dtype == "float32"  # as it was before


def test_no_library_is_imported_for_a_check() -> None:
    code = (
        "import sys, numpy as np; from gradcli import check_callable;"
        "check_callable(lambda x: np.sum(x**2), lambda x: 2*x, at=np.ones(2));"
        "print(sorted({'torch', 'jax', 'scipy', 'sympy', 'flint', 'gradcli.eager'} & set(sys.modules)))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
