"""Workers that die, hang, grow, lie or are left alone: every case has its outcome, and no process is left."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from gradcli.base.diagnostics import Diagnostic, GradcliError
from gradcli.batch.discovery.cases import BatchCase
from gradcli.batch.totals import Totals
from gradcli.batch.workers import supervisor
from gradcli.batch.workers.local_worker import answered, check_content, depends_on_machine
from gradcli.batch.workers.supervisor import Done, Task, report_of, supervise
from gradcli.checks.oracle.oracle_client import Oracle, TimeOver
from gradcli.checks.report import VERDICTS
from gradcli.interfaces.command_parts.acceptance import outcome
from gradcli.rendering.documents.verdicts import SENTENCES
from tests.support.processes import below, runs
from tests.support.report_views import text

ROOT = Path(__file__).parents[2]
LINUX = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


def tasks(*names: str, content: bytes | None = b"x**2") -> list[Task]:
    return [Task(index, name, 0, content) for index, name in enumerate(names)]


def run(folder: Path, cases: Any, jobs: int = 1, **more: Any) -> list[Done]:
    """All outcomes, sorted by index."""
    found = supervise(cases, {"folder": str(folder)}, jobs=jobs, **{"module": "tests.support.fake_worker", **more})
    return sorted(filter(None, found))


def log(folder: Path) -> list[tuple[str, int]]:
    """The cases that workers took, in order, and by which process."""
    lines = [line.split("\t") for line in (folder / "log").read_text().splitlines()]
    return [(name, int(pid)) for name, pid in lines]


def taken(folder: Path) -> list[str]:
    return [name for name, _ in log(folder)]


def until(met: Callable[[], object], seconds: float = 30.0) -> None:
    end = time.monotonic() + seconds
    while not met():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.01)


# --- crashes ----------------------------------------------------------------------------------------------------

DEATHS = {
    "killed": "killed by signal 9 (SIGKILL)",
    "segfault": "killed by signal 11 (SIGSEGV)",
    "exit": "exit code 3",
    "memory": "out of memory",
    "cut": "exit code 0",
    "garbage 6e6f6e73656e7365": "an answer that cannot be read",  # nonsense
    "garbage 37207b7d": "an answer that cannot be read",  # an answer to the seventh case
    "garbage fffe": "an answer that cannot be read",  # no UTF-8
    "differs": "killed by signal 11 (SIGSEGV), then exit code 4",
}


@pytest.mark.parametrize("jobs", [1, 4])
def test_every_case_has_its_own_outcome(tmp_path: Path, jobs: int) -> None:
    deaths = list(DEATHS)[:: 4 if jobs == 1 else 1]
    names = [name for number, death in enumerate(deaths) for name in (death, f"fine {number}")]
    names += ["loud", "once", "fails"]
    found = run(tmp_path, tasks(*names), jobs)
    assert [done.index for done in found] == list(range(len(names)))
    for name, done in zip(names, found, strict=True):
        if name in DEATHS:
            assert (done.line, done.reason) == (None, DEATHS[name]), name
        elif name == "fails":
            assert done == (done.index, '{"failure": "RuntimeError: broken"}', None)
        else:
            assert done.reason is None and done.line is not None
            assert json.loads(done.line) == {"path": name, "block": 0, "content": "x**2"}
    assert sorted(taken(tmp_path)) == sorted([*names, *deaths, "once"])
    again = taken(tmp_path)[len(names) :]
    assert sorted(again) == sorted([*deaths, "once"])  # at the end
    pids = [pid for _, pid in log(tmp_path)]
    later = pids[len(names) :]
    assert len(set(later)) == len(later) and not set(later) & set(pids[: len(names)])  # each in a fresh process


@LINUX
def test_a_worker_that_is_killed_from_outside(tmp_path: Path) -> None:
    names = [f"fine {i}" for i in range(9)] + ["waits 0.5"] + [f"fine {i}" for i in range(10, 20)]
    killed = False
    found = []
    for done in supervise(tasks(*names), {"folder": str(tmp_path)}, jobs=1, module="tests.support.fake_worker"):
        if done is not None:
            found.append(done)
        if not killed and len(found) == 9:
            until(lambda: "waits 0.5" in taken(tmp_path))
            os.kill(log(tmp_path)[-1][1], signal.SIGKILL)
            killed = True
    assert killed and all(done.line for done in found)
    assert sorted(done.index for done in found) == list(range(20))
    assert sorted(taken(tmp_path)) == sorted([*names, "waits 0.5"])


def test_a_worker_that_dies_between_cases_costs_no_case(tmp_path: Path) -> None:
    def given() -> Iterator[Task]:
        for task in tasks("idles", "fine", "fine"):
            yield task
            time.sleep(0.25)

    assert all(done.line for done in run(tmp_path, given()))
    assert taken(tmp_path) == ["idles", "fine", "fine"]
    assert len({pid for _, pid in log(tmp_path)}) == 2


def test_no_sign_of_life(tmp_path: Path) -> None:
    found = run(tmp_path, tasks("hangs", "fine", "slow", "spins"), 4, seconds=0.9)
    assert [done.reason for done in found] == ["no sign of life for 0.9 s", None, None, "no sign of life for 0.9 s"]
    assert sorted(taken(tmp_path)) == ["fine", "hangs", "slow", "spins"]  # not tried again


def test_workers_that_do_not_start_are_an_error_of_their_own(tmp_path: Path) -> None:
    with pytest.raises(GradcliError, match=r"GC999.*do not start"):
        run(tmp_path, tasks("fine", "fine", "fine", "fine"), 2, module="tests.no_such_module")


def test_a_worker_that_never_reads_blocks_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEVER_READS", "1")
    monkeypatch.setattr(supervisor, "STARTING", 0.2)
    started = time.monotonic()
    with pytest.raises(GradcliError, match="no sign of life"):
        run(tmp_path, tasks("fine", content=b"x" * 2**22), seconds=0.1)
    assert time.monotonic() - started < 5


def test_much_is_sent_and_comes_back(tmp_path: Path) -> None:
    content = bytes(range(256)) * 2**12
    found = run(tmp_path, tasks("fine", "fine", content=content), 2)
    assert all(json.loads(str(done.line))["content"].encode("latin-1") == content for done in found)


# --- limits -----------------------------------------------------------------------------------------------------


def test_memory_is_bounded(tmp_path: Path) -> None:
    assert run(tmp_path, tasks("grows", "fine"), memory=250)[0].reason == "out of memory"


@LINUX
def test_a_worker_that_has_grown_is_replaced(tmp_path: Path) -> None:
    assert all(done.line for done in run(tmp_path, tasks("fine", "grows", "fine", "fine")))
    first, grown, *later = (pid for _, pid in log(tmp_path))
    assert first == grown and len(set(later)) == 1 and later[0] != grown


@LINUX
def test_an_oracle_takes_over_the_limit_of_its_worker() -> None:
    outcomes = supervise([Task(0, "x.grad", 0, b"x = 2; x**2")], {}, jobs=1)
    with closing(outcomes):
        assert any(outcomes)
        limits = [Path(f"/proc/{one}/limits").read_text() for one in below(os.getpid()) if runs(one)]
        bounds = [re.search(r"Max cpu time +(\S+)", text)[1] for text in limits if "Max cpu time" in text]
    assert len([one for one in bounds if one != "unlimited"]) >= 2  # the worker and its oracle


def test_cpu_time_ends_what_nobody_can_end() -> None:
    code = "from gradcli.base.child_process import *; extend_cpu_limit(0.1); import tests.support.fake_worker as w; w.spin()"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, timeout=60, check=False)
    assert done.returncode == -signal.SIGXCPU


# --- the caller -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("jobs", [1, 3])
def test_tasks_are_taken_when_a_worker_is_free(tmp_path: Path, jobs: int) -> None:
    begun = 0

    def given() -> Iterator[Task]:
        nonlocal begun
        for task in tasks(*("fine" for _ in range(30))):
            begun += 1
            yield task

    over = 0
    for done in supervise(given(), {"folder": str(tmp_path)}, jobs=jobs, module="tests.support.fake_worker"):
        over += done is not None
        assert begun <= over + jobs
    assert begun == over == 30


def test_the_caller_hears_something_twice_a_second(tmp_path: Path) -> None:
    outcomes = list(
        supervise(tasks("waits 0.9"), {"folder": str(tmp_path)}, jobs=1, module="tests.support.fake_worker")
    )
    assert outcomes[:2] == [None, None] and sum(map(bool, outcomes)) == 1


def test_the_time_of_the_caller_counts_against_no_worker(tmp_path: Path) -> None:
    found = []
    for done in supervise(
        tasks("fine", "waits 1.5"), {"folder": str(tmp_path)}, jobs=2, seconds=0.9, module="tests.support.fake_worker"
    ):
        found.append(done)
        if done is not None and done.index == 0:
            time.sleep(1.3)
    assert sorted(done.index for done in found if done) == [0, 1] and all(done.line for done in found if done)


@LINUX
def test_a_closed_generator_leaves_no_process(tmp_path: Path) -> None:
    before = below(os.getpid())
    outcomes = supervise(
        tasks("fine", "family", "hangs"), {"folder": str(tmp_path)}, jobs=3, module="tests.support.fake_worker"
    )
    for _ in outcomes:
        if (tmp_path / "pids").exists():
            break
    processes = below(os.getpid()) - before
    assert {int(word) for word in (tmp_path / "pids").read_text().split()} < processes
    started = time.monotonic()
    outcomes.close()
    took = time.monotonic() - started
    until(lambda: not any(map(runs, processes)), 1.0)
    assert took < 5  # a task runs for minutes; the machine may be busy
    assert not below(os.getpid()) - before


@LINUX
def test_a_parent_that_is_killed_leaves_no_process(tmp_path: Path) -> None:
    """Though a worker and a process of its own are inside C code that lets no thread of theirs run."""
    code = (
        "import sys; from gradcli.batch.workers.supervisor import Task, supervise; "
        "list(supervise([Task(0, 'family', 0, None)], {'folder': sys.argv[1]}, jobs=1, module='tests.support.fake_worker'))"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    parent = subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path)], env=environment, cwd=tmp_path, stderr=subprocess.DEVNULL
    )
    until((tmp_path / "pids").exists)
    processes = below(parent.pid)
    assert processes == {int(word) for word in (tmp_path / "pids").read_text().split()}
    parent.kill()
    parent.wait()
    until(lambda: not any(map(runs, processes)), 2.0)


# --- the real worker ----------------------------------------------------------------------------------------------

SCRIPTS = [f"x = 2\nx**{power}" for power in range(2, 8)] + ["x = 2\nassert grad(x**2, x) == x\nx", "sine(x", "é = 1"]


@LINUX
def test_real_workers(tmp_path: Path) -> None:
    """One of which is killed with its case, and one oracle; the bytes that were sent are judged, not the file."""
    (tmp_path / "0.grad").write_text("1 +")
    contents = [text.encode("latin-1") for text in SCRIPTS]
    cases = [Task(index, str(tmp_path / f"{index}.grad"), 0, content) for index, content in enumerate(contents)]
    cases.append(Task(len(cases), str(tmp_path / "missing.grad"), 0, None))
    begun = below(os.getpid())
    plain = {task.index: answered(task.path, task.block, task.content, {"at": []}) for task in cases}
    begun = below(os.getpid()) - begun | begun  # with the oracle of this process
    found: dict[int, str | None] = {}
    kills = 0
    for done in supervise(cases, {"at": []}, jobs=1):
        if done is not None:
            found[done.index] = done.line
        if kills < 2 and (done is not None or kills) and (processes := below(os.getpid()) - begun):
            os.kill(max(processes) if kills else min(processes), signal.SIGKILL)
            kills += 1
    assert kills == 2 and not below(os.getpid()) - begun
    assert {index: judged(line) for index, line in found.items()} == {i: judged(line) for i, line in plain.items()}
    verdicts = [[one["verdict"] for one in judged(line)["report"]["checks"]] for _, line in sorted(found.items())]
    assert verdicts[:7] == [["PROVED"]] * 6 + [["PROVED", "DISAGREES"]]
    codes = [judged(found[i])["report"]["checks"][0]["diagnostics"][0]["code"] for i in range(7, 10)]
    assert codes == ["GC113", "GC102", "GC601"]


def judged(line: str | None) -> dict[str, Any]:
    """An answer without the time that it took."""
    answer: dict[str, Any] = json.loads(str(line))
    assert len(answer.pop("seconds")) == len(answer["report"]["checks"])
    assert answer["opened"] == [] and answer["clock"] is False
    return answer


def test_what_depends_on_the_machine_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def late(*asked: Any, **question: Any) -> Any:
        raise TimeOver

    with monkeypatch.context() as patch:
        patch.setattr(Oracle, "ask", late)
        assert json.loads(answered("x.grad", 0, b"x = 2; x**2", {}))["clock"] is True
    report = check_content("x.grad", 0, b"sine(", {})
    assert not depends_on_machine(report)
    check = report.checks[0]
    object.__setattr__(check, "diagnostics", (*check.diagnostics, Diagnostic("GC506", "no memory")))
    assert depends_on_machine(report)


def test_a_failure_of_gradcli_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "TypeError" in json.loads(answered("x.grad", 0, b"x", {"no_such_option": 1}))["failure"]
    monkeypatch.setattr("gradcli.base.child_process.CODE", "import a_module_that_does_not_exist_{module}  # {paths}")
    monkeypatch.setattr("gradcli.checks.oracle.oracle_client._shared", [Oracle()])
    assert "GC999" in json.loads(answered("x.grad", 0, b"x = 2; x**2", {}))["failure"]


# --- reports ----------------------------------------------------------------------------------------------------


def test_reports_of_what_could_not_be_checked() -> None:
    crashed = report_of(Done(0, None, "exit code 3"), BatchCase("a.grad"))
    (check,) = crashed.checks
    assert (check.id, check.verdict, check.evidence) == ("crash", "CRASHED", {"reason": "exit code 3"})
    assert (check.file, check.line, check.passed) == ("a.grad", None, False)
    assert crashed.summary == {"passed": 0, "failed": 1, "inconclusive": 0, "CRASHED": 1}
    block = report_of(Done(0, None, "exit code 3"), BatchCase("a.md", 2, "x**2\n", 4))
    assert block.checks[0].line == 4
    assert block.block == 2
    failed = report_of(Done(1, '{"failure": "KeyError: 1"}', None), BatchCase("b.grad"))
    assert (failed.checks[0].verdict, failed.checks[0].message) == ("ERROR", "internal error: KeyError: 1")
    real = report_of(Done(2, answered("c.grad", 0, b"x = 2; x**2", {}), None), BatchCase("c.grad"))
    assert [one.verdict for one in real.checks] == ["PROVED"] and real.checks[0].seconds is not None
    for reports in ([crashed], [failed], [real, crashed]):
        assert outcome(Totals.of(reports), lenient=True)[0] == 4
    junit = text("junit", [crashed])
    assert 'errors="1"' in junit and 'type="CRASHED"' in junit
    totals = Totals()
    totals.add(crashed)
    totals.add(failed)
    assert (totals.broken, totals.unreadable) == (2, 0)


def test_every_verdict_has_a_sentence_and_is_in_the_schema() -> None:
    schema = json.loads((ROOT / "gradcli/rendering/schema/common.json").read_text())
    assert list(VERDICTS) == schema["$defs"]["verdict"]["enum"] == list(SENTENCES)
