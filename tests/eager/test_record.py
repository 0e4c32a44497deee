"""Functions of eager tensors as programs: equal values, equal derivatives, every oracle, branches as kinks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gradcli
import gradcli.eager as torch
from gradcli.eager import record
from gradcli.execution.evaluate import evaluate
from gradcli.transforms import derivatives
from tests.support.graph_invariants import verify
from tests.support.recorded_checks import check_program

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


SCALES = torch.tensor([1.0, 2.0], dtype=torch.float64)


def test_tensors_from_outside_keep_their_names() -> None:
    """Those of the function's module and scope, and parameters of networks; an argument is never mistaken for one."""
    w, norm = tensor([3.0, 4.0]), torch.nn.LayerNorm(2, dtype=torch.float64)
    norm.bias.data[0] = 0.5

    def f(at: torch.Tensor) -> torch.Tensor:
        return norm(at * w * SCALES).sum()

    program = record(f, tensor([3.0, 4.0]))
    assert sorted(program.leaves) == ["SCALES", "at", "norm.bias", "norm.weight", "w"]
    assert not program.leaves["at"].const and program.leaves["w"].const
    clashing = record(lambda w, at: f(at) * w.sum(), tensor([1.0]), tensor([3.0, 4.0]))
    assert len(clashing.leaves) == 6  # the inner w has no name there
    value = f(tensor([3.0, 4.0])).item()
    assert evaluate(clashing, {"w": [2.0], "at": [3.0, 4.0]}) == [pytest.approx(2 * value)]


def test_what_reads_entries_is_refused() -> None:
    x = tensor(POINT)
    for wrong in (
        lambda x: x.sum().item(),
        lambda x: x * float(x[0]),
        lambda x: x.numpy(),
        lambda x: x.nonzero() * x,
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


# --- what is filled, and masks from outside ---------------------------------------------------------------------

D = torch.float64
MASK = torch.tensor([True, False])


def filled(x: torch.Tensor) -> torch.Tensor:
    y = torch.zeros(2, dtype=D)
    y[0] = x[1]
    y[1] = x[0] * 2
    return (y * x).sum()


def table(x: torch.Tensor) -> torch.Tensor:
    m = torch.zeros(2, 2, dtype=D)
    for i in range(2):
        for j in range(2):
            m[i, j] = x[i] * x[j] if x[i] > 0 else x[j]
    return m.sum()


def summed(x: torch.Tensor) -> torch.Tensor:
    total = torch.tensor(0.0, dtype=D)
    for i in range(2):
        total += x[i] ** 2
    return total


def rows(x: torch.Tensor) -> torch.Tensor:
    y = x.clone()
    y[1:] = x[:1] * 3
    y[[0]] = 5.0
    return (y * y).sum()


@pytest.mark.parametrize("function", [filled, table, summed, rows])
def test_tensors_may_be_filled_while_a_function_is_recorded(function: Any) -> None:
    """The same values at other points, on other branches too; a verdict by the exact oracles."""
    program = torch.record(function, torch.tensor([2.0, -3.0], dtype=D))
    for point in ([2.0, -3.0], [-1.0, 5.0], [0.5, 0.25]):
        expected = function(torch.tensor(point, dtype=D)).item()
        assert evaluate(program, {"x": point}) == [pytest.approx(expected, rel=1e-15)]
    found = gradcli.check(function, at=torch.tensor([2.0, -3.0], dtype=D)).checks[0]
    assert found.verdict == "PROVED"


def test_what_was_filled_outside_is_as_before() -> None:
    buffer = torch.zeros(2, dtype=D)

    def f(x: torch.Tensor) -> torch.Tensor:
        buffer[0] = x[1]
        return (buffer * x).sum()

    program = torch.record(f, torch.tensor([2.0, 3.0], dtype=D))
    assert type(buffer) is torch.Tensor and buffer.tolist() == [0.0, 0.0]
    assert evaluate(program, {"x": [2.0, 5.0]}) == [10.0]
    with pytest.raises(ZeroDivisionError):
        torch.record(lambda x: (buffer.add_(x), 1 / 0)[0], torch.tensor([2.0, 3.0], dtype=D))
    assert type(buffer) is torch.Tensor and buffer.tolist() == [0.0, 0.0]
    with pytest.raises(RuntimeError, match="views"):
        torch.record(lambda x: x.clone()[0].add_(1), torch.tensor([2.0, 3.0], dtype=D))


@pytest.mark.parametrize(
    "function",
    [
        lambda x: torch.where(MASK, x, x * x).sum(),
        lambda x: torch.where(~MASK, x, x * x).sum(),
        lambda x: torch.where(MASK & (x > 0), x, x * x).sum(),
        lambda x: x.masked_fill(MASK, 0.5).pow(2).sum(),
        lambda x: (x * MASK).sum() + (x * x * MASK.double()).sum(),
        lambda x: (x[MASK] ** 2).sum(),
    ],
)
def test_a_mask_from_outside_is_read_by_every_oracle(function: Any) -> None:
    """A leaf of truth values would be unknown to exact readings: they judged both sides alike."""
    found = gradcli.check(function, at=torch.tensor([2.0, 3.0], dtype=D)).checks[0]
    assert found.verdict in ("PROVED", "CERTIFIED"), found.message
    program = torch.record(function, torch.tensor([2.0, 3.0], dtype=D))
    for point in ([2.0, 3.0], [-1.5, 0.25]):
        assert evaluate(program, {"x": point}) == [pytest.approx(function(torch.tensor(point, dtype=D)).item())]


@pytest.mark.parametrize("sign", ["and", "or", "xor"])
def test_conditions_are_joined(sign: str) -> None:
    import operator

    join = {"and": operator.and_, "or": operator.or_, "xor": operator.xor}[sign]

    def f(x: torch.Tensor) -> torch.Tensor:
        return torch.where(join(x > 0, ~(x < 1)), x, x * x).sum()

    program = torch.record(f, torch.tensor([0.5, 2.0], dtype=D))
    for point in ([0.5, 2.0], [-1.0, 3.0], [-2.0, 0.25]):
        assert evaluate(program, {"x": point}) == [pytest.approx(f(torch.tensor(point, dtype=D)).item())]
