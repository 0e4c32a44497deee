"""A real Dask cluster on this machine: the results are those of a local run, also where a worker of it is killed.

The scheduler and the workers are processes of their own. What a local run reports, or writes, is the oracle.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

pytest.importorskip("distributed", reason="needs the extra cluster")

from gradcli.batch import cluster, dask_worker  # noqa: E402
from gradcli.batch.cases import Case  # noqa: E402
from gradcli.batch.points import answer_points, sweep  # noqa: E402
from gradcli.batch.run import check_paths  # noqa: E402
from gradcli.batch.supervisor import Done, Task, supervise  # noqa: E402
from gradcli.batch.transport import report_to_json  # noqa: E402
from gradcli.diagnostics import GradcliError  # noqa: E402
from tests.test_points_killed import assert_same, below, runs  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = str(Path(__file__).parents[1])
LINUX = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


class Machines:
    """A scheduler and its workers, as processes."""

    def __init__(self, folder: Path, workers: int, **environment: str) -> None:
        self.folder = folder
        self.environment = {**os.environ, "PYTHONPATH": ROOT, **environment}
        self.processes: list[subprocess.Popen[bytes]] = []
        place = folder / "scheduler.json"
        self.scheduler = self.start("scheduler", "--host", "127.0.0.1", "--port", "0", "--scheduler-file", str(place))
        deadline = time.monotonic() + 30
        while not place.exists() or not place.read_text().endswith("}"):
            assert time.monotonic() < deadline and self.scheduler.poll() is None, self.log()
            time.sleep(0.02)
        self.address: str = json.loads(place.read_text())["address"]
        self.workers = [self.worker() for _ in range(workers)]

    def worker(self, **environment: str) -> subprocess.Popen[bytes]:
        return self.start("worker", self.address, "--no-nanny", "--nthreads", "1", **environment)

    def start(self, kind: str, *arguments: str, **environment: str) -> subprocess.Popen[bytes]:
        call = [sys.executable, "-m", f"distributed.cli.dask_{kind}", *arguments, "--no-dashboard"]
        with open(self.folder / "log", "ab") as log:
            elsewhere = self.folder / f"machine{len(self.processes)}"  # no relative path means anything there
            elsewhere.mkdir()
            process = subprocess.Popen(call, cwd=elsewhere, env={**self.environment, **environment}, stderr=log)
        self.processes.append(process)
        return process

    def log(self) -> str:
        return (self.folder / "log").read_text()[-3000:]

    def end(self) -> None:
        for process in self.processes:
            process.kill()
        for process in self.processes:
            process.wait()


@contextmanager
def machines(folder: Path, workers: int, **environment: str) -> Iterator[Machines]:
    folder.mkdir(exist_ok=True)
    made = Machines(folder, workers, **environment)
    try:
        yield made
    finally:
        made.end()


def scripts(folder: Path, count: int) -> list[str]:
    """Scripts of several kinds, some of which fail, and one that reads data; relative to the folder."""
    kinds = (
        "x = {0}\nx**3 + {0}*x\n",
        "x = 0\nabs(x - {0}*x)\n",
        "x = {0}\ndef f(x):\n    return x**2\ndef f.vjp(x, ct):\n    return 3*x*ct\nf(x)\n",
        'w = [1, 2, {0}]\nsum(w*load("data/rows.csv", column=0))\n',
        "x = {0}\nx +* 2\n",
        'x = {0}\nx*sum(load("../outside.csv"))\n',
        'x = {0}\nx*sum(load("missing.npy"))\n',
    )
    (folder / "models" / "data").mkdir(parents=True)
    (folder / "models" / "data" / "rows.csv").write_text("1,2\n3,4\n5,nan\n")
    for number in range(count):
        (folder / "models" / f"m{number:03}.grad").write_text(kinds[number % len(kinds)].format(number % 5 + 2))
    return ["models"]


def plain(reports: list[object]) -> list[object]:
    return [report_to_json(one) for one in reports]  # type: ignore[arg-type]


def gone(processes: set[int]) -> bool:
    deadline = time.monotonic() + 15
    while any(map(runs, processes)) and time.monotonic() < deadline:
        time.sleep(0.05)
    return not any(map(runs, processes))
