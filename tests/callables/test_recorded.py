"""Functions of gradcli's own tensors: their graph is recorded and judged as rigorously as a script, or not at all.

What the recording does not say truly (state, entries that are read, a backward of its own) is judged by values.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gradcli
import gradcli.eager as torch
from gradcli import check_callable
from gradcli.testing import assert_gradient

X = np.array([0.5, -1.25, 2.0])
W = torch.tensor([[0.1, 0.2, -0.3], [0.3, -0.4, 0.5]], dtype=torch.float64)


def only(report: Any) -> Any:
    (found,) = report.checks
    return found


class Cube(torch.autograd.Function):
    """The cube, with its slope."""

    factor = 3

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx: Any, ct: Any) -> Any:
        (x,) = ctx.saved_tensors
        return ct * 3 * x**2


def with_backward(backward: Any, base: type = Cube) -> Any:
    return type("Made", (base,), {"backward": staticmethod(backward)})


class Scaled(torch.autograd.Function):
    """sin(x)*k, with a context of its own and an argument that is no tensor."""

    @staticmethod
    def forward(x: Any, k: int) -> Any:
        return torch.sin(x) * k

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        x, ctx.k = inputs
        ctx.save_for_backward(x)

    @staticmethod
    def backward(ctx: Any, ct: Any) -> Any:
        (x,) = ctx.saved_tensors
        return ct * torch.cos(x) * ctx.k, None


PROVED: list[tuple[str, Any, Any]] = [
    ("a loss", lambda x: torch.sum(torch.tanh(x) * x), X),
    ("several outputs", lambda x: (torch.sin(x), x.sum() ** 2), X),
    ("an array", lambda x: W @ torch.tanh(x), X),
    ("a branch on data", lambda x: (x**3).sum() if torch.sum(x) > 0 else x.sum(), X),
    ("a layer", torch.nn.Linear(3, 2).double(), X),
    ("a tensor from outside", lambda x: torch.softmax(W @ x, 0)[0], X),
    ("a Function", Cube, X),
    ("a Function with a context of its own", Scaled, (X, 3)),
]


INF = float("inf")
MASK = torch.tensor([True, False, False])
BOUNDED: dict[str, Any] = {
    "relu": lambda x: torch.relu(x).sum(),
    "two bounds": lambda x: x.clamp(0, 1).sum(),
    "clamp min": lambda x: (x.clamp(min=0) * x).sum(),
    "clamp max": lambda x: x.clamp(max=1).exp().sum(),
    "clamp_min": lambda x: torch.clamp_min(x, 0.0).sum(),
    "clip": lambda x: torch.clip(x, min=0.0).sum(),
    "an infinite bound": lambda x: x.clamp(0, INF).sum() + x.clamp(-INF, 1).sum(),
    "a tensor as the bound": lambda x: x.clamp(min=torch.zeros(3, dtype=torch.float64)).sum(),
    "entries as the bound": lambda x: x.clamp(min=x.flip(0)).sum() + x.clamp(max=x.flip(0) ** 2).sum(),
    "in place": lambda x: x.clone().clamp_(min=0).clamp_(max=1).sum(),
    "hardtanh": lambda x: torch.nn.functional.hardtanh(x).sum(),
    "relu6": lambda x: torch.nn.functional.relu6(x).sum(),
    "maximum": lambda x: torch.maximum(x, torch.zeros(3, dtype=torch.float64)).sum(),
    "softplus by hand": lambda x: (x.clamp(min=0) + torch.log1p(torch.exp(-x.abs()))).sum(),
    "normalize": lambda x: torch.nn.functional.normalize(x, dim=0)[0],
    "clipped by its norm": lambda x: (x * (1.0 / (x.norm() + 1e-6)).clamp(max=1.0)).sum(),
    "a masked softmax": lambda x: torch.softmax(x.masked_fill(MASK, -INF), 0)[1],
}


@pytest.mark.parametrize("f", BOUNDED.values(), ids=BOUNDED)
def test_functions_with_bounds_are_proved(f: Any) -> None:
    verdict = only(gradcli.check(f, at=X)).verdict
    assert verdict == ("CERTIFIED" if f is BOUNDED["a masked softmax"] else "PROVED")  # no normal form has infinities


@pytest.mark.parametrize("bound", [0.5, -1.25, 2.0])
def test_a_recorded_bound_counts_where_it_is_met(bound: float) -> None:
    """The gradient of what is recorded is that of the tensors, also where an entry equals the bound."""
    for f in (lambda x: (x.clamp(min=bound) * x).sum(), lambda x: (x.clamp(max=bound) * x).sum()):
        x = torch.tensor(X, requires_grad=True)
        f(x).backward()
        assert torch.func.grad(f)(torch.tensor(X)).tolist() == x.grad.tolist()
        program = torch.record(f, torch.tensor(X))
        assert "inf" not in str([node.params for node in program.nodes()])


@pytest.mark.parametrize(("name", "f", "at"), PROVED, ids=[row[0] for row in PROVED])
def test_a_right_gradient_is_proved_or_certified(name: str, f: Any, at: Any) -> None:
    found = only(gradcli.check(f, at=at))
    assert found.verdict in ("PROVED", "CERTIFIED") and found.passed and found.kind == "callable"
    assert found.evidence["graph"] == "recorded" and "basis" not in found.evidence


@pytest.mark.parametrize("library", ["torch", "jax.numpy"])
def test_a_gradient_written_for_tensors_is_recorded(library: str) -> None:
    xp = pytest.importorskip(library)
    x, y = (xp.asarray(one, dtype=xp.float32) for one in ([0.25, -0.75, 1.25], [1.0, 2.0, 0.5]))

    def f(x: Any, y: Any) -> Any:
        return (xp.tanh(x) * y).sum()

    def df(x: Any, y: Any) -> Any:
        return (1 - xp.tanh(x) ** 2) * y, xp.tanh(x)

    def wrong(x: Any, y: Any) -> Any:
        return (1 - xp.tanh(x)) * y, xp.tanh(x)

    assert [one.verdict for one in gradcli.check(f, df, at=(x, y)).checks] == ["PROVED", "PROVED"]
    assert [one.verdict for one in gradcli.check(f, df, at=(x, y), wrt=["y"]).checks] == ["PROVED"]
    assert only(gradcli.check(lambda x: (x**2).sum(), lambda x: 2 * x, at=(x,))).verdict == "PROVED"
    if library == "torch":
        assert only(gradcli.check(lambda x: (x**2).sum(), lambda x: x.mul_(2), at=(x.clone(),))).verdict == "PROVED"
    first, second = gradcli.check(f, wrong, at=(x, y)).checks
    assert (first.verdict, second.verdict) == ("DISAGREES", "PROVED") and "1 - t" in str(first.evidence["diagnosis"])


WRONG: list[tuple[str, Any, str]] = [
    ("power factor", lambda ctx, ct: ct * 2 * ctx.saved_tensors[0] ** 2, "3/2"),
    ("no cotangent", lambda ctx, ct: 3 * ctx.saved_tensors[0] ** 2, "mistake"),
    ("sign", lambda ctx, ct: -3 * ct * ctx.saved_tensors[0] ** 2, "sign"),
    ("one part in 1e12", lambda ctx, ct: (3 + 3e-12) * ct * ctx.saved_tensors[0] ** 2, ""),
]


@pytest.mark.parametrize(("name", "backward", "text"), WRONG, ids=[row[0] for row in WRONG])
def test_a_wrong_backward_is_refuted_exactly(name: str, backward: Any, text: str) -> None:
    found = only(check_callable(with_backward(backward), at=X))
    assert found.verdict == "DISAGREES" and "numerical" not in found.message and not found.passed
    assert text in found.evidence["diagnosis"][0]["text"]
    assert "exact" in found.evidence["counterexample"] and "ct" in found.evidence["at"]


def test_rough_points_name_the_operation() -> None:
    kink = only(check_callable(lambda x: torch.relu(x).sum(), at=np.array([0.0, 1.0]), allow_kink=True))
    assert kink.verdict == "KINK" and kink.passed and kink.evidence["operation"] == "relu"
    assert only(check_callable(lambda x: torch.sqrt(x).sum(), at=np.array([0.0, 1.0]))).verdict == "BOUNDARY"


def test_what_is_detached_is_held() -> None:
    report = check_callable(lambda x: (torch.exp(x) * torch.sin(x).detach()).sum(), at=X)
    assert only(report).verdict == "PROVED"
    assert "detaches" in report.diagnostics[0].message


class Counter:
    """A function that answers otherwise at each call."""

    calls = 0

    def __call__(self, x: Any) -> Any:
        self.calls += 1
        return torch.sum(torch.sin(x)) * (1 + self.calls * 1e-3)


def through_numpy(x: Any) -> Any:
    return torch.sum(x * float(x.detach()[0]))


BY_VALUES: list[tuple[str, Any, str, str]] = [
    ("an entry is read", lambda x: torch.sum(torch.exp(x)) if x[0].item() > 0 else x.sum(), "AGREES", "item"),
    ("a number is taken out", through_numpy, "DISAGREES", "RuntimeError"),
    ("random numbers", lambda x: torch.sum(x * torch.rand(3, dtype=torch.float64)), "INCONCLUSIVE", "random"),
    ("state", Counter(), "INCONCLUSIVE", "does not reproduce its values"),
    (
        "a Function inside that leaves the tensors",
        lambda x: (
            with_backward(lambda ctx, ct: ct * torch.tensor(3 * ctx.saved_tensors[0].detach().numpy() ** 2))
            .apply(x)
            .sum()
        ),
        "AGREES",
        "Made.backward",
    ),
    (
        "a wrong Function inside that leaves the tensors",
        lambda x: (
            with_backward(lambda ctx, ct: ct * torch.tensor(2 * ctx.saved_tensors[0].detach().numpy() ** 2))
            .apply(x)
            .sum()
        ),
        "DISAGREES",
        "Made.backward",
    ),
]


@pytest.mark.parametrize(("name", "f", "verdict", "note"), BY_VALUES, ids=[row[0] for row in BY_VALUES])
def test_what_cannot_be_recorded_is_judged_by_its_values(name: str, f: Any, verdict: str, note: str) -> None:
    report = check_callable(f, at=torch.tensor(X, dtype=torch.float64), names=["x"])
    assert only(report).verdict == verdict and "graph" not in only(report).evidence
    assert any("checked by its values alone" in one.message and note in one.message for one in report.diagnostics)


def test_a_backward_that_differs_when_it_is_recorded_is_judged_by_values() -> None:
    def backward(ctx: Any, ct: Any) -> Any:
        (x,) = ctx.saved_tensors
        return ct * (2 if type(x) is torch.Tensor else 3) * x**2

    report = check_callable(with_backward(backward), at=X)
    assert only(report).verdict == "DISAGREES" and only(report).evidence["basis"] == "numerical"


def test_a_hook_that_changes_a_gradient_is_seen() -> None:
    def f(x: Any) -> Any:
        y = torch.sin(x)
        if y.requires_grad:
            y.register_hook(lambda g: 2 * g)
        return y.sum()

    found = only(check_callable(f, at=torch.tensor(X, dtype=torch.float64)))
    assert found.verdict == "DISAGREES" and found.evidence["basis"] == "numerical"


def test_no_grad_inside_is_no_proof() -> None:
    def f(x: Any) -> Any:
        with torch.no_grad():
            scale = torch.exp(x)
        return (scale * x).sum()

    found = only(check_callable(f, at=torch.tensor(X, dtype=torch.float64)))
    assert found.verdict == "DISAGREES" and found.evidence["basis"] == "numerical"


def test_a_tolerance_and_float32_are_matters_of_values() -> None:
    assert only(check_callable(lambda x: torch.sum(torch.exp(x)), at=X, rtol=1e-6)).verdict == "AGREES"
    single = only(check_callable(lambda x: torch.sum(torch.exp(x)), at=torch.tensor([0.5, 1.0])))
    assert single.verdict == "AGREES" and single.evidence["basis"] == "numerical"


def test_a_layer_in_float32_is_judged_in_float32() -> None:
    report = check_callable(torch.nn.Linear(3, 2), at=X)
    assert only(report).verdict == "AGREES" and "float32" in report.diagnostics[0].message


def test_methods_alone_are_enough_to_know_the_library() -> None:
    assert only(check_callable(lambda x: (x * x).sum(), at=X)).verdict == "PROVED"


def test_in_a_test_it_is_proved_in_silence() -> None:
    assert_gradient(lambda x: torch.sum(x**2), at=X, require="certified")
    with pytest.raises(AssertionError, match="exact"):
        assert_gradient(with_backward(lambda ctx, ct: ct), at=X)


def test_what_is_no_function_is_an_error() -> None:
    for wrong in (3, None, [1.0]):
        with pytest.raises(gradcli.GradcliError, match="GC133"):
            gradcli.check(wrong, at=1.0)


def test_an_argument_may_be_called_as_cotangents_are() -> None:
    class Weighted(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, ct: Any, x: Any) -> Any:
            ctx.save_for_backward(ct, x)
            return ct * x**2

        @staticmethod
        def backward(ctx: Any, sent: Any) -> Any:
            ct, x = ctx.saved_tensors
            return sent * x**2, 2 * sent * ct * x

    at = {"ct": np.array([2.0, 3.0]), "x": np.array([1.5, 0.5])}
    tensors = {name: torch.tensor(value, dtype=torch.float64) for name, value in at.items()}
    by_vjp = check_callable(lambda ct, x: ct * x, vjp=lambda ct, x, sent: (sent * x, sent * ct), at=at)
    for report in (check_callable(Weighted.apply, at=tensors), by_vjp):
        assert [one.verdict for one in report.checks] == ["PROVED", "PROVED"]
