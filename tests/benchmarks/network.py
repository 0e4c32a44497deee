"""Row 5: a network with one hidden layer on 20,000 rows, value and gradient in all weights."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.benchmarks.driver import Row, raced, rows

Found = tuple[Callable[[], Any], Any]
SCRIPT = """
const X = zeros(2, 2)
const Y = zeros(2, 2)
logits = tanh(X @ A + a) @ B + b
-sum(Y*log_softmax(logits))/len(X)
"""
WEIGHTS = ("A", "a", "B", "b")


def data(size: int) -> dict[str, Any]:
    """Rows, one-hot labels, weights."""
    random = np.random.default_rng(3)
    n, d, h, k = (20_000, 100, 64, 10) if size else (40, 5, 4, 3)
    return {"X": random.normal(size=(n, d)), "Y": np.eye(k)[random.integers(k, size=n)],
            "A": random.normal(size=(d, h))/10, "a": random.normal(size=h)/10,
            "B": random.normal(size=(h, k))/8, "b": random.normal(size=k)/10}  # fmt: skip


def shown(value: Any, slopes: Any) -> list[float]:
    """The value, and a weighted sum of each gradient."""
    flat = [np.asarray(slope).ravel() for slope in slopes]
    return [float(value), *(float(one @ np.cos(np.arange(one.size))) for one in flat)]


def ours(size: int) -> Found:
    import gradcli

    given = data(size)
    f = gradcli.compile(SCRIPT, wrt=WEIGHTS)
    value, slopes = f.value_and_grad(**given)
    return lambda: f.value_and_grad(**given), shown(value, [slopes[name] for name in WEIGHTS])


def by_hand(size: int) -> Found:
    given = data(size)
    X, Y, A, a, B, b = (given[name] for name in ("X", "Y", *WEIGHTS))

    def work() -> Any:
        hidden = np.tanh(X @ A + a)
        logits = hidden @ B + b
        logits -= logits.max(1, keepdims=True)
        grown = np.exp(logits)
        total = grown.sum(1, keepdims=True)
        value = -np.sum(Y * (logits - np.log(total))) / len(X)
        ct = (grown / total - Y) / len(X)
        below = (ct @ B.T) * (1 - hidden * hidden)
        return value, (X.T @ below, below.sum(0), hidden.T @ ct, ct.sum(0))

    return work, shown(*work())


def torch(size: int) -> Found:
    import torch as t

    given = {name: t.tensor(value) for name, value in data(size).items()}
    weights = [given[name].requires_grad_() for name in WEIGHTS]

    def work() -> Any:
        A, a, B, b = weights
        logits = t.tanh(given["X"] @ A + a) @ B + b
        value = -(given["Y"] * t.log_softmax(logits, 1)).sum() / len(given["X"])
        return value, t.autograd.grad(value, weights)

    value, slopes = work()
    return work, shown(value.item(), [slope.numpy() for slope in slopes])


def jax(size: int) -> Found:
    import jax as j

    j.config.update("jax_enable_x64", True)
    given = {name: j.numpy.asarray(value) for name, value in data(size).items()}
    weights = [given[name] for name in WEIGHTS]

    def loss(weights: Any, X: Any, Y: Any) -> Any:
        A, a, B, b = weights
        return -(Y * j.nn.log_softmax(j.numpy.tanh(X @ A + a) @ B + b)).sum() / len(X)

    both = j.jit(j.value_and_grad(loss))

    def work() -> Any:
        return j.block_until_ready(both(weights, given["X"], given["Y"]))

    value, slopes = work()
    return work, shown(value, slopes)


def run(rounds: int, small: bool) -> list[Row]:
    """At most 0.95 times jax, 1.2 times torch."""
    names = {"ours": "ours", "NumPy by hand": "by_hand", "torch": "torch", "jax.jit": "jax"}
    places = {name: f"{__name__}:{function}" for name, function in names.items()}
    times = raced(places, rounds, 0 if small else 1)
    return rows("5 network", times, {"NumPy by hand": 1.0, "torch": 1.2, "jax.jit": 0.95})
