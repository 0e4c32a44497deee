"""Loops of many turns: a Runge-Kutta step and a Kalman filter of 10^5 turns, a particle of 400, value and gradient.

Beside `jax.lax.scan`: the first answer of a new process, and repeated ones by NumPy alone (`ours`) and with the extra
`fast`. A candidate is named `library_work`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from tests.benchmarks.driver import ROOT, Choice, Row, interleaved, raced, row, rows, seconds, wanted
from tests.support.background import finish_code

Found = tuple[Callable[[], Any], Any]
TURNS, FEW = 100_000, 40
SCRIPTS = {
    "runge_kutta": """
def slope(x, v, a): return -(a*x) - 0.1*v*x*x
x, v = u, w
for i in range(steps):
    v1 = slope(x, v, a)
    x2, v2 = v + h/2*v1, slope(x + h/2*v, v + h/2*v1, a)
    x3, v3 = v + h/2*v2, slope(x + h/2*x2, v + h/2*v2, a)
    x4, v4 = v + h*v3, slope(x + h*x3, v + h*v3, a)
    x, v = x + h/6*(v + 2*x2 + 2*x3 + x4), v + h/6*(v1 + 2*v2 + 2*v3 + v4)
x
""",
    "kalman": """
mean, p, total = 0*q, 1 + 0*q, 0*q
for i in range(len(z)):
    p = p + q
    s = p + r
    error = z[i] - mean
    total = total + log(s) + error**2/s
    mean = mean + p/s*error
    p = p - p*p/s
total/len(z)
""",
    "particle": (ROOT / "samples" / "gradbench" / "particle.grad").read_text(encoding="utf-8"),
}
WRT = {"runge_kutta": ("a", "u", "w"), "kalman": ("q", "r"), "particle": ("w",)}
FAST_LIMITS = {"runge_kutta": 1.2, "kalman": 1.2, "particle": 4.0}
FIRST_LIMITS = {"runge_kutta": 1.2, "kalman": 1.2, "particle": 0.5}
PARTS = tuple(SCRIPTS)  # what `--only loops:NAME` may name


def data(work: str, size: int) -> dict[str, Any]:
    """The leaves and constants of one workload."""
    if work == "runge_kutta":
        return {"steps": TURNS if size else FEW, "h": 0.001, "a": 1.0, "u": 0.5, "w": 0.1}
    if work == "kalman":
        return {"z": np.random.default_rng(5).normal(size=TURNS if size else FEW).cumsum() / 10, "q": 0.1, "r": 0.5}
    return {"steps": 400 if size else FEW, "dt": 0.1, "w": 0.2}


def shown(found: tuple[Any, dict[str, Any]], work: str) -> list[float]:
    """The value and the gradient."""
    value, gradient = found
    return [float(value), *(float(gradient[name]) for name in WRT[work])]


def ours(work: str, size: int) -> Found:
    """The script, by NumPy alone."""
    os.environ["GRADCLI_FAST"] = "0"
    return scripted(work, size)


def fast(work: str, size: int) -> Found:
    """The same with the extra `fast`: machine code from the third call on, when the compiler has ended."""
    import numba

    assert numba.__version__
    f, found = scripted(work, size)
    f()
    finish_code()
    return f, found


def scripted(work: str, size: int) -> Found:
    """The script, compiled for its leaves."""
    import gradcli

    f, values = gradcli.compile(SCRIPTS[work], wrt=WRT[work]), data(work, size)
    return lambda: f.value_and_grad(**values), shown(f.value_and_grad(**values), work)


def jax(work: str, size: int) -> Found:
    """The same by `jax.lax.scan`, compiled."""
    import jax
    import jax.numpy as jnp

    jax.config.update("jax_enable_x64", True)
    values = data(work, size)
    steps, h = values.pop("steps", 0), values.pop("h", values.pop("dt", 0.0))

    def runge_kutta(a: Any, u: Any, w: Any) -> Any:
        def slope(x: Any, v: Any) -> Any:
            return -(a * x) - 0.1 * v * x * x

        def turn(state: Any, _: Any) -> Any:
            x, v = state
            v1 = slope(x, v)
            x2, v2 = v + h / 2 * v1, slope(x + h / 2 * v, v + h / 2 * v1)
            x3, v3 = v + h / 2 * v2, slope(x + h / 2 * x2, v + h / 2 * v2)
            x4, v4 = v + h * v3, slope(x + h * x3, v + h * v3)
            return (x + h / 6 * (v + 2 * x2 + 2 * x3 + x4), v + h / 6 * (v1 + 2 * v2 + 2 * v3 + v4)), None

        return jax.lax.scan(turn, (u, w), None, length=steps)[0][0]

    def kalman(q: Any, r: Any) -> Any:
        def turn(state: Any, z: Any) -> Any:
            mean, p, total = state
            p = p + q
            s, error = p + r, z - mean
            return (mean + p / s * error, p - p * p / s, total + jnp.log(s) + error**2 / s), None

        return jax.lax.scan(turn, (0.0, 1.0, 0.0), jnp.asarray(values["z"]))[0][2] / len(values["z"])

    def particle(w: Any) -> Any:
        def potential(p: Any) -> Any:
            there = jnp.stack([jnp.asarray(10.0), 10 - w])
            return 1 / jnp.linalg.norm(p - there) + 1 / jnp.linalg.norm(p - jnp.array([10.0, 0.0]))

        def turn(state: Any, _: Any) -> Any:
            p, v, crossing = state
            after = p + h * v
            now = (p[1] > 0) & (after[1] <= 0)
            crossing = jnp.where(now, p[0] - p[1] * v[0] / v[1], crossing)
            return (after, v - h * jax.grad(potential)(p), crossing), None

        start = (jnp.array([0.0, 8.0]), jnp.array([0.75, 0.0]), jnp.asarray(0.0))
        return jax.lax.scan(turn, start, None, length=steps)[0][2] ** 2

    chosen = {"runge_kutta": runge_kutta, "kalman": kalman, "particle": particle}[work]
    f = jax.jit(jax.value_and_grad(chosen, argnums=tuple(range(len(WRT[work])))))
    point = [values[name] for name in WRT[work]]

    def run() -> Any:
        value, gradient = f(*point)
        return value.block_until_ready(), dict(zip(WRT[work], gradient, strict=True))

    return run, shown(run(), work)


def __getattr__(name: str) -> Callable[[int], Found]:
    """The candidates, by name: `ours_kalman`, `jax_kalman`."""
    library, _, work = name.partition("_")
    if work not in SCRIPTS or library not in ("ours", "fast", "jax"):
        raise AttributeError(name)
    return partial({"ours": ours, "fast": fast, "jax": jax}[library], work)


def first(candidate: str, work: str, size: int) -> float:
    """The seconds of a new process up to its first answer."""
    return seconds([sys.executable, "-c", f"from tests.benchmarks import loops; loops.{candidate}({work!r}, {size})"])


def run(rounds: int, small: bool) -> list[Row]:
    """The first answer, and with `fast` the repeated ones, within a factor of those of jax."""
    found: list[Row] = []
    size = 0 if small else 1
    if not wanted("jax.jit"):
        return found
    for work in Choice.parts.get("loops", PARTS):
        names = {"ours": "ours", "jax.lax.scan": "jax", "numba": "fast"}
        times = raced({name: f"{__name__}:{library}_{work}" for name, library in names.items()}, rounds, size, 1e-8)
        if "jax.lax.scan" not in times:
            continue
        if "numba" in times:
            limits = {"jax.lax.scan": FAST_LIMITS[work]}
            found += rows(f"loop {work} with the extra fast", {**times, "ours": times["numba"]}, limits)
        once = interleaved({name: partial(first, name, work, size) for name in ("ours", "jax")}, 1)
        found.append(row(f"loop {work}, first answer", once["ours"], once["jax"], FIRST_LIMITS[work], "jax.lax.scan"))
    return found
