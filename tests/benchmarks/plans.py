"""Value and gradient by a plan beside the evaluator, which takes one operation after the other: no plan may be slower.

The scripts are those of GradBench, of the network and of the stencil, and others that people write, where other passes
of the planner count. Both are NumPy alone. A candidate is named `planned_work` or `evaluated_work`.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from tests.benchmarks import gradbench, network, stencils
from tests.benchmarks.driver import ROOT, Choice, Row, raced, rows
from tests.support.passes import evaluated

Found = tuple[Callable[[], Any], Any]
LIMIT = 1.05
SHIFTS = [(a, b) for a in range(3) for b in range(3)]
SCRIPTS = {
    "attention": ("sum((softmax(Q @ K.T/8, axis=1) @ V)**2)", ("Q", "K", "V")),
    "convolution": (
        "const X = zeros(2, 28, 28)\nK = zeros(8, 3, 3)\nL = X[:, None, :, :]\ny = 0\n"
        + "".join(f"y = y + L[:, :, {a}:{a + 26}, {b}:{b + 26}]*K[:, {a}, {b}][:, None, None]\n" for a, b in SHIFTS)
        + "sum(maximum(y, 0)**2)/len(X)",
        ("K",),
    ),
    "recurrent": ("h = s\nfor t in range(len(x)):\n    h = tanh(W @ h + U @ x[t])\nsum(h**2)", ("W", "U")),
    "logistic": ("sum(log(1 + exp(-y*(X @ w))))/len(y) + 0.01*sum(w**2)", ("w",)),
    "least_squares": ("sum((X @ w - y)**2)", ("w",)),
    "cubic": ("sum((c[0] + c[1]*t + c[2]*t**2 + c[3]*(t - c[4])**3 - y)**2)", ("c",)),
    "distances": ("d = P[:, None, :] - P\ns = (sum(d**2, axis=2) + eye(len(P)))**-3\nsum(s**2 - s)", ("P",)),
}
LEAVES = {
    "attention": {"Q": ("n", 64), "K": ("n", 64), "V": ("n", 64)},
    "convolution": {"X": ("n", 28, 28), "K": (8, 3, 3)},
    "recurrent": {"x": ("n", 32), "W": (32, 32), "U": (32, 32), "s": (32,)},
    "logistic": {"X": ("n", 50), "y": ("n",), "w": (50,)},
    "least_squares": {"X": ("n", 50), "y": ("n",), "w": (50,)},
    "cubic": {"t": ("n",), "y": ("n",), "c": (5,)},
    "distances": {"P": ("n", 3)},
}
LENGTHS = {
    "attention": 512, "convolution": 256, "recurrent": 1000, "logistic": 2000, "least_squares": 2000, "cubic": 100_000,
    "distances": 200,
}  # fmt: skip
PARTS = (*gradbench.PARTS, "network", "rosenbrock", *SCRIPTS)  # what `--only plans:NAME` may name


def work_of(name: str, size: int) -> tuple[str, tuple[str, ...] | None, dict[str, Any]]:
    """A script, the leaves of its gradient, and values."""
    if name in gradbench.PARTS:
        text = (ROOT / "samples" / "gradbench" / f"{name}.grad").read_text(encoding="utf-8")
        return text, gradbench.WRT[name], gradbench.data(name, size)
    if name == "network":
        return network.SCRIPT, network.WEIGHTS, network.data(size)
    if name == "rosenbrock":
        return stencils.SCRIPT, None, {"x": stencils.data(1_000_000 if size else 1_000)}
    text, wrt = SCRIPTS[name]
    random = np.random.default_rng(7)
    n = LENGTHS[name] if size else 4
    shapes = {leaf: tuple([n if axis == "n" else axis for axis in shape]) for leaf, shape in LEAVES[name].items()}
    return text, wrt, {leaf: random.normal(size=shape) / shape[-1] ** 0.25 for leaf, shape in shapes.items()}


def planned(name: str, size: int) -> Found:
    """The script as it runs."""
    import gradcli

    os.environ["GRADCLI_FAST"] = "0"
    text, wrt, values = work_of(name, size)
    f = gradcli.compile(text, wrt=wrt)
    return lambda: f.value_and_grad(**values), gradbench.shown(f.value_and_grad(**values))


def without_plan(name: str, size: int) -> Found:
    """The same by the evaluator."""
    evaluated()
    return planned(name, size)


def __getattr__(name: str) -> Callable[[int], Found]:
    """The candidates, by name: `planned_gmm`, `evaluated_gmm`."""
    way, _, work = name.partition("_")
    if work not in PARTS or way not in ("planned", "evaluated"):
        raise AttributeError(name)
    return partial(planned if way == "planned" else without_plan, work)


def run(rounds: int, small: bool) -> list[Row]:
    """A plan takes at most 1.05 times the evaluator's time."""
    found: list[Row] = []
    for name in Choice.parts.get("plans", PARTS):
        places = {"ours": f"{__name__}:planned_{name}", "evaluator": f"{__name__}:evaluated_{name}"}
        found += rows(f"plan of {name}", raced(places, rounds, 0 if small else 1), {"evaluator": LIMIT})
    return found
