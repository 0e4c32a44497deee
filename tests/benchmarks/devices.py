"""Row 12: rows 3 to 6 on a GPU at 10 to 100 times their size: ours, torch.compile, jax.jit, and a copy on the device.

`python -m tests.benchmarks.devices [--small] [--only lse] [--dtype float32] [--json FILE]` prints the table with the name of the GPU, or
says that there is none. All values lie on the device before a turn and results stay there; a turn is a few calls, one
after another, and ends when the device has finished. The copy moves as many bytes as the work has to read and write: ours may take 1/0.85 of its time on rows that do
little else. Beside torch.compile and jax.jit the limit is 1 on points, stencil and lse, and 1.1 where matrix products
decide (mixture, network).
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from tests.benchmarks import gradbench, network, points, stencils
from tests.benchmarks.driver import ROOT, Row, raced, rows

Found = tuple[Callable[[], Any], Any]
SIZES = {"points": 200_000_000, "stencil": 100_000_000, "lse": 100_000_000, "mixture": 100_000, "network": 1_000_000}
SMALL = {"points": 1000, "stencil": 1000, "lse": 1000, "mixture": 12, "network": 20}
MOVED = {"points": 5, "stencil": 2, "lse": 4}  # numbers that have to be read and written for an entry
NEAR_COPY = 1 / 0.85
LIMITS = {"points": 1.0, "stencil": 1.0, "lse": 1.0, "mixture": 1.1, "network": 1.1}
SCRIPTS = {"points": points.SCRIPT, "stencil": stencils.SCRIPT, "network": network.SCRIPT}
WRT = {
    "points": ("x", "y"),
    "stencil": ("x",),
    "lse": ("x",),
    "mixture": gradbench.WRT["gmm"],
    "network": network.WEIGHTS,
}
MODULE = "tests.benchmarks.devices"
CALLS = 4  # of a turn: a program that runs again and again prepares the next call while the device works
CHUNK = 1 << 24
DTYPE = ["float64"]  # of this process
TOLERANCE = {"float64": 1e-7, "float32": 2e-2}


def gpu() -> str | None:
    """The name of the GPU that CuPy finds; None where there is none, or no CuPy."""
    try:
        runtime: Any = import_module("cupy.cuda.runtime")
    except ImportError:
        return None
    try:
        return str(runtime.getDeviceProperties(0)["name"].decode()) if runtime.getDeviceCount() else None
    except runtime.CUDARuntimeError:
        return None


def data(work: str, size: int) -> dict[str, Any]:
    """The leaves of a workload in the type of this process; large arrays repeat a random part."""
    random = np.random.default_rng(7)

    def long(draw: Callable[[int], Any]) -> Any:
        return np.resize(draw(min(size, CHUNK)), size)

    if work == "points":
        found = {name: long(lambda n: random.uniform(0.5, 2.0, n)) for name in ("x", "y")}
    elif work == "stencil":
        found = {"x": long(lambda n: random.uniform(-2.0, 2.0, n))}
    elif work == "lse":
        found = {"x": long(lambda n: 3 * random.normal(size=n))}
    elif work == "mixture":
        found = gradbench.data("gmm", gradbench.LARGE)
        found["X"] = random.normal(size=(size, found["X"].shape[1]))
    else:
        found = network.data(1)
        found["X"] = random.normal(size=(size, found["X"].shape[1]))
        found["Y"] = np.eye(found["Y"].shape[1])[random.integers(found["Y"].shape[1], size=size)]
    return {name: value.astype(DTYPE[0]) for name, value in found.items()}


def shown(work: str, value: Any, slopes: dict[str, Any]) -> list[float]:
    """The value and the size of each gradient, as numbers; computed on the device."""
    count = value.shape[0] if work == "points" else 1
    return [float(value.sum()) / count, *(float((slopes[name] ** 2).sum()) / count for name in WRT[work])]


def text_of(work: str) -> str:
    """The script of a workload."""
    name = {"mixture": "gmm"}.get(work, work)
    return SCRIPTS.get(work) or (ROOT / "samples" / "gradbench" / f"{name}.grad").read_text(encoding="utf-8")


def ours(work: str, size: int) -> Found:
    cupy: Any = import_module("cupy")
    import gradcli

    given = {name: cupy.asarray(value) for name, value in data(work, size).items()}
    limits = {"elements": 1 << 30}
    f = gradcli.compile(text_of(work), wrt=WRT[work], backend="cupy", dtype=DTYPE[0], limits=limits)
    call = f.at_points if work == "points" else f.value_and_grad

    def turn() -> Any:
        for _ in range(CALLS):
            found = call(**given)
        cupy.cuda.Device().synchronize()
        return found

    return turn, shown(work, *turn())


def copy(work: str, size: int) -> Found:
    """A copy that reads and writes as many bytes; it has no result of its own, so it tells that of ours."""
    cupy: Any = import_module("cupy")
    result = ours(work, size)[1]
    source = cupy.ones(MOVED[work] * size // 2, DTYPE[0])
    target = cupy.empty_like(source)

    def turn() -> None:
        for _ in range(CALLS):
            cupy.copyto(target, source)
        cupy.cuda.Device().synchronize()

    return turn, result


def torch_compiled(work: str, size: int) -> Found:
    torch: Any = import_module("torch")
    torch.set_default_device("cuda")
    torch.set_default_dtype(getattr(torch, DTYPE[0]))
    given = {name: torch.from_numpy(value).cuda() for name, value in data(work, size).items()}
    leaves = [given[name].requires_grad_() for name in WRT[work]]
    formula = torch.compile(partial(_formula, work, torch))

    def turn() -> Any:
        for _ in range(CALLS):
            value = formula(given)
            slopes = torch.autograd.grad(value.sum(), leaves)
        torch.cuda.synchronize()
        return value, dict(zip(WRT[work], slopes, strict=True))

    value, slopes = turn()
    return turn, shown(work, value.detach(), slopes)


def jax_jit(work: str, size: int) -> Found:
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # the others need memory too
    jax: Any = import_module("jax")
    jax.config.update("jax_enable_x64", DTYPE[0] == "float64")
    given = {name: jax.device_put(value) for name, value in data(work, size).items()}
    rest = {name: value for name, value in given.items() if name not in WRT[work]}
    leaves = {name: given[name] for name in WRT[work]}

    def both(leaves: Any, rest: Any) -> Any:
        def total(leaves: Any) -> Any:
            value = _formula(work, jax.numpy, {**leaves, **rest})
            return value.sum(), value

        slopes, value = jax.grad(total, has_aux=True)(leaves)
        return value, slopes

    jitted = jax.jit(both)

    def turn() -> Any:
        for _ in range(CALLS):
            found = jitted(leaves, rest)
        return jax.block_until_ready(found)

    return turn, shown(work, *turn())


def _formula(work: str, library: Any, given: dict[str, Any]) -> Any:
    """The value of a workload by torch or jax.numpy."""
    name = "torch" if library.__name__ == "torch" else "jax"
    if work == "points":
        x, y = given["x"], given["y"]
        return library.sin(x * y) * library.exp(-x) + library.log(1 + y**2) * x
    if work == "stencil":
        x = given["x"]
        return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()
    if work == "network":
        logits = library.tanh(given["X"] @ given["A"] + given["a"]) @ given["B"] + given["b"]
        scaled = (
            import_module("torch").log_softmax(logits, 1)
            if name == "torch"
            else import_module("jax").nn.log_softmax(logits)
        )
        return -(given["Y"] * scaled).sum() / len(given["X"])
    return getattr(import_module(f"tests.benchmarks.gradbench_{name}"), "gmm" if work == "mixture" else work)(**given)


def __getattr__(name: str) -> Callable[[int], Found]:
    """The candidates, by name: `ours_points`, `jax_network_float32`."""
    library, _, work = name.partition("_")
    work, _, dtype = work.partition("_")
    made = {"ours": ours, "copy": copy, "torch": torch_compiled, "jax": jax_jit}.get(library)
    if made is None or work not in SIZES:
        raise AttributeError(name)
    DTYPE[0] = dtype or "float64"
    return partial(made, work)


def run(rounds: int, small: bool, dtype: str = "float64", only: str | None = None) -> list[Row]:
    """The lines of all workloads, or of one; none where there is no GPU."""
    found: list[Row] = []
    if gpu() is None:
        return found
    for work, size in (SMALL if small else SIZES).items():
        if only not in (None, work):
            continue
        names = {"ours": "ours", "torch.compile": "torch", "jax.jit": "jax"}
        limits = {"torch.compile": LIMITS[work], "jax.jit": LIMITS[work]}
        if work in MOVED:
            names["device copy"], limits["device copy"] = "copy", NEAR_COPY
        places = {name: f"{MODULE}:{place}_{work}_{dtype}" for name, place in names.items()}
        found += rows(f"12 {work} {dtype}", raced(places, rounds, size, TOLERANCE[dtype]), limits)
    return found


def main() -> int:
    """Print the table, or say that there is no GPU."""
    from tests.benchmarks.report import text

    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.devices")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--small", action="store_true", help="tiny sizes, to see that everything runs")
    parser.add_argument("--dtype", choices=("float64", "float32"), default="float64")
    parser.add_argument("--only", choices=tuple(SIZES))
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    name = gpu()
    if name is None:
        print("row 12: no GPU on this machine (CuPy finds none), so nothing is measured")
        return 0
    lines = run(options.rounds, options.small, options.dtype, options.only)
    print(name)
    print(text(lines))
    if options.json:
        options.json.write_text(json.dumps({"gpu": name, "rows": lines}, indent=1))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
