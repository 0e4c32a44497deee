"""Optimizers by their formulas, on functions whose steps can be written down; schedules by theirs."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import gradcli.eager as torch
from gradcli.eager import optim


def point(*values: float) -> Any:
    return torch.tensor(values, dtype=torch.float64, requires_grad=True)


def steps(x: Any, optimizer: Any, count: int, loss: Any = lambda x: (x * x).sum() / 2) -> list[np.ndarray[Any, Any]]:
    seen = []
    for _ in range(count):
        optimizer.zero_grad()
        loss(x).backward()
        optimizer.step()
        seen.append(x.detach().numpy().copy())
    return seen


def test_gradient_descent_shrinks_by_one_minus_lr() -> None:
    found = steps(x := point(1.0, -4.0), optim.SGD([x], lr=0.25), 3)
    np.testing.assert_allclose(found, [[0.75**k, -4 * 0.75**k] for k in (1, 2, 3)], rtol=1e-15)


def test_momentum_follows_its_recursion() -> None:
    found = steps(x := point(1.0), optim.SGD([x], lr=0.1, momentum=0.9, dampening=0.2), 20)
    value, velocity = 1.0, None
    for one in found:
        velocity = value if velocity is None else 0.9 * velocity + 0.8 * value
        value -= 0.1 * velocity
        np.testing.assert_allclose(one, [value], rtol=1e-12)


def test_nesterov_looks_ahead() -> None:
    found = steps(x := point(1.0), optim.SGD([x], lr=0.1, momentum=0.9, nesterov=True), 10)
    value, velocity = 1.0, 0.0
    for one in found:
        velocity = 0.9 * velocity + value
        value -= 0.1 * (value + 0.9 * velocity)
        np.testing.assert_allclose(one, [value], rtol=1e-12)


def test_first_step_of_adam_is_the_learning_rate() -> None:
    for factor in (1e-3, 1.0, 1e3):
        (found,) = steps(x := point(2.0, -3.0), optim.Adam([x], lr=0.01), 1, lambda x, f=factor: f * (x * x).sum())
        np.testing.assert_allclose(found, [1.99, -2.99], rtol=1e-7)


def test_decoupled_decay_does_not_pass_through_the_averages() -> None:
    (found,) = steps(x := point(2.0), optim.AdamW([x], lr=0.1, weight_decay=0.5), 1, lambda x: (x * 0).sum())
    np.testing.assert_allclose(found, [2.0 * (1 - 0.05)])


def test_adagrad_and_rmsprop_follow_their_sums() -> None:
    found = steps(x := point(3.0), optim.Adagrad([x], lr=0.5), 5)
    value, total = 3.0, 0.0
    for one in found:
        total += value**2
        value -= 0.5 * value / (math.sqrt(total) + 1e-10)
        np.testing.assert_allclose(one, [value], rtol=1e-12)
    found = steps(x := point(3.0), optim.RMSprop([x], lr=0.1, alpha=0.8), 5)
    value, total = 3.0, 0.0
    for one in found:
        total = 0.8 * total + 0.2 * value**2
        value -= 0.1 * value / (math.sqrt(total) + 1e-8)
        np.testing.assert_allclose(one, [value], rtol=1e-12)


@pytest.mark.parametrize("rule", ["SGD", "Adam", "AdamW", "Adagrad", "RMSprop", "Adadelta"])
def test_every_rule_goes_down_and_remembers(rule: str) -> None:
    x = point(1.0, -2.0)
    first = getattr(optim, rule)([x], lr=0.1)
    losses = [float((one**2).sum()) for one in steps(x, first, 60)]
    assert losses[-1] < losses[0]
    middle = x.detach().clone()
    again = getattr(optim, rule)([x], lr=9.0)
    again.load_state_dict(first.state_dict())
    here = steps(x, again, 3)
    x.data = middle
    assert np.array_equal(here, steps(x, first, 3))


def test_parameters_without_gradient_stay() -> None:
    x, y = point(1.0), point(1.0)
    optimizer = optim.SGD([{"params": [x]}, {"params": [y], "lr": 10.0}], lr=0.1)
    (x * 2).sum().backward()
    optimizer.step()
    assert x.tolist() == [0.8] and y.tolist() == [1.0]


def test_a_step_counts_as_a_change_in_place() -> None:
    x = point(1.0)
    y = (x * x).sum()
    x.grad = torch.ones(1, dtype=torch.float64)
    optim.SGD([x], lr=0.1).step()
    with pytest.raises(RuntimeError, match="version 1"):
        y.backward()


def test_zero_grad_forgets_or_clears() -> None:
    x = point(1.0)
    optimizer = optim.SGD([x], lr=0.1)
    (x * 2).sum().backward()
    held = x.grad
    optimizer.zero_grad(set_to_none=False)
    assert held.tolist() == [0.0] and x.grad is held
    optimizer.zero_grad()
    assert x.grad is None


def test_closure_is_run_with_gradients_on() -> None:
    x = point(3.0)
    optimizer = optim.SGD([x], lr=0.1)

    def closure() -> Any:
        optimizer.zero_grad()
        loss = (x * x).sum()
        loss.backward()
        return loss

    with torch.no_grad():
        assert optimizer.step(closure).item() == 9.0
    np.testing.assert_allclose(x.tolist(), [2.4])


@pytest.mark.parametrize(
    ("make", "rate"),
    [
        (lambda o: optim.lr_scheduler.StepLR(o, 3, 0.5), lambda e: 0.5 ** (e // 3)),
        (lambda o: optim.lr_scheduler.ExponentialLR(o, 0.9), lambda e: 0.9**e),
        (lambda o: optim.lr_scheduler.LambdaLR(o, lambda e: 1 / (e + 1)), lambda e: 1 / (e + 1)),
        (
            lambda o: optim.lr_scheduler.CosineAnnealingLR(o, 10, 0.1),
            lambda e: 0.1 + 0.9 * (1 + math.cos(math.pi * e / 10)) / 2,
        ),
    ],
)
def test_schedules_follow_their_formulas(make: Any, rate: Any) -> None:
    optimizer = optim.SGD([point(1.0)], lr=1.0)
    schedule = make(optimizer)
    for epoch in range(1, 11):
        optimizer.step()
        schedule.step()
        assert optimizer.param_groups[0]["lr"] == pytest.approx(rate(epoch), rel=1e-12)
