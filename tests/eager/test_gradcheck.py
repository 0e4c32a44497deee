"""gradcheck from the graph of a function gives what calls give, and calls wherever the graph is not the function."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gradcli.eager as torch
from gradcli.eager.autograd import Function, gradcheck, gradgradcheck
from gradcli.eager.autograd.gradcheck import GradcheckError, _by_calls, central_differences

A = torch.tensor(np.random.default_rng(2).standard_normal((20, 30)))

FUNCTIONS: dict[str, Any] = {
    "separable": lambda x: (torch.exp(-x) * torch.sin(x)).sum(),
    "chain": lambda x: torch.sin(x[1:] * x[:-1]).sum(),
    "entries": lambda x: torch.tanh(x) ** 2,
    "neighbours": lambda x: x[1:] * x[:-1],
    "coupled": lambda x: torch.logsumexp(x, 0),
    "sums": lambda x: torch.log(torch.exp(x).sum()) * torch.sin(x[::2]).sum() / (x[1:] * x[:-1]).mean(),
    "sum and entry": lambda x: (x**2).sum() * x[3],
    "sum of sums": lambda x: ((x.sum() * x) ** 2).sum(),
    "matrix": lambda x: torch.tanh(A @ x),
    "branch": lambda x: (x**2).sum() if x.sum() > 0 else (x**3).sum(),
    "reshaped": lambda x: x.reshape(5, 6).prod(1).sum() / 3,
    "gathered": lambda x: x[torch.tensor([3, 3, 0, 29])] ** 2,
}


def point(size: int = 30) -> Any:
    return torch.tensor(np.random.default_rng(1).uniform(0.3, 1.5, size), requires_grad=True)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_differences_are_those_of_calls(name: str) -> None:
    f, x = FUNCTIONS[name], point()
    found = central_differences(f, x, 1e-6)
    assert found is not None
    want = _by_calls(f, x, 1e-6, -1e-6)
    assert found.shape == want.shape
    assert np.allclose(found, want, rtol=1e-8, atol=1e-7)
    assert gradcheck(f, (x,))


class WrongInOne(Function):
    """x**2 with a backward that is wrong in one entry."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x**2

    @staticmethod
    def backward(ctx: Any, ct: Any) -> Any:
        (x,) = ctx.saved_tensors
        slope = 2 * x
        off = torch.zeros(x.shape, dtype=x.dtype)
        off[17] = 0.01
        return ct * (slope + off)


@pytest.mark.parametrize("size", [30, 3000])
def test_one_wrong_entry_is_found(size: int) -> None:
    assert central_differences(lambda x: WrongInOne.apply(x).sum(), point(size), 1e-6) is not None
    with pytest.raises(GradcheckError, match="Jacobian mismatch"):
        gradcheck(lambda x: WrongInOne.apply(x).sum(), (point(size),))


class State:
    """A function whose values depend on how often it was called."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, x: Any) -> Any:
        self.calls += 1
        return (x * (1 + self.calls % 5)).sum()


def reads_entries(x: Any) -> Any:
    return x.sum() * float(x.detach().numpy()[0] > 0)


def narrow(x: Any) -> Any:
    return (x.float() ** 2).sum().double()


def by_numpy(x: Any) -> Any:
    return (x * torch.tensor(np.asarray(x.detach().numpy()) > 0.5)).sum()


@pytest.mark.parametrize("f", [State(), reads_entries, narrow, by_numpy], ids=["state", "entries", "narrow", "numpy"])
def test_where_the_graph_is_not_the_function_there_is_no_answer(f: Any) -> None:
    assert central_differences(f, point(), 1e-6) is None


def test_functions_that_cannot_be_recorded_are_still_checked() -> None:
    assert gradcheck(reads_entries, (point(),))
    with pytest.raises(GradcheckError):
        gradcheck(State(), (point(),))


def test_a_pattern_that_lacks_a_pair_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Differences that miss a way from an entry to the result are refused: the function itself is asked."""
    from gradcli.execution.sparsity import patterns
    from gradcli.execution.sparsity.flows import Flow, of_pairs

    right = patterns.Walk.through

    def wrong(walk: Any, node: Any, flows: list[Any]) -> Flow | None:
        flow = right(walk, node, flows)
        if flow is None or node.primitive.name not in ("mul", "power", "sin"):
            return flow
        rows, columns = flow.row_of_each(), flow.columns
        kept = ~((rows == 7) & (columns == 7))
        return of_pairs(rows[kept], columns[kept], flow.rows)

    monkeypatch.setattr(patterns.Walk, "through", wrong)
    for name in ("separable", "chain", "entries", "neighbours"):
        assert central_differences(FUNCTIONS[name], point(), 1e-6) is None
        assert gradcheck(FUNCTIONS[name], (point(),))


def test_other_inputs_stay_where_they_are() -> None:
    x, w = point(), torch.tensor(np.linspace(1, 2, 30), requires_grad=True)
    assert gradcheck(lambda x, w: (x * w).sin().sum(), (x, w))
    assert gradcheck(lambda x, w: [(x * w).sin(), x[0] * w], (x, w))


@pytest.mark.parametrize("scale", [1.0, -0.25])
def test_the_rounding_of_a_long_sum_is_no_mismatch(scale: float) -> None:
    assert gradcheck(lambda x: 3 - (torch.exp(-x) * torch.sin(x)).sum() * scale / 2, (point(1_000_000),))


class WithoutConjugate(Function):
    """z**2 with the gradient that PyTorch's convention does not have."""

    @staticmethod
    def forward(ctx: Any, z: Any) -> Any:
        ctx.save_for_backward(z)
        return z * z

    @staticmethod
    def backward(ctx: Any, ct: Any) -> Any:
        (z,) = ctx.saved_tensors
        return ct * 2 * z


@pytest.mark.parametrize(
    "f", [torch.abs, torch.angle, torch.exp, lambda z: z * z, lambda z: z.real * z.imag, torch.view_as_real]
)
def test_gradients_of_complex_numbers_are_checked_in_both_parts(f: Any) -> None:
    z = torch.tensor([1 + 2j, -0.3 + 0.4j], dtype=torch.complex128, requires_grad=True)
    assert gradcheck(f, z)
    assert gradgradcheck(f, z)


def test_a_wrong_gradient_of_complex_results_is_an_error() -> None:
    z = torch.tensor([1 + 2j, -0.3 + 0.4j], dtype=torch.complex128, requires_grad=True)
    with pytest.raises(GradcheckError, match="Jacobian mismatch"):
        gradcheck(WithoutConjugate.apply, z)


def test_complex_tangents_are_checked() -> None:
    z = torch.tensor([1 + 2j, -0.3 + 0.4j], dtype=torch.complex128, requires_grad=True)
    assert gradcheck(torch.exp, z, check_forward_ad=True)


def test_a_check_that_compares_nothing_is_refused() -> None:
    x = torch.tensor([1.0, 2.0], dtype=torch.float64, requires_grad=True)
    with pytest.raises(AssertionError, match="check_forward_ad or check_backward_ad"):
        torch.autograd.gradcheck(lambda t: t.detach() * 2, (x,), check_backward_ad=False)
    with pytest.raises(ValueError, match="at least one input"):
        torch.autograd.gradcheck(lambda t: t * 2, (x.detach(),))
