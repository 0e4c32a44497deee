"""Names of candidates go in, their times come out: each in a process of its own, called in turn, medians counted.

A candidate is `module:function`; the function prepares the work and returns it with a result to compare. In one process
the thread pools of libraries get in each other's way and cost a factor of 2 to 100, so they never share one.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from tests.benchmarks.load import quiet_rounds

ROOT = Path(__file__).parent.parent.parent
REST = 0.3  # seconds between turns: threads of OpenBLAS spin for a while
WARM = 2
LIBRARIES = ("torch", "jax", "autograd", "casadi", "polars")
Row = dict[str, Any]


class Choice:
    """Which peers run: all that are installed, or the named ones; of some rows, which parts run alone."""

    peers: tuple[str, ...] = LIBRARIES
    parts: ClassVar[dict[str, tuple[str, ...]]] = {}


def wanted(candidate: str) -> bool:
    """Whether a candidate is ours, plain NumPy or Python, or of a library that is to run: `torch.compile` is torch's."""
    library = candidate.partition(".")[0]
    return library not in LIBRARIES or library in Choice.peers


def environment() -> dict[str, str]:
    """What every process gets: the package, its bytecode, idle threads that do not spin."""
    found = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_WAIT_POLICY": "passive", "OPENBLAS_THREAD_TIMEOUT": "4"}
    found.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed package has its bytecode
    return found


class Worker:
    """A process with one candidate, that works when it is told to."""

    def __init__(self, name: str, size: int) -> None:
        command = [sys.executable, "-m", "tests.benchmarks.worker", name, str(size)]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment(), cwd=ROOT
        )
        self.result = self._answer()

    def _answer(self) -> Any:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        return json.loads(line) if line else {"absent": f"ended with {self.process.wait()}"}

    def run(self) -> float:
        """The seconds of one turn."""
        assert self.process.stdin is not None
        self.process.stdin.write("go\n")
        self.process.stdin.flush()
        return float(self._answer())

    def close(self) -> None:
        if self.process.stdin is not None:
            self.process.stdin.close()
        self.process.wait(timeout=20)


def raced(candidates: Mapping[str, str], rounds: int, size: int = 0, rtol: float = 1e-9) -> dict[str, float]:
    """The median time of each candidate whose library is there; their results have to agree.

    `size` is handed to every candidate.
    """
    workers = {name: Worker(place, size) for name, place in candidates.items() if wanted(name)}
    here = {name: one for name, one in workers.items() if not is_absent(one.result)}
    try:
        reference = next(iter(here.values())).result
        for name, one in here.items():
            assert close(one.result, reference, rtol), f"{name}: {one.result}, not {reference}"

        def turn() -> dict[str, float]:
            found = {}
            for name, one in here.items():
                found[name] = one.run()
                time.sleep(min(REST, 10 * found[name]))
            return found

        for _ in range(WARM):
            turn()
        return medians(quiet_rounds(turn, rounds, [one.process.pid for one in workers.values()]))
    finally:
        for one in workers.values():
            one.close()


def is_absent(result: Any) -> bool:
    return isinstance(result, dict) and "absent" in result


def close(one: Any, other: Any, rtol: float) -> bool:
    """Whether two results, numbers or lists of numbers, agree."""
    if isinstance(one, list):
        return len(one) == len(other) and all(close(a, b, rtol) for a, b in zip(one, other, strict=True))
    return abs(one - other) <= rtol * max(1.0, abs(one), abs(other))


def seconds(command: list[str], stdin: bytes = b"") -> float:
    """The wall-clock time of one process."""
    start = time.perf_counter()
    subprocess.run(command, input=stdin, capture_output=True, check=True, env=environment(), cwd="/")
    return time.perf_counter() - start


def interleaved(candidates: dict[str, Callable[[], float]], rounds: int) -> dict[str, float]:
    """The median of each candidate over several rounds, one after the other in each round."""
    for run in candidates.values():
        run()
    return medians(quiet_rounds(lambda: {name: run() for name, run in candidates.items()}, rounds))


def medians(found: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Of each candidate, over the rounds."""
    return {name: statistics.median(times[name] for times in found) for name in found[0]}


def row(name: str, ours: float, yardstick: float, limit: float, against: str = "", unit: str = "ms") -> Row:
    """One line of the table; times in seconds, shown in `unit`, other figures in the unit that is named."""
    return {"name": name, "ours": ours, "against": against, "yardstick": yardstick, "ratio": ours / yardstick,
            "limit": limit, "unit": unit}  # fmt: skip


def rows(name: str, times: Mapping[str, float], limits: Mapping[str, float]) -> list[Row]:
    """A line for each yardstick that ran."""
    return [row(name, times["ours"], times[peer], limit, peer) for peer, limit in limits.items() if peer in times]
