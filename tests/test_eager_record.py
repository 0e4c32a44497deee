"""Functions of eager tensors as programs: equal values, equal derivatives, every oracle, branches as kinks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gradcli.eager as torch
from gradcli.checks.programs import check_program
from gradcli.eager import record
from gradcli.execution.evaluate import evaluate
from gradcli.graph.verify import verify
from gradcli.transforms import derivatives

F = torch.nn.functional
DOUBLE = torch.float64


def tensor(values: Any, grad: bool = False) -> Any:
    return torch.tensor(values, dtype=DOUBLE, requires_grad=grad)


W = tensor([[0.1, 0.2, -0.3], [0.3, -0.4, 0.5], [0.7, 0.6, 0.2]])
PROGRAMS: dict[str, Any] = {
    "arithmetic": lambda x: (2 * x - 1) / (x * x + 3) + x**3 - 1 / x,
    "matrices": lambda x: (W @ x).tanh() @ W.T - x @ W,
    "reductions": lambda x: x.sum() * x.mean() + x.prod() - x.norm() + x.var() + x.logsumexp(0),
    "shapes": lambda x: torch.cat([x[1:], x[:1]]).view(3, 1).expand(3, 2).permute(1, 0).reshape(-1)[::2],
    "choices": lambda x: torch.where(x > 0.5, x, -x).clamp(-0.6, 0.8).relu() + x.abs(),
    "stack": lambda x: torch.stack([x, x * x, x.sin()]).cumsum(0).softmax(1).flatten(),
    "indices": lambda x: x[[2, 0, 0]] * x[torch.tensor([True, False, True])].sum(),
    "in place": lambda x: x.clone().mul_(3).add_(x).sub_(1),
    "layers": lambda x: F.layer_norm(F.gelu(F.linear(x[None], W, W[0])), (3,)),
    "loss": lambda x: F.cross_entropy(x[None], torch.tensor([2])) + F.mse_loss(x, W[0]) + F.huber_loss(x, W[1]),
    "gradient inside": lambda x: torch.func.grad(lambda y: (y.sin() * x).sum())(x) * x,
    "hessian inside": lambda x: torch.func.hessian(lambda y: (y**3).sum() * y[0])(x) @ x,
    "vmap inside": lambda x: torch.vmap(lambda a: a * x)(x).sum(0),
}
POINT = [0.3, 0.9, 1.4]


@pytest.mark.parametrize("name", PROGRAMS)
def test_value_and_gradient_are_those_of_the_tensors(name: str) -> None:
    f, x = PROGRAMS[name], tensor(POINT, True)
    program = record(f, x)
    verify(program)
    assert [leaf for leaf in program.leaves.values() if not leaf.const] == [program.leaves["x"]]
    y = f(x)
    (value,) = evaluate(program, {"x": POINT})
    np.testing.assert_allclose(value, y.detach().numpy(), rtol=1e-13, atol=1e-15)
    weights = torch.linspace(1, 2, y.numel(), dtype=DOUBLE).reshape(y.shape)
    (expected,) = torch.autograd.grad((y * weights).sum(), x)
    output = record(lambda x: (f(x) * weights).sum(), x)
    (gradient,) = derivatives.grad(output.outputs[0], [output.leaves["x"].node])
    (found,) = evaluate(output.with_outputs([gradient]), {"x": POINT})
    np.testing.assert_allclose(found, expected.numpy(), rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("name", ["arithmetic", "choices", "loss", "gradient inside"])
def test_oracles_confirm_recorded_programs(name: str) -> None:
    report = check_program(record(PROGRAMS[name], tensor(POINT)))
    assert report.checks and all(one.passed for one in report.checks)
    assert {one.verdict for one in report.checks} <= {"PROVED", "CERTIFIED", "AGREES"}


def clipped(x: Any) -> Any:
    if x > 1:
        return 2 * x - 1
    return x * x if x > 0 else -x


def test_every_side_of_a_branch_is_recorded() -> None:
    program = record(clipped, tensor(3.0))
    assert [guard.taken for guard in program.guards] == [True]
    points = [-2.0, 0.0, 0.5, 1.0, 4.0]
    assert [evaluate(program, {"x": x})[0] for x in points] == [clipped(tensor(x)).item() for x in points]
    (gradient,) = derivatives.grad(program.outputs[0], [program.leaves["x"].node])
    slopes = [evaluate(program.with_outputs([gradient]), {"x": x})[0] for x in points]
    assert slopes == [-1.0, -1.0, 1.0, 2.0, 2.0]


def test_loops_that_depend_on_data_are_unrolled_as_far_as_runs_go() -> None:
    def root(a: Any) -> Any:
        y = a * 0 + 1
        while (y * y - a).abs() > 1e-6:
            y = (y + a / y) / 2
        return y

    program = record(root, tensor(2.0))
    for a in (0.5, 1.0, 2.0, 9.0):
        assert evaluate(program, {"a": a})[0] == pytest.approx(root(tensor(a)).item(), rel=1e-15)
    assert np.isnan(evaluate(record(root, tensor(2.0), runs=1), {"a": 1e9})[0])


@pytest.mark.parametrize(
    ("f", "at", "verdict"),
    [
        (lambda x: 2 * x if x > 1 else x + 1, 1.0, "KINK"),
        (lambda x: 2 * x if x > 1 else x * x * x, 1.0, "DISCONTINUOUS"),
        (lambda x: 2 * x if x > 1 else x * x * x, 1.0 + 1e-9, "PROVED"),
        (lambda x: x * x if x > 1 else 2 * x - 1, 1.0, "CERTIFIED"),
    ],
)
def test_a_point_on_a_branch_is_a_kink_and_no_error(f: Any, at: float, verdict: str) -> None:
    (found,) = check_program(record(f, tensor(at)), allow_kink=True).checks
    assert found.verdict == verdict or {found.verdict, verdict} == {"PROVED", "CERTIFIED"}


def test_tensors_from_outside_are_constants() -> None:
    w = tensor([1.0, 2.0], True)
    program = record(lambda x, scale: (x * w).sum() * scale, tensor([3.0, 4.0]), tensor(2.0))
    assert [name for name, leaf in program.leaves.items() if not leaf.const] == ["x", "scale"]
    assert evaluate(program, {"x": [1.0, 1.0], "scale": 3.0}) == [9.0]


def test_what_reads_entries_is_refused() -> None:
    x = tensor(POINT)
    for wrong in (
        lambda x: x.sum().item(),
        lambda x: x * float(x[0]),
        lambda x: x.numpy(),
        lambda x: x.argmax() * x,
        lambda x: x * torch.rand(3),
        lambda x: x[x > 1],
        lambda x: torch.tensor([x[0], x[1]]),
        lambda x: torch.zeros(3).copy_(x),
    ):
        with pytest.raises(RuntimeError):
            record(wrong, x)
    with pytest.raises(TypeError, match="tensors"):
        record(lambda x: [3], x)
    assert (x * 2).tolist() == [0.6, 1.8, 2.8]  # nothing is left behind
