"""A closure that computes a loss goes in; parameters move by a quasi-Newton method with a short memory.

The direction comes from the last steps and changes of the gradient (Nocedal, 1980: two loops). Each call of `step`
makes up to `max_iter` iterations.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.eager import recorder
from gradcli.eager.modes import enable_grad, no_grad
from gradcli.eager.optim.optimizer import Optimizer, need_rate
from gradcli.eager.optim.searching import Point, strong_wolfe
from gradcli.eager.state import place
from gradcli.eager.tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

Array = Any


class LBFGS(Optimizer):
    """The quasi-Newton method of limited memory; `step(closure)` needs a closure that computes loss and gradients.

    ValueError for several groups; RuntimeError for another line search than "strong_wolfe".
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1,
        max_iter: int = 20,
        max_eval: int | None = None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 100,
        line_search_fn: str | None = None,
    ) -> None:
        need_rate(lr)
        defaults = {
            "lr": lr,
            "max_iter": max_iter,
            "max_eval": max_iter * 5 // 4 if max_eval is None else max_eval,
            "tolerance_grad": tolerance_grad,
            "tolerance_change": tolerance_change,
            "history_size": history_size,
            "line_search_fn": line_search_fn,
        }
        super().__init__(params, defaults)
        if len(self.param_groups) != 1:
            raise ValueError("LBFGS doesn't support per-parameter options (parameter groups)")
        self._params = self.param_groups[0]["params"]

    def _gradient(self) -> Array:
        parts = [
            np.zeros(x._array.size, x._array.dtype) if x._grad is None else x._grad._array.ravel() for x in self._params
        ]
        return np.concatenate(parts)

    def _move(self, distance: float, direction: Array) -> None:
        start = 0
        for x in self._params:
            array = x._array
            array += distance * direction[start : start + array.size].reshape(array.shape)
            x._counter.bump(place())
            if recorder.current is not None:
                recorder.current.moved(x)
            start += array.size

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Some iterations; the loss before them comes back."""
        if closure is None:
            raise TypeError("LBFGS.step() needs a closure that computes the loss and its gradients")
        self._steps += 1
        with no_grad():
            return self._iterate(closure)

    def _loss(self, closure: Callable[[], Any]) -> Any:
        with enable_grad():
            return closure()

    def _along(self, closure: Callable[[], Any], direction: Array) -> Callable[[float], Point]:
        """The loss along a direction from where the parameters are; they are there again afterwards."""
        here = [x._array.copy() for x in self._params]

        def look(at: float) -> Point:
            self._move(at, direction)
            value = self._loss(closure).item()
            gradient = self._gradient()
            for x, kept in zip(self._params, here, strict=True):
                x._array[...] = kept
            return Point(at, value, gradient, float(gradient @ direction))

        return look

    def _iterate(self, closure: Callable[[], Any]) -> Any:
        group, state = self.param_groups[0], self.state[self._params[0]]
        state.setdefault("func_evals", 0)
        state.setdefault("n_iter", 0)
        first = self._loss(closure)
        loss, calls = first.item(), 1
        state["func_evals"] += 1
        grad = self._gradient()
        if np.abs(grad).max(initial=0) <= group["tolerance_grad"]:
            return first
        direction, length, before = (_array(state.get(name)) for name in ("d", "t", "prev_flat_grad"))
        steps, changes = ([_array(one) for one in state.get(name, [])] for name in ("old_stps", "old_dirs"))
        inverse, before_loss = list(state.get("ro", [])), state.get("prev_loss")
        scale = state.get("H_diag", 1.0)
        for i in range(group["max_iter"]):
            state["n_iter"] += 1
            if state["n_iter"] == 1:
                direction, steps, changes, inverse, scale = -grad, [], [], [], 1.0
            else:
                change, step = grad - before, direction * length
                curvature = float(change @ step)
                if curvature > 1e-10:
                    if len(changes) == group["history_size"]:
                        for kept in (changes, steps, inverse):
                            kept.pop(0)
                    changes.append(change)
                    steps.append(step)
                    inverse.append(1.0 / curvature)
                    scale = curvature / float(change @ change)
                direction = _two_loops(grad, changes, steps, inverse, scale)
            before, before_loss = grad.copy(), loss
            if state["n_iter"] == 1:
                length = min(1.0, 1.0 / float(np.abs(grad).sum())) * group["lr"]
            else:
                length = group["lr"]
            slope = float(grad @ direction)
            if slope > -group["tolerance_change"]:
                break
            if group["line_search_fn"] is not None:
                if group["line_search_fn"] != "strong_wolfe":
                    raise RuntimeError("only 'strong_wolfe' is supported")
                start = Point(0.0, loss, grad, slope)
                reach = float(np.abs(direction).max(initial=0))
                chosen, looked = strong_wolfe(
                    self._along(closure, direction), start, length, reach, group["tolerance_change"]
                )
                loss, grad, length = chosen.value, chosen.gradient, chosen.at
                self._move(length, direction)
                calls += looked
                state["func_evals"] += looked
            else:
                self._move(length, direction)
            if group["line_search_fn"] is None and i != group["max_iter"] - 1:
                loss = self._loss(closure).item()
                grad = self._gradient()
                calls += 1
                state["func_evals"] += 1
            small = np.abs(grad).max(initial=0) <= group["tolerance_grad"]
            still = np.abs(direction * length).max(initial=0) <= group["tolerance_change"]
            flat = abs(loss - before_loss) < group["tolerance_change"]
            if calls >= group["max_eval"] or small or still or flat:
                break
        state.update(d=Tensor(direction), t=length, old_dirs=_tensors(changes), old_stps=_tensors(steps), ro=inverse)
        state.update(H_diag=scale, prev_flat_grad=Tensor(before), prev_loss=before_loss)
        return first


def _array(value: Any) -> Any:
    return value._array if isinstance(value, Tensor) else value


def _tensors(arrays: list[Array]) -> list[Tensor]:
    return [Tensor(array) for array in arrays]


def _two_loops(grad: Array, changes: list[Array], steps: list[Array], inverse: list[float], scale: float) -> Array:
    """The direction: minus the gradient times the inverse of the curvature that the last steps show."""
    found = -grad
    shares = [0.0] * len(changes)
    for i in range(len(changes) - 1, -1, -1):
        shares[i] = float(steps[i] @ found) * inverse[i]
        found = found - shares[i] * changes[i]
    found = found * scale
    for i, (change, step) in enumerate(zip(changes, steps, strict=True)):
        found = found + step * (shares[i] - float(change @ found) * inverse[i])
    return found
