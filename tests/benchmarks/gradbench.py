"""Row 4: the workloads of GradBench, value and gradient: our scripts against NumPy by hand, torch and jax.

A candidate is named `library_work`, such as `ours_gmm`; its formulas are in `gradbench_by_hand`, `gradbench_torch` and
`gradbench_jax`, functions from the leaves to (value, {leaf: gradient}). Results are compared at the size that is timed
and at a small one. No limit is set against NumPy by hand: 1 stands in that column. `ours` is NumPy alone; `fast` has the
extra of that name, where it makes machine code of the script.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np

from tests.benchmarks.driver import ROOT, Choice, Row, raced, rows

Found = tuple[Callable[[], Any], Any]
LARGE, SMALL = 1, 0
LIMITS = {"gmm": 0.7, "kmeans": 0.7, "llsq": 0.7, "lse": 0.9, "ode": 0.9, "lstm": 1.0, "det": 1.0}
ALONE = {**LIMITS, "lstm": 2.0}  # by NumPy alone, to which a step of a turn is a call
LIBRARIES = {"NumPy by hand": "by_hand", "torch": "torch", "jax.jit": "jax"}
WRT = {"gmm": ("alpha", "mu", "q", "l"), "kmeans": ("C",), "llsq": ("x",), "lse": ("x",), "ode": ("x",),
       "lstm": ("main", "extra"), "det": ("A",)}  # fmt: skip
FAST = ("ode", "lstm")
PARTS = tuple(LIMITS)  # what `--only gradbench:NAME` may name


def data(work: str, size: int) -> dict[str, Any]:
    """The leaves and constants of one workload."""
    random = np.random.default_rng(5)
    normal = random.normal
    if work == "gmm":
        n, d, k = (1000, 32, 50) if size else (10, 3, 4)
        return {"X": normal(size=(n, d)), "alpha": normal(size=k), "mu": normal(size=(k, d)),
                "q": 0.1 * normal(size=(k, d)), "l": 0.1 * normal(size=(k, d * (d - 1) // 2))}  # fmt: skip
    if work == "kmeans":
        n, d, k = (10_000, 8, 100) if size else (30, 2, 4)
        return {"X": normal(size=(n, d)), "C": normal(size=(k, d))}
    if work == "llsq":
        n, m = (16_392, 128) if size else (20, 5)
        return {"n": n, "x": normal(size=m)}
    if work == "lse":
        return {"x": 3 * normal(size=1_280_000 if size else 20)}
    if work == "ode":
        return {"steps": 10, "x": normal(size=10_000 if size else 8)}
    if work == "lstm":
        n, b = (1024, 14) if size else (6, 3)
        return {"sequence": random.uniform(size=(n, b)), "state": normal(size=(4, b)),
                "main": normal(size=(4, 4 * b)), "extra": normal(size=(3, b))}  # fmt: skip
    n = 20 if size else 4
    return {"A": normal(size=(n, n))}


def shown(found: tuple[Any, dict[str, Any]]) -> list[float]:
    """The value, and each gradient weighted entry by entry, in proportion to its size."""
    value, gradient = found
    told = [float(value)]
    for _, slope in sorted(gradient.items()):
        flat = np.asarray(slope).ravel()
        told += [float(flat @ np.cos(np.arange(flat.size))), float(np.abs(flat).max())]
    return told


def ours(work: str, size: int) -> Found:
    """The script under samples/gradbench, by NumPy alone."""
    os.environ["GRADCLI_FAST"] = "0"
    return scripted(work, size)


def fast(work: str, size: int) -> Found:
    """The same with the extra `fast`."""
    import numba

    assert numba.__version__
    return scripted(work, size)


def scripted(work: str, size: int) -> Found:
    """The script, compiled for its leaves."""
    import gradcli

    text = (ROOT / "samples" / "gradbench" / f"{work}.grad").read_text(encoding="utf-8")
    f = gradcli.compile(text, wrt=WRT[work])
    large, small = data(work, size), data(work, SMALL)
    return lambda: f.value_and_grad(**large), shown(f.value_and_grad(**large)) + shown(f.value_and_grad(**small))


def theirs(library: str, work: str, size: int) -> Found:
    """A port of the formulas; ImportError where the library is missing."""
    module = import_module(f"tests.benchmarks.gradbench_{library}")
    large, small = data(work, size), data(work, SMALL)
    f = module.prepared(work, large, WRT[work])
    return f, shown(module.plain(f())) + shown(module.plain(module.prepared(work, small, WRT[work])()))


def __getattr__(name: str) -> Callable[[int], Found]:
    """The candidates, by name: `ours_gmm`, `torch_lstm`."""
    library, _, work = name.rpartition("_")
    if work not in LIMITS or library not in ("ours", "fast", *LIBRARIES.values()):
        raise AttributeError(name)
    own = {"ours": ours, "fast": fast}
    return partial(own[library], work) if library in own else partial(theirs, library, work)


def run(rounds: int, small: bool) -> list[Row]:
    """At most 0.7 times the better of torch and jax on gmm, kmeans, llsq; 0.9 times on lse and ode; else below both.

    `lstm` is below both with the extra `fast`, and by NumPy alone within twice their time.
    """
    found: list[Row] = []
    for work in Choice.parts.get("gradbench", PARTS):
        limit = LIMITS[work]
        names = {"ours": "ours", **LIBRARIES, **({"numba": "fast"} if work in FAST else {})}
        places = {name: f"{__name__}:{library}_{work}" for name, library in names.items()}
        times = raced(places, rounds, SMALL if small else LARGE)
        alone = {"NumPy by hand": 1.0, "torch": ALONE[work], "jax.jit": ALONE[work]}
        limits = {"NumPy by hand": 1.0, "torch": limit, "jax.jit": limit}
        found += rows(f"4 {work}", times, alone)
        if "numba" in times:
            found += rows(f"4 {work} with the extra fast", {**times, "ours": times["numba"]}, limits)
    return found
