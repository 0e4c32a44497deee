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

from gradcli.base.diagnostics import GradcliError
from gradcli.batch.check_run import Run, Workforce
from gradcli.batch.discovery.cases import BatchCase
from gradcli.batch.discovery.walk import find_cases
from gradcli.batch.points import answer_points, sweep
from gradcli.batch.workers import cluster, dask_worker
from gradcli.batch.workers.supervisor import Done, Task, supervise
from gradcli.batch.workers.transport import report_to_json
from gradcli.language.source import Source
from tests.batch.test_points_killed import assert_same
from tests.support.processes import below, runs

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = str(Path(__file__).parents[2])
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


def worker_ready(machines: Machines) -> None:
    """Wait until all workers have reached the scheduler."""
    from distributed import Client

    with Client(machines.address, timeout=20, set_as_default=False) as client:
        client.wait_for_workers(len(machines.workers), timeout=30)


def refused(address: str, code: str) -> str:
    with pytest.raises(GradcliError) as problem:
        list(cluster.supervise_on(address, [Task(0, "x.grad", 0, b"x = 2; x**2")], {}))
    assert [one.code for one in problem.value.diagnostics] == [code]
    return str(problem.value)


# --- quick: a cluster inside this process -----------------------------------------------------------------


@pytest.fixture(scope="module")
def inside() -> Iterator[str]:
    from distributed import LocalCluster

    with LocalCluster(
        n_workers=1, threads_per_worker=2, processes=False, protocol="tcp", host="127.0.0.1", dashboard_address=None
    ) as made:
        yield made.scheduler_address
    while dask_worker.TEAMS.idle:
        dask_worker.TEAMS.end(dask_worker.TEAMS.idle[0][0])


def test_checks_and_points_inside_one_process(inside: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = scripts(tmp_path, 7)
    monkeypatch.chdir(tmp_path)
    tasks = [
        Task(n, path, 0, BatchCase(path).content()) for n, path in enumerate([*map(str, Path("models").glob("*"))])
    ]
    options = {"samples": 1, "timeout": 60.0}
    local = {done.index: json.loads(str(done.line)) for done in supervise(tasks, options, jobs=1) if done}
    found = {done.index: json.loads(str(done.line)) for done in cluster.supervise_on(inside, tasks, options) if done}
    for answers in (local, found):
        for one in answers.values():
            del one["seconds"]
            one["opened"] = sorted({tuple(file) for file in one["opened"]})
    assert found == local  # `opened` too: a journal on this machine knows the files by these names
    assert any(one["opened"] for one in found.values()) and paths == ["models"]

    monkeypatch.setattr(sweep, "ENTRIES", 1)  # 64 rows in a block
    np.save("in.npy", np.random.default_rng(1).uniform(1, 2, size=(1000, 2)))
    np.save("factor.npy", np.array([2.0, 3.0]))
    script = 'sin(x)*y + sum(load("factor.npy")*x)'
    for out, address in (("here.csv", None), ("there.csv", inside)):
        answer_points(script, "in.npy", out, cluster=address)
    assert_same(Path("there.csv"), Path("here.csv"))
    Path("wrong.csv").write_text("x,y\n1,2\n3,four\n")
    with pytest.raises(GradcliError, match="GC616"):
        answer_points(script, "wrong.csv", "none.csv", cluster=inside)
    question = {"key": "1", "options": {}, "gradient": True, "shared": {}}
    with pytest.raises(GradcliError, match="GC202"):  # an error of the worker
        list(cluster.answer_on(inside, Source("x*y"), question, [({"x": np.ones(3)}, 0)]))


FATES = (
    "fine", "once", "differs", "killed", "segfault", "exit", "exception", "memory", "cut", "garbage 31207b7d", "loud",
    "grows", "fails",
)  # fmt: skip


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="kills itself")
def test_cases_that_take_down_their_process(inside: str, tmp_path: Path) -> None:
    """The worker of Dask lives on, and what is said of each case is what a local run says."""
    found = []
    for name in ("here", "there"):
        folder = tmp_path / name
        folder.mkdir()
        told = {"folder": str(folder)}
        tasks = [Task(n, fate, 0, b"x") for n, fate in enumerate(FATES)]
        run = (
            supervise(tasks, told, jobs=2, module="tests.support.fake_worker")
            if name == "here"
            else cluster.supervise_on(inside, tasks, told, module="tests.support.fake_worker")
        )
        found.append(sorted(filter(None, run)))
    assert found[1] == found[0] and len(found[0]) == len(FATES)
    assert {done.reason for done in found[0]} > {None, "exit code 3", "out of memory"}


def test_what_differs_is_refused(inside: str, monkeypatch: pytest.MonkeyPatch) -> None:
    own = dask_worker.versions()
    told = iter([{**own, "numpy": "0.1"}])  # to the one who asks first: this side
    monkeypatch.setattr(dask_worker, "versions", lambda: next(told, own))
    assert f"numpy is {np.__version__} there and 0.1 here" in refused(inside, "GC742")


@pytest.mark.parametrize(
    "address", ["tcp://127.0.0.1:1", "bogus://x:1", "127.0.0.1", "", "tls://127.0.0.1:1", "silent"]
)
def test_an_address_without_a_scheduler(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "CONNECT", 0.3)
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        if address == "silent":
            address = f"tcp://127.0.0.1:{server.getsockname()[1]}"
        begin = time.monotonic()
        assert "dask scheduler" in refused(address, "GC741")
        assert time.monotonic() - begin < 10


def test_dask_that_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    assert "gradcli[cluster]" in refused("tcp://127.0.0.1:1", "GC713")


def test_one_point_needs_no_cluster(capsys: pytest.CaptureFixture[str]) -> None:
    from gradcli.interfaces import cli

    assert cli.main(["grad", "x**2", "--at", "x=1", "--cluster", "tcp://127.0.0.1:1"]) == 2
    assert "--cluster needs --points" in capsys.readouterr().err


# --- deep: real processes ---------------------------------------------------------------------------------


@LINUX
@pytest.mark.deep
@pytest.mark.parametrize("failures", ["0", "3"])  # with 0 Dask blames each task of a worker that died
def test_a_worker_is_killed_while_it_checks(failures: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = scripts(tmp_path, 70)
    monkeypatch.chdir(tmp_path)
    local = plain(Run(find_cases(paths)).reports())
    with machines(tmp_path / "dask", 2, DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES=failures) as dask:
        killed: set[int] = set()

        def progress(done: int, total: int, label: str, failed: int) -> None:
            if done == 20 and not killed:
                victim = dask.workers[0]
                killed.update(below(victim.pid))
                victim.send_signal(signal.SIGKILL)
                assert killed  # the processes that checked for it

        worker_ready(dask)
        assert (
            plain(Run(find_cases(paths), workers=Workforce(cluster=dask.address), progress=progress).reports()) == local
        )
        assert gone(killed)
        children = below(dask.workers[1].pid)
        assert children
    assert gone(children)  # with the cluster the rest ends too


@LINUX
@pytest.mark.deep
def test_a_worker_is_killed_while_it_computes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pyarrow", reason="needs the extra parquet")
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sweep, "ENTRIES", 1 << 13)
    table = np.random.default_rng(1).uniform(1, 2, size=(300_000, 2))
    parquet.write_table(arrow.table({"x": table[:, 0], "y": table[:, 1]}), "big.parquet")
    script = "sin(x)*y + sum(exp(-x*arange(3)))"
    with machines(tmp_path / "dask", 2) as dask:
        worker_ready(dask)
        for ending in (".npy", ".parquet"):
            answer_points(script, "big.parquet", f"here{ending}")
        seen = []

        def stop(*told: object) -> None:
            seen.append(told)
            if len(seen) == 20:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            answer_points(script, "big.parquet", "there.parquet", cluster=dask.address, progress=stop)

        def kill(done: int, total: int, label: str) -> None:
            if done > 150_000:
                dask.workers[0].kill()

        done = answer_points(script, "big.parquet", "there.parquet", cluster=dask.address, progress=kill)
        assert done.points == 300_000 and done.resumed == 20 * 4096
        assert_same(Path("there.parquet"), Path("here.parquet"))
        answer_points(script, "big.parquet", "there.npy", cluster=dask.address)
        assert_same(Path("there.npy"), Path("here.npy"))


@LINUX
@pytest.mark.deep
@pytest.mark.parametrize("how", ["closed", "killed"])
def test_what_nobody_waits_for_ends(how: str, tmp_path: Path) -> None:
    """A process that would check for minutes, and its child, end with the run that wanted it; Dask's workers stay."""
    code = (
        "import sys; from gradcli.batch.workers.cluster import *; "
        "print([1 for _ in supervise_on(sys.argv[1], [Task(0, 'family', 0, b'x')], {'folder': sys.argv[2]}, "
        "module='tests.support.fake_worker')])"
    )
    with machines(tmp_path / "dask", 1) as dask:
        worker = dask.workers[0].pid
        if how == "killed":
            call = [sys.executable, "-c", code, dask.address, str(tmp_path)]
            with subprocess.Popen(call, env=dask.environment) as client:
                while len(below(worker)) < 2:
                    assert client.poll() is None
                    time.sleep(0.02)
                client.kill()
        else:
            told = {"folder": str(tmp_path)}
            run = cluster.supervise_on(
                dask.address, [Task(0, "family", 0, b"x")], told, module="tests.support.fake_worker"
            )
            for _ in run:
                if len(below(worker)) >= 2:
                    break
            run.close()
        assert gone(below(worker))
        assert dask.workers[0].poll() is None


def lose(run: Iterator[Done | None], found: list[Done], ending: list[subprocess.Popen[bytes]]) -> None:
    """Collect outcomes; the processes are killed behind the fifth one."""
    for done in filter(None, run):
        found.append(done)
        if len(found) == 5:
            for process in ending:
                process.kill()


@pytest.mark.deep
def test_a_cluster_that_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(cluster, "LOST", 2.0)
    tasks = [Task(n, f"m{n}.grad", 0, b"x = 2\nsin(x)") for n in range(60)]
    for which in ("workers", "scheduler"):
        with machines(tmp_path / which, 2) as dask:
            found: list[Done] = []
            worker_ready(dask)
            ending = dask.workers if which == "workers" else [dask.scheduler]
            with pytest.raises(GradcliError) as problem:
                lose(cluster.supervise_on(dask.address, tasks, {}), found, ending)
            assert problem.value.diagnostics[0].code == "GC743" and 5 <= len(found) < 60
            assert ("no workers for 2 s" if which == "workers" else "its scheduler") in str(problem.value)
            assert not [record for record in caplog.records if record.exc_info]  # no traceback on the terminal


@pytest.mark.deep
@pytest.mark.parametrize("which", ["another one", "none"])
def test_workers_with_another_gradcli(which: str, tmp_path: Path) -> None:
    import shutil

    other = tmp_path / "other"
    if which == "none":
        (other / "gradcli").mkdir(parents=True)
        (other / "gradcli" / "__init__.py").write_text('__version__ = "0"\n')
    else:
        shutil.copytree(Path(ROOT) / "gradcli", other / "gradcli", ignore=shutil.ignore_patterns("__pycache__"))
        with open(other / "gradcli" / "lowering" / "points.py", "a", encoding="utf-8") as text:
            text.write("# one more line\n")
    with machines(tmp_path / "dask", 1, PYTHONPATH=str(other)) as dask:
        told = refused(dask.address, "GC742")
        assert ("the code of gradcli is" if which != "none" else "gradcli.batch") in told
