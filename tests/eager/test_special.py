"""What needs no PyTorch to be checked: forward mode, saved-tensor hooks, anomalies, complex numbers, reasons, memory."""

from __future__ import annotations

import gc
import sys
import warnings
import weakref
from typing import Any

import numpy as np
import pytest

import gradcli.eager as torch
from gradcli.eager._core.modes import state, sweeps
from gradcli.eager.autograd import Function, forward_ad, grad, gradcheck, gradgradcheck


def point(*values: float) -> Any:
    return torch.tensor(list(values), dtype=torch.float64, requires_grad=True)


# --- forward mode ------------------------------------------------------------------------------------------------


def test_tangents_follow_operations() -> None:
    x, t = torch.tensor([0.5, 2.0], dtype=torch.float64), torch.tensor([1.0, -1.0], dtype=torch.float64)
    with forward_ad.dual_level():
        y = forward_ad.make_dual(x, t)
        primal, tangent = forward_ad.unpack_dual((y.sin() * y).sum())
    expected = float(((np.cos(x.numpy()) * x.numpy() + np.sin(x.numpy())) * t.numpy()).sum())
    assert tangent.item() == pytest.approx(expected, rel=1e-14)
    assert not primal.requires_grad


def test_forward_over_reverse_is_the_hessian_times_a_vector() -> None:
    x, t = point(0.5, 2.0), torch.tensor([1.0, 0.0], dtype=torch.float64)
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(x, t)
        (g,) = grad((dual**3).prod(), dual, create_graph=True)
        product = forward_ad.unpack_dual(g).tangent
    a, b = 0.5, 2.0
    np.testing.assert_allclose(product.detach().numpy(), [6 * a * b**3, 9 * a**2 * b**2], rtol=1e-12)


def test_tangents_end_with_their_level() -> None:
    with forward_ad.dual_level():
        y = forward_ad.make_dual(torch.ones(2), torch.ones(2)) * 2
    assert forward_ad.unpack_dual(y).tangent is None
    with pytest.raises(RuntimeError, match="dual level"):
        forward_ad.make_dual(torch.ones(2), torch.ones(2))


# --- saved-tensor hooks -----------------------------------------------------------------------------------------------


@pytest.fixture
def packed() -> Any:
    """A list of what is packed and unpacked while the test runs."""
    seen: list[str] = []

    def pack(x: Any) -> Any:
        seen.append("pack")
        return x.detach().numpy().copy()

    def unpack(kept: Any) -> Any:
        seen.append("unpack")
        return torch.from_numpy(kept)

    before, watched = state.saved_hooks, sweeps.watched
    state.saved_hooks, sweeps.watched = ((pack, unpack),), True
    yield seen
    state.saved_hooks, sweeps.watched = before, watched


def test_what_is_packed_is_what_backward_reads(packed: list[str]) -> None:
    x = point(0.5, 2.0)
    y = (x * x).exp().sum()
    assert packed == ["pack"] * 3
    y.backward()
    assert packed.count("unpack") == 3
    np.testing.assert_allclose(x.grad.numpy(), 2 * x.detach().numpy() * np.exp(x.detach().numpy() ** 2), rtol=1e-14)


def test_second_derivatives_go_through_packed_values(packed: list[str]) -> None:
    x = point(0.5, 2.0)
    (g,) = grad((x**3).sum(), x, create_graph=True)
    assert g.requires_grad
    (h,) = grad(g.sum(), x)
    np.testing.assert_allclose(h.numpy(), 6 * x.detach().numpy(), rtol=1e-14)


# --- anomalies ----------------------------------------------------------------------------------------------------------


def test_anomaly_names_the_forward_line() -> None:
    x = torch.tensor(0.0, requires_grad=True)
    with warnings.catch_warnings(), torch.autograd.set_detect_anomaly(True):
        warnings.simplefilter("ignore")
        y = x.sqrt()
        line = sys._getframe().f_lineno - 1
        with pytest.raises(RuntimeError, match=f"SqrtBackward0 returned nan values.*line {line}"):
            (y * 0).backward()


def test_anomaly_warns_of_infinity_and_goes_on() -> None:
    x = torch.tensor(0.0, requires_grad=True)
    with torch.autograd.set_detect_anomaly(True), pytest.warns(UserWarning, match="infinite"):
        x.sqrt().backward()
    assert x.grad.item() == np.inf
    assert not torch.is_anomaly_enabled()


# --- complex numbers ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "function",
    [
        lambda z: (z * z).real, lambda z: z.abs(), lambda z: z.exp().imag, lambda z: (z / (z + 2)).abs(),
        lambda z: (z * z.conj()).real, lambda z: torch.view_as_real(z**3), lambda z: z.sin().abs(),
    ],
)  # fmt: skip
def test_complex_gradients_are_those_of_the_parts(function: Any) -> None:
    """dL/da + i dL/db, by differences in both parts."""
    start = np.array([0.4 + 0.7j, -1.2 + 0.3j])
    z = torch.tensor(start, requires_grad=True)
    function(z).sum().backward()

    def value(at: Any) -> float:
        return float(function(torch.tensor(at)).sum().item())

    for k in range(2):
        for step, part in ((1e-6, np.real), (1e-6j, np.imag)):
            one, other = start.copy(), start.copy()
            one[k] += step
            other[k] -= step
            slope = (value(one) - value(other)) / 2e-6
            assert part(z.grad.numpy()[k]) == pytest.approx(slope, abs=1e-7)


def test_half_precision_computes() -> None:
    x = torch.tensor([1.5, 2.0], dtype=torch.float16, requires_grad=True)
    (x * x).sum().backward()
    assert x.grad.dtype is torch.float16
    assert x.grad.tolist() == [3.0, 4.0]


# --- reasons of gradcheck ------------------------------------------------------------------------------------------------


class Wrong(Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x * x

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g


@pytest.mark.parametrize(
    ("function", "values", "reason"),
    [
        (Wrong.apply, (1.0, 2.0), "backward rule is wrong"),
        (lambda x: x.floor(), (1.0, 2.5), "discontinuity"),
        (lambda x: x.relu(), (0.0, 2.0), "kink"),
        (lambda x: x * torch.rand(2, dtype=torch.float64), (1.0, 2.0), "nondeterminism"),
    ],
)
def test_gradcheck_tells_the_reason(function: Any, values: tuple[float, ...], reason: str) -> None:
    with pytest.raises(RuntimeError, match=reason):
        gradcheck(function, point(*values))


def test_gradcheck_of_forward_mode_and_of_both() -> None:
    assert gradcheck(lambda x: x.sin() * x, point(0.3, 0.8), check_forward_ad=True)
    assert gradgradcheck(lambda x: x.exp() * x, point(0.3, 0.8), check_fwd_over_rev=True)


# --- lines, depth and memory -------------------------------------------------------------------------------------------


def test_nodes_know_their_lines_without_a_source_file() -> None:
    names: dict[str, Any] = {"torch": torch}
    exec(compile("x = torch.ones(2, requires_grad=True)\ny = x * 2\nz = y.sin()", "<text>", "exec"), names)
    from gradcli.eager._core.modes import line_of

    assert [line_of(names[name].grad_fn.place) for name in "yz"] == [("<text>", 2), ("<text>", 3)]


@pytest.mark.deep
def test_a_million_nodes_without_recursion() -> None:
    x = torch.tensor(1.0, requires_grad=True)
    y = x
    for _ in range(1_000_000):
        y = y + 1
    y.backward()
    assert x.grad.item() == 1.0
    node = weakref.ref(y.grad_fn)
    del y
    assert node() is None


@pytest.mark.parametrize(
    "operation", ["y * y", "y.exp()", "y.softmax(0)", "y @ y", "y[1:] * 2", "y.sort()[0]", "torch.stack([y, y])"]
)
def test_what_backward_saved_is_gone_without_the_collector(operation: str) -> None:
    gc.collect()
    gc.disable()
    try:
        x = torch.ones(50, requires_grad=True)
        y = x * 3
        z = eval(operation, {"torch": torch}, {"y": y})
        z.sum().backward()
        held = [weakref.ref(one) for one in (y, z, z.grad_fn)]
        del y, z
        assert [one() for one in held] == [None] * 3
    finally:
        gc.enable()


def test_threads_have_flags_of_their_own_and_no_warnings() -> None:
    import threading

    found: list[Any] = []

    def work() -> None:
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always")
            y = torch.tensor([1.0], requires_grad=True) / 0
            found.append((y.requires_grad, y.item(), len(heard)))

    with torch.no_grad():
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert found == [(True, np.inf, 0)]
