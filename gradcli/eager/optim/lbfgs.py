"""L-BFGS, the quasi-Newton method of limited memory, with a line search for the strong Wolfe conditions.

The direction comes from the last steps and changes of the gradient (Nocedal, 1980: two loops). Each call of `step`
makes up to `max_iter` iterations. The line search brackets, then zooms (Nocedal and Wright, "Numerical Optimization",
algorithms 3.5 and 3.6), with cubic interpolation and the usual safeguards: steps grow tenfold at most, and stay a tenth
of the bracket away from its ends where progress stalls.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

from gradcli.eager._core import events
from gradcli.eager._core.modes import enable_grad, no_grad, place
from gradcli.eager._core.tensor import Tensor
from gradcli.eager.optim.optimizer import Optimizer

Array = Any
History = deque[tuple[Array, Array]]  # steps, and the changes of the gradient along them

# the constants of sufficient decrease and of curvature, and the most evaluations of a line search
_LOWER, _FLATTER, _MOST = 1e-4, 0.9, 25


class LBFGS(Optimizer):
    """The quasi-Newton method of limited memory; `step(closure)` needs a closure that computes loss and gradients.

    ValueError for several groups; RuntimeError for another line search than "strong_wolfe".
    """

    hyperparameters = (
        "lr=1, max_iter=20, max_eval=None, tolerance_grad=1e-7, tolerance_change=1e-9, history_size=100, "
        "line_search_fn=None"
    )

    def _start(self, params: Iterable[Any], **defaults: Any) -> None:
        if defaults["max_eval"] is None:
            defaults["max_eval"] = defaults["max_iter"] * 5 // 4
        super()._start(params, **defaults)
        if len(self.param_groups) != 1:
            raise ValueError("LBFGS doesn't support per-parameter options (parameter groups)")
        self._params = self.param_groups[0]["params"]

    def _move_by(self, distance: float, direction: Array) -> None:
        start = 0
        for x in self._params:
            array = x._array
            array += distance * direction[start : start + array.size].reshape(array.shape)
            x._counter.bump(place())
            start += array.size

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Run up to `max_iter` iterations, and return the loss before them."""
        if closure is None:
            raise TypeError("LBFGS.step() needs a closure that computes the loss and its gradients")
        self._steps += 1
        events.report("stepping", self)
        with no_grad():
            loss = self._iterate(closure)
        events.report("stepped", self, self._params)
        return loss

    def _loss_and_gradient(self, closure: Callable[[], Any]) -> tuple[Any, Array]:
        """The loss at the present parameters, and its gradient."""
        with enable_grad():
            loss = closure()
        parts = [(np.zeros_like(x._array) if x._grad is None else x._grad._array).ravel() for x in self._params]
        return loss, np.concatenate(parts)

    def _along(self, closure: Callable[[], Any], direction: Array) -> Callable[[float], _Point]:
        """The loss along a direction from the present parameters, which each evaluation restores."""
        saved = [x._array.copy() for x in self._params]

        def evaluate(at: float) -> _Point:
            self._move_by(at, direction)
            loss, gradient = self._loss_and_gradient(closure)
            for x, array in zip(self._params, saved, strict=True):
                x._array[...] = array
            return _Point(at, loss.item(), gradient, float(gradient @ direction))

        return evaluate

    def _iterate(self, closure: Callable[[], Any]) -> Any:
        group, state = self.param_groups[0], self.state[self._params[0]]
        tolerance, search = group["tolerance_change"], group["line_search_fn"]
        if search not in (None, "strong_wolfe"):
            raise RuntimeError("only 'strong_wolfe' is supported")
        first, grad = self._loss_and_gradient(closure)
        loss, calls = first.item(), 1
        evaluations = state.get("func_evals", 0)
        state.update(func_evals=evaluations + 1, n_iter=state.get("n_iter", 0))
        if np.abs(grad).max(initial=0) <= group["tolerance_grad"]:
            return first
        last: Any = (state[name]._array if name in state else None for name in ("d", "prev_flat_grad"))
        direction, before = last
        history: History = deque(state.get("history", ()), group["history_size"])
        length, before_loss, scale = state.get("t"), state.get("prev_loss"), state.get("H_diag", 1.0)
        for i in range(group["max_iter"]):
            state["n_iter"] += 1
            if state["n_iter"] == 1:
                direction, scale = -grad, 1.0
            else:
                change, step = grad - before, direction * length
                curvature = float(change @ step)
                if curvature > 1e-10:
                    history.append((step, change))
                    scale = curvature / float(change @ change)
                direction = _two_loops(grad, history, scale)
            length = group["lr"] if state["n_iter"] > 1 else min(1.0, 1.0 / float(np.abs(grad).sum())) * group["lr"]
            before, before_loss = grad.copy(), loss
            slope = float(grad @ direction)
            if slope > -tolerance:
                break
            if search is None:
                self._move_by(length, direction)
                if i != group["max_iter"] - 1:
                    value, grad = self._loss_and_gradient(closure)
                    loss, calls = value.item(), calls + 1
            else:
                start, reach = _Point(0.0, loss, grad, slope), float(np.abs(direction).max(initial=0))
                chosen, evaluated = _strong_wolfe(self._along(closure, direction), start, length, reach, tolerance)
                loss, grad, length, calls = chosen.value, chosen.gradient, chosen.at, calls + evaluated
                self._move_by(length, direction)
            small = np.abs(grad).max(initial=0) <= group["tolerance_grad"]
            still = np.abs(direction * length).max(initial=0) <= tolerance
            if calls >= group["max_eval"] or small or still or abs(loss - before_loss) < tolerance:
                break
        state.update(d=Tensor(direction), t=length, history=list(history), H_diag=scale)
        state.update(func_evals=evaluations + calls, prev_flat_grad=Tensor(before), prev_loss=before_loss)
        return first


def _two_loops(grad: Array, history: History, scale: float) -> Array:
    """The direction: minus the gradient times the inverse of the curvature that the last steps show."""
    direction, shares = -grad, []
    rows = [(step, change, 1.0 / float(change @ step)) for step, change in history]
    for step, change, inverse in reversed(rows):
        shares.append(float(step @ direction) * inverse)
        direction = direction - shares[-1] * change
    direction = direction * scale
    for step, change, inverse in rows:
        direction = direction + step * (shares.pop() - float(change @ direction) * inverse)
    return direction


class _Point(NamedTuple):
    """A point on the line: its distance, the value there, the gradient, and its slope along the line."""

    at: float
    value: float
    gradient: Any
    slope: float


def _cubic(first: _Point, second: _Point, bounds: tuple[float, float] | None = None) -> float:
    """The minimum of the cubic through two values and slopes, between bounds; their middle where it has none."""
    low, high = bounds or (min(first.at, second.at), max(first.at, second.at))
    left, right = (first, second) if first.at <= second.at else (second, first)
    if first.at == second.at:
        return (low + high) / 2
    bend = first.slope + second.slope - 3 * (first.value - second.value) / (first.at - second.at)
    square = bend**2 - first.slope * second.slope
    root = math.sqrt(max(square, 0))
    below = right.slope - left.slope + 2 * root
    if square < 0 or below == 0:
        return (low + high) / 2
    least = right.at - (right.at - left.at) * ((right.slope + root - bend) / below)
    return min(max(least, low), high)


def _strong_wolfe(
    evaluate: Callable[[float], _Point], start: _Point, step: float, reach: float, tolerance: float
) -> tuple[_Point, int]:
    """A point where the strong Wolfe conditions hold, and the number of evaluations.

    `reach` is the largest entry of the direction, `tolerance` the change of a parameter that is too small to matter.
    """
    before, current, calls = start, evaluate(step), 1
    while calls <= _MOST:
        rose = current.value > start.value + _LOWER * current.at * start.slope
        if rose or (calls > 2 and current.value >= before.value):
            return _zoom(evaluate, start, [before, current], calls, reach, tolerance)
        if abs(current.slope) <= -_FLATTER * start.slope:
            return current, calls
        if current.slope >= 0:
            return _zoom(evaluate, start, [before, current], calls, reach, tolerance)
        far = _cubic(before, current, (current.at + 0.01 * (current.at - before.at), current.at * 10))
        before, current, calls = current, evaluate(far), calls + 1
    return min((start, current), key=lambda point: point.value), calls


def _zoom(
    evaluate: Callable[[float], _Point], start: _Point, ends: list[_Point], calls: int, reach: float, tolerance: float
) -> tuple[_Point, int]:
    stalled = False
    low = 0 if ends[0].value <= ends[1].value else 1
    while calls <= _MOST and abs(ends[1].at - ends[0].at) * reach >= tolerance:
        first, last = min(ends[0].at, ends[1].at), max(ends[0].at, ends[1].at)
        at, margin = _cubic(ends[0], ends[1]), 0.1 * (last - first)
        near = min(last - at, at - first) < margin
        if near and (stalled or at >= last or at <= first):
            at, stalled = last - margin if abs(at - last) < abs(at - first) else first + margin, False
        else:
            stalled = near
        current, calls = evaluate(at), calls + 1
        if current.value > start.value + _LOWER * at * start.slope or current.value >= ends[low].value:
            ends[1 - low] = current
            low = 0 if ends[0].value <= ends[1].value else 1
            continue
        if abs(current.slope) <= -_FLATTER * start.slope:
            return current, calls
        if current.slope * (ends[1 - low].at - ends[low].at) >= 0:
            ends[1 - low] = ends[low]
        ends[low] = current
    return ends[low], calls
