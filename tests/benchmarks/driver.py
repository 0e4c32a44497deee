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
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent.parent
REST = 0.3  # seconds between turns: threads of OpenBLAS spin for a while
WARM = 2
Row = dict[str, Any]


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
    workers = {name: Worker(place, size) for name, place in candidates.items()}
    here = {name: one for name, one in workers.items() if not is_absent(one.result)}
    try:
        reference = next(iter(here.values())).result
        for name, one in here.items():
            assert close(one.result, reference, rtol), f"{name}: {one.result}, not {reference}"
        times: dict[str, list[float]] = {name: [] for name in here}
        for turn in range(WARM + rounds):
            for name, one in here.items():
                seconds = one.run()
                if turn >= WARM:
                    times[name].append(seconds)
                time.sleep(min(REST, 10 * seconds))
        return {name: statistics.median(found) for name, found in times.items()}
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
    found: dict[str, list[float]] = {name: [] for name in candidates}
    for name in candidates:
        candidates[name]()
    for _ in range(rounds):
        for name, run in candidates.items():
            found[name].append(run())
    return {name: statistics.median(times) for name, times in found.items()}


def row(name: str, ours: float, yardstick: float, limit: float, against: str = "") -> Row:
    """One line of the table; times in seconds."""
    return {"name": name, "ours": ours, "against": against, "yardstick": yardstick, "ratio": ours / yardstick,
            "limit": limit}  # fmt: skip


def rows(name: str, times: Mapping[str, float], limits: Mapping[str, float]) -> list[Row]:
    """A line for each yardstick that ran."""
    return [row(name, times["ours"], times[peer], limit, peer) for peer, limit in limits.items() if peer in times]
