"""Functions with rules of their own inside a recorded function: one operation each, whose rule is their backward.

What the recorded program says is what the tensors say, in value, gradient and second derivative, also where the rule is
wrong; and whoever judges it names the class, the error and the line.
"""

from __future__ import annotations

import inspect
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

DOUBLE = torch.float64
POINT = [0.5, -1.25, 2.0]
Function = torch.autograd.Function


def tensor(values: Any, grad: bool = False) -> Any:
    return torch.tensor(values, dtype=DOUBLE, requires_grad=grad)


class Cube(Function):
    """Saves its operand."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx: Any, ct: Any) -> Any:
        (x,) = ctx.saved_tensors
        return ct * 3 * x**2


class WrongCube(Cube):
    """The same with a slip."""

    @staticmethod
    def backward(ctx: Any, ct: Any) -> Any:
        (x,) = ctx.saved_tensors
        squared = x**2
        return ct * 2 * squared


class Sigmoid(Function):
    """Saves its result."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        y = 1 / (1 + torch.exp(-x))
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx: Any, ct: Any) -> Any:
        (y,) = ctx.saved_tensors
        return ct * y * (1 - y)


class Intermediate(Function):
    """Saves what is neither operand nor result: the second derivative of PyTorch takes it for a constant."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        e = torch.exp(-x)
        ctx.save_for_backward(e)
        return 1 / (1 + e)

    @staticmethod
    def backward(ctx: Any, ct: Any) -> Any:
        (e,) = ctx.saved_tensors
        return ct * e / (1 + e) ** 2


class Several(Function):
    """Two results, two operands, a number, and a context of its own."""

    @staticmethod
    def forward(x: Any, y: Any, k: int) -> Any:
        return x * y * k, (x + y).sum()

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        x, y, ctx.k = inputs
        ctx.save_for_backward(x, y)

    @staticmethod
    def backward(ctx: Any, ct: Any, of_sum: Any) -> Any:
        x, y = ctx.saved_tensors
        return ct * y * ctx.k + of_sum, ct * x * ctx.k + of_sum, None


class Ramp(Function):
    """A branch on data in both halves."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x * x if x.sum() > 0 else -x

    @staticmethod
    def backward(ctx: Any, ct: Any) -> Any:
        (x,) = ctx.saved_tensors
        return 2 * ct * x if x.sum() > 0 else -ct


class Sorted(Function):
    """A result of whole numbers, and one that is marked."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        order = x.argmax()
        mask = (x > 0).to(x.dtype)
        ctx.mark_non_differentiable(mask)
        ctx.save_for_backward(x)
        return x * x, order, mask

    @staticmethod
    def backward(ctx: Any, ct: Any, *nothing: Any) -> Any:
        return 2 * ct * ctx.saved_tensors[0]


class Outer(Function):
    """Calls a Function forward, and another one on the way back."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return Cube.apply(x) + x

    @staticmethod
    def backward(ctx: Any, ct: Any) -> Any:
        (x,) = ctx.saved_tensors
        return Times.apply(ct, 3 * x * x + 1)


class Times(Function):
    @staticmethod
    def forward(ctx: Any, x: Any, y: Any) -> Any:
        ctx.save_for_backward(x, y)
        return x * y

    @staticmethod
    def backward(ctx: Any, ct: Any) -> Any:
        x, y = ctx.saved_tensors
        return ct * y, ct * x


class Doubled(Function):
    """Changes its operand in place."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.mark_dirty(x)
        return x.mul_(2)

    @staticmethod
    def backward(ctx: Any, ct: Any) -> Any:
        return 2 * ct


class Reversed(Function):
    """No derivative of anything: the sign is turned on purpose."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, ct: Any) -> Any:
        return -ct


class Half(Function):
    """Nothing is sent to the second operand."""

    @staticmethod
    def forward(ctx: Any, x: Any, y: Any) -> Any:
        ctx.save_for_backward(y)
        return x * y

    @staticmethod
    def backward(ctx: Any, ct: Any) -> Any:
        return ct * ctx.saved_tensors[0], None


def two(x: Any) -> Any:
    found, total = Several.apply(x, 2 * x, 3)
    return (found * x).sum() * total


def sorted_(x: Any) -> Any:
    squares, order, mask = Sorted.apply(x * 1)
    assert order.dtype is torch.int64
    return (squares * mask).sum() + (squares * x).sum()


W = tensor([1.5, -0.5, 0.25], True)
FUNCTIONS: dict[str, Any] = {
    "saves its operand": lambda x: (Cube.apply(x) * x).sum(),
    "is wrong": lambda x: (WrongCube.apply(x) * x).sum(),
    "saves its result": lambda x: (Sigmoid.apply(x * x) * x).sum(),
    "saves an intermediate": lambda x: (Intermediate.apply(x) * x).sum(),
    "several results": two,
    "branches": lambda x: (Ramp.apply(x) * x).sum(),
    "whole numbers and marks": sorted_,
    "Functions inside": lambda x: (Outer.apply(x) * x).sum(),
    "in place": lambda x: (Doubled.apply(x * x) * x).sum(),
    "turned": lambda x: (Reversed.apply(x) * x).sum() + x.sum(),
    "nothing is sent": lambda x: Half.apply(x, x * x).sum(),
    "a weight from outside": lambda x: Times.apply(x, W).pow(2).sum(),
    "twice": lambda x: (Cube.apply(Cube.apply(x)) + Cube.apply(x)).sum(),
}
KINDS_OF_SECOND = [name for name in FUNCTIONS if name not in ("whole numbers and marks", "in place")]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_value_and_gradient_are_those_of_the_tensors(name: str) -> None:
    f, x = FUNCTIONS[name], tensor(POINT, True)
    program = record(f, x)
    verify(program)
    y = f(x)
    (expected,) = torch.autograd.grad(y, x)
    (gradient,) = derivatives.grad(program.outputs[0], [program.leaves["x"].node])
    value, found = evaluate(program.with_outputs([*program.outputs, gradient]), {"x": POINT})
    np.testing.assert_allclose(value, y.item(), rtol=1e-14)
    np.testing.assert_allclose(found, expected.numpy(), rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize("name", KINDS_OF_SECOND)
def test_second_derivatives_follow_the_same_rule(name: str) -> None:
    """Reverse over reverse, by the program's own transforms and inside the recording, and forward over reverse."""
    f, x, weights = FUNCTIONS[name], tensor(POINT, True), tensor([1.0, -2.0, 0.5])
    (first,) = torch.autograd.grad(f(x), x, create_graph=True)
    (expected,) = torch.autograd.grad((first * weights).sum(), x)
    inner = record(lambda x: (torch.func.grad(f)(x) * weights).sum(), tensor(POINT))
    (gradient,) = derivatives.grad(inner.outputs[0], [inner.leaves["x"].node])
    found = evaluate(inner.with_outputs([gradient]), {"x": POINT})[0]
    np.testing.assert_allclose(found, expected.numpy(), rtol=1e-12, atol=1e-14)
    program = record(f, tensor(POINT))
    leaf = program.leaves["x"].node
    (slope,) = derivatives.grad(program.outputs[0], [leaf])
    rows = derivatives.jacobian(slope, leaf)
    hessian = evaluate(program.with_outputs([rows]), {"x": POINT})[0]
    np.testing.assert_allclose(np.asarray(weights.numpy() @ hessian), expected.numpy(), rtol=1e-12, atol=1e-14)


def test_forward_mode_moves_by_the_transposed_rule() -> None:
    program = record(FUNCTIONS["is wrong"], tensor(POINT))
    leaf = program.leaves["x"].node
    (moved,) = derivatives.jvp(program.outputs, [leaf], [program.builder.constant(1, (3,))])
    (gradient,) = derivatives.grad(program.outputs[0], [leaf])
    along, slopes = evaluate(program.with_outputs([moved, gradient]), {"x": POINT})
    assert along == pytest.approx(np.sum(slopes), rel=1e-14)


def test_the_other_side_of_a_branch_has_its_own_rule() -> None:
    program = record(FUNCTIONS["branches"], tensor(POINT))
    (gradient,) = derivatives.grad(program.outputs[0], [program.leaves["x"].node])
    for point in (POINT, [-1.0, -2.0, 0.5]):
        x = tensor(point, True)
        (expected,) = torch.autograd.grad(FUNCTIONS["branches"](x), x)
        found = evaluate(program.with_outputs([gradient]), {"x": point})[0]
        np.testing.assert_allclose(found, expected.numpy(), rtol=1e-14)


# --- verdicts -------------------------------------------------------------------------------------------------------


def line_of(text: str) -> int:
    lines, first = inspect.getsourcelines(WrongCube)
    return first + next(i for i, line in enumerate(lines) if text in line)


def test_a_wrong_backward_inside_is_told_with_its_line() -> None:
    report = gradcli.check(FUNCTIONS["is wrong"], at=tensor(POINT))
    whole, rule = report.checks
    assert (whole.kind, whole.verdict, rule.kind, rule.verdict) == ("callable", "DISAGREES", "vjp", "DISAGREES")
    assert "the rule of WrongCube is wrong" in whole.message
    assert rule.id == "vjp:WrongCube.backward by x" and rule.leaf == "WrongCube.x" and not rule.passed
    assert rule.file == __file__ and rule.line == line_of("ct * 2 * squared")
    assert rule.evidence["diagnosis"][0]["factor"] == "3/2"


@pytest.mark.parametrize("name", ["saves its operand", "saves its result", "several results", "Functions inside"])
def test_a_right_backward_inside_is_proved(name: str) -> None:
    report = gradcli.check(FUNCTIONS[name], at=tensor(POINT))
    assert {one.verdict for one in report.checks} <= {"PROVED", "CERTIFIED"}
    assert {one.kind for one in report.checks} == {"callable", "vjp"}
    assert all(one.passed and one.evidence["graph"] == "recorded" for one in report.checks)


def test_a_gradient_that_is_turned_on_purpose_disagrees() -> None:
    _, rule = gradcli.check(FUNCTIONS["turned"], at=tensor(POINT)).checks
    assert rule.verdict == "DISAGREES" and "sign" in rule.evidence["diagnosis"][0]["text"]


def test_a_constant_of_the_second_derivative_is_seen_by_the_oracles() -> None:
    """The saved intermediate is held by the rule, not by the function: the gradient of the gradient is wrong."""

    def penalty(x: Any) -> Any:
        return (torch.func.grad(FUNCTIONS["saves an intermediate"])(x) ** 2).sum()

    assert gradcli.check(penalty, at=tensor(POINT)).checks[0].verdict == "DISAGREES"


def test_programs_carry_their_rules() -> None:
    program = record(lambda x: (Cube.apply(x) + Cube.apply(2 * x) + Cube.apply(x[:2]).sum()).sum(), tensor(POINT))
    assert [rule.title for rule in program.rules] == ["Cube.backward", "Cube#2.backward"]
    assert [rule.output.type.shape for rule in program.rules] == [(3,), (2,)]
    found = {one.id: one.verdict for one in check_program(program).checks}
    assert found["gradient:x"] in ("PROVED", "CERTIFIED")
    assert {"vjp:Cube.backward by x", "vjp:Cube#2.backward by x"} <= found.keys()
    assert {one for key, one in found.items() if key.startswith("vjp")} <= {"PROVED", "CERTIFIED"}


def test_rules_on_the_side_that_is_not_taken_are_not_judged() -> None:
    def f(x: Any) -> Any:
        return Cube.apply(x).sum() if x.sum() > 0 else WrongCube.apply(x).sum()

    assert [rule.name for rule in record(f, tensor(POINT)).rules] == ["Cube"]


# --- what stays refused ---------------------------------------------------------------------------------------------


class NumpyForward(Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return torch.from_numpy(np.exp(x.detach().numpy()))

    @staticmethod
    def backward(ctx: Any, ct: Any) -> Any:
        return ct


class NumpyBackward(Cube):
    @staticmethod
    def backward(ctx: Any, ct: Any) -> Any:
        return ct * torch.from_numpy(3 * ctx.saved_tensors[0].numpy() ** 2)


class OnGradient(Cube):
    @staticmethod
    def backward(ctx: Any, ct: Any) -> Any:
        return ct if ct.sum() > 0 else -ct


class Silent(Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        x.mul_(2)
        return x + 1

    @staticmethod
    def backward(ctx: Any, ct: Any) -> Any:
        return 2 * ct


@pytest.mark.parametrize(
    ("owner", "text"),
    [
        (NumpyForward, r"NumpyForward.forward \(test_record_functions.py, line \d+\): numpy\(\)"),
        (NumpyBackward, r"NumpyBackward.backward \(test_record_functions.py, line \d+\): numpy\(\)"),
        (OnGradient, "OnGradient.backward .*branch on the incoming gradient"),
        (Silent, "changed in place"),
    ],
)
def test_what_leaves_the_recording_is_refused_by_name_and_line(owner: Any, text: str) -> None:
    with pytest.raises(RuntimeError, match=text):
        record(lambda x: owner.apply(x * 1).sum(), tensor(POINT))
    if owner is not NumpyForward:
        assert owner.apply(tensor(POINT, True) * 1).requires_grad  # the recording left nothing behind


def test_where_only_values_count_the_backward_does_not_run() -> None:
    program = record(lambda x: NumpyBackward.apply(x).sum(), tensor(POINT), values_only=True)
    assert evaluate(program, {"x": POINT}) == [pytest.approx(sum(v**3 for v in POINT))]
    assert not program.rules


def test_what_is_once_differentiable_has_no_second_derivative() -> None:
    class Once(Cube):
        @staticmethod
        @torch.autograd.function.once_differentiable
        def backward(ctx: Any, ct: Any) -> Any:
            return ct * 3 * ctx.saved_tensors[0] ** 2

    program = record(lambda x: Once.apply(x).sum(), tensor(POINT))
    leaf = program.leaves["x"].node
    (slope,) = derivatives.grad(program.outputs[0], [leaf])
    found = evaluate(program.with_outputs([slope, derivatives.jacobian(slope, leaf)]), {"x": POINT})
    np.testing.assert_allclose(found[0], [3 * v**2 for v in POINT])
    np.testing.assert_array_equal(found[1], np.zeros((3, 3)))


# --- vmap and checkpoints ---------------------------------------------------------------------------------------------


class Mapped(Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(x: Any) -> Any:
        return x**3

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx: Any, ct: Any) -> Any:
        return ct * 5 * ctx.saved_tensors[0]


def test_vmap_maps_a_function_that_says_so() -> None:
    x = tensor([[1.0, 2.0], [3.0, 4.0]], True)
    y = torch.func.vmap(lambda row: Mapped.apply(row).sum())(x)
    assert y.tolist() == [9.0, 91.0]
    y.sum().backward()
    assert x.grad.tolist() == [[5.0, 10.0], [15.0, 20.0]]
    slopes = torch.func.vmap(torch.func.grad(lambda row: Mapped.apply(row).sum()))(x.detach())
    assert slopes.tolist() == [[5.0, 10.0], [15.0, 20.0]]


def test_vmap_refuses_one_that_does_not() -> None:
    class Plain(Mapped):
        generate_vmap_rule = False

    with pytest.raises(RuntimeError, match="generate_vmap_rule"):
        torch.func.vmap(Plain.apply)(tensor([1.0]))
    with pytest.raises(RuntimeError, match="setup_context"):
        torch.func.vmap(Cube.apply)(tensor([1.0]))


@pytest.mark.parametrize("reentrant", [True, False])
def test_a_checkpoint_is_recorded_as_what_it_runs(reentrant: bool) -> None:
    from gradcli.eager.utils.checkpoint import checkpoint

    program = record(lambda x: checkpoint(torch.sin, x, use_reentrant=reentrant).sum(), tensor(POINT))
    assert evaluate(program, {"x": POINT}) == [pytest.approx(np.sin(POINT).sum())]
    assert not program.rules
