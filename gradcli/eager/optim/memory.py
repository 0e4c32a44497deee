"""What rules of several kinds need: arrays that are remembered, steps that are counted; knows no rule."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcli.eager.tensor import Tensor

Array = Any
State = dict[str, Any]


def kept(state: State, name: str, like: Array) -> Array:
    """An array that is remembered, zeros at first."""
    if name not in state:
        state[name] = Tensor(np.zeros_like(like))
    return state[name]._array


def counted(state: State) -> float:
    """Count one more step of a parameter; the number so far."""
    if "step" not in state:
        state["step"] = Tensor(np.zeros((), np.float32))
    array = state["step"]._array
    array += 1
    return float(array)


def decayed(grad: Array, x: Array, decay: float) -> Array:
    return grad + decay * x if decay else grad


def lerp(old: Array, new: Array, weight: float) -> None:
    """Move an array in place towards another one."""
    old += weight * (new - old)
