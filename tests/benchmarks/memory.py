"""Peak memory of programs that can go block by block: what a run adds to its inputs and outputs, against 64 MiB.

Each in a process of its own. The peak is the kernel's, reset before the run that is looked at; libraries and inputs are
there already. The first run makes the plan, the second uses it: the larger peak counts. It is NumPy alone that is looked
at: with the extra `fast` a compiler is loaded, which takes 130 MiB once.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from tests.benchmarks import gradbench, network, stencils
from tests.benchmarks.driver import ROOT, Row, environment, row

MIB = 2**20
ALLOWED = 64.0  # MiB beside inputs and outputs
WORKS = {
    "gmm": 20_000,
    "network": 20_000,
    "Rosenbrock": 10_000_000,
    "points": 10_000_000,
    "points in a file": 5_000_000,
}


def status(field: str) -> int:
    """A figure of this process in bytes: VmRSS is what it holds, VmHWM the most that it held since `reset`."""
    line = next(one for one in Path("/proc/self/status").read_text().splitlines() if one.startswith(field))
    return int(line.split()[1]) * 1024


def reset() -> None:
    Path("/proc/self/clear_refs").write_text("5")


def prepared(work: str, size: int) -> Callable[[], Any]:
    """One run of a workload, its inputs made."""
    import gradcli

    random = np.random.default_rng(2)
    if work == "gmm":
        leaves = gradbench.data("gmm", 1)
        leaves["X"] = random.normal(size=(size, leaves["X"].shape[1]))
        text = (ROOT / "samples" / "gradbench" / "gmm.grad").read_text(encoding="utf-8")
        f = gradcli.compile(text, wrt=gradbench.WRT["gmm"])
        return lambda: f.value_and_grad(**leaves)
    if work == "network":
        given = network.data(1 if size > 1000 else 0)
        g = gradcli.compile(network.SCRIPT, wrt=network.WEIGHTS)
        return lambda: g.value_and_grad(**given)
    if work == "Rosenbrock":
        x = random.uniform(-1, 1, size)
        h = gradcli.compile(stencils.SCRIPT)
        return lambda: h.value_and_grad(x=x)
    if work == "points":
        xs, ys = random.uniform(0.5, 2, size), random.uniform(0.5, 2, size)
        k = gradcli.compile("sin(x*y)*exp(-x) + log(1 + y**2)*x")
        return lambda: k.at_points(x=xs, y=ys)
    from gradcli.batch.points import answer_points

    folder = tempfile.TemporaryDirectory()
    source, target = Path(folder.name) / "in.npy", Path(folder.name) / "out.npy"
    made = np.lib.format.open_memmap(source, mode="w+", dtype=np.float64, shape=(size, 2))
    for at in range(0, size, 100_000):
        made[at : at + 100_000] = random.uniform(0.5, 2, made[at : at + 100_000].shape)
    del made

    def streamed() -> None:
        assert folder.name
        answer_points("sin(x*y)*exp(-x) + log(1 + y**2)*x", str(source), str(target))
        target.unlink()

    return streamed


def measured(work: str, size: int) -> dict[str, float]:
    """The bytes of the outputs, and what two runs added to them at most."""
    run = prepared(work, size)
    added = []
    outputs = 0
    for _ in range(2):
        held = status("VmRSS")
        reset()
        found = run()
        parts = [] if found is None else [found[0], *found[1].values()]
        outputs = sum(np.asarray(part).nbytes for part in parts)
        added.append(status("VmHWM") - held - outputs)
        del found, parts
    return {"outputs": outputs, "added": max(added), "first": added[0], "second": added[1]}


def alone(work: str, size: int) -> dict[str, float]:
    """The same in a process of its own."""
    command = [sys.executable, "-m", "tests.benchmarks.memory", work, str(size)]
    numpy_alone = {**environment(), "GRADCLI_FAST": "0"}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=numpy_alone, cwd=ROOT)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def run(rounds: int, small: bool) -> list[Row]:
    """Inputs, outputs and 64 MiB: what is added to the first two; nothing where the kernel does not tell it."""
    found: list[Row] = []
    if not os.access("/proc/self/clear_refs", os.W_OK):
        return found
    for work, size in WORKS.items():
        added = alone(work, max(20, size // 1000) if small else size)["added"] / MIB
        found.append(row(f"memory, {work}", max(added, 0.01), ALLOWED, 1.0, "64 MiB beside in- and outputs", "MiB"))
    return found


def main() -> None:
    """`python -m tests.benchmarks.memory WORK SIZE`: the figures of one process, as JSON."""
    print(json.dumps(measured(sys.argv[1], int(sys.argv[2]))))


if __name__ == "__main__":
    main()
