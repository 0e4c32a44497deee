"""Row 2: value and gradient of one scalar formula, over and over, as (value, {leaf: gradient})."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from tests.benchmarks.driver import Row, raced, rows

SCRIPT = "sin(x*y)*exp(-x) + log(1 + y**2)*x"
X, Y = 1.25, 0.75
Found = tuple[Callable[[], None], Any]


def over(f: Callable[..., Any], calls: int) -> Found:
    """The work of a candidate, and what it gives once."""
    value, slopes = f(x=X, y=Y)

    def work() -> None:
        for _ in range(calls):
            f(x=X, y=Y)

    return work, [value, slopes["x"], slopes["y"]]


def ours(calls: int) -> Found:
    import gradcli

    f = gradcli.compile(SCRIPT)
    for _ in range(3):
        f.value_and_grad(x=X, y=Y)
    return over(f.value_and_grad, calls)


def by_hand(calls: int) -> Found:
    sin, cos, exp, log = math.sin, math.cos, math.exp, math.log

    def f(*, x: float, y: float) -> tuple[float, dict[str, float]]:
        angle = x * y
        fall = exp(-x)
        wave = sin(angle) * fall
        slope = cos(angle) * fall
        inside = 1 + y * y
        part = log(inside)
        return wave + part * x, {"x": y * slope - wave + part, "y": x * slope + 2 * y * x / inside}

    return over(f, calls)


def jax(calls: int) -> Found:
    import jax
    import jax.numpy as np

    jax.config.update("jax_enable_x64", True)
    both = jax.jit(jax.value_and_grad(lambda x, y: np.sin(x * y) * np.exp(-x) + np.log(1 + y**2) * x, argnums=(0, 1)))

    def f(*, x: float, y: float) -> tuple[float, dict[str, float]]:
        value, (dx, dy) = both(x, y)
        return float(value), {"x": float(dx), "y": float(dy)}

    return over(f, calls // 20)


def torch(calls: int) -> Found:
    import torch

    torch.set_num_threads(1)

    def f(*, x: float, y: float) -> tuple[float, dict[str, float]]:
        a = torch.tensor(x, dtype=torch.float64, requires_grad=True)
        b = torch.tensor(y, dtype=torch.float64, requires_grad=True)
        value = torch.sin(a * b) * torch.exp(-a) + torch.log(1 + b**2) * a
        dx, dy = torch.autograd.grad(value, (a, b))
        return value.item(), {"x": dx.item(), "y": dy.item()}

    return over(f, calls // 20)


def autograd(calls: int) -> Found:
    import autograd
    import autograd.numpy as np

    both = autograd.value_and_grad(lambda at: np.sin(at[0] * at[1]) * np.exp(-at[0]) + np.log(1 + at[1] ** 2) * at[0])

    def f(*, x: float, y: float) -> tuple[float, dict[str, float]]:
        value, (dx, dy) = both((x, y))
        return float(value), {"x": float(dx), "y": float(dy)}

    return over(f, calls // 20)


def run(rounds: int, small: bool) -> list[Row]:
    """At most 1.3 times straight-line Python; jax.jit and PyTorch behind by the factors of their limits."""
    names = {
        "ours": "ours",
        "straight-line Python": "by_hand",
        "jax.jit": "jax",
        "torch": "torch",
        "autograd": "autograd",
    }
    calls = 400 if small else 40_000
    times = raced({name: f"{__name__}:{place}" for name, place in names.items()}, rounds, calls)
    fewer = ("jax.jit", "torch", "autograd")
    per_call = {name: found / (calls // 20 if name in fewer else calls) for name, found in times.items()}
    limits = {"straight-line Python": 1.3, "jax.jit": 1 / 15, "torch": 1 / 150, "autograd": 1 / 150}
    return rows("2 scalar value+gradient", per_call, limits)
