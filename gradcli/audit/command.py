"""Runs a command with its processes watched, and has the copies that they leave judged one by one.

The command keeps its own standard streams and its exit code. A copy has a limit of time, after which it is killed with
all that it started; a copy that dies takes nothing along. The first point of every gradient is judged before the second
of any.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from threading import Event, Lock, Thread
from time import monotonic
from typing import TYPE_CHECKING, Any, NamedTuple

from gradcli.audit import injected_folder
from gradcli.audit.watching.snapshots import SOCKET
from gradcli.diagnostics import error, visible

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import FrameType

    Record = dict[str, Any]

GRACE = 10.0  # beyond the time of a check: imports, and the sorting of what does not agree
WAITING = 24  # copies that may wait while the command runs; older ones are judged then
HELLO = 30.0  # seconds in which a copy that has called says who it is


class Limits(NamedTuple):
    """What an audit may take: seconds for one point, seconds for all, bytes of a point; `only` one package."""

    timeout: float
    budget: float
    size: int
    only: str
    jobs: int


class Judged(NamedTuple):
    """One call that was kept, and what became of it."""

    key: str
    call: int
    answer: Record


class Outcome(NamedTuple):
    """What a command did: its exit code, its Python processes, its gradients by key, their judged calls.

    `faults` are those of the watching itself; `seconds` is the time that judging took behind it.
    """

    code: int
    processes: int
    gradients: dict[str, Record]
    judged: list[Judged]
    faults: list[str]
    seconds: float


class Copy:
    """A copy of a process that waits at its end of a socket."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        connection.settimeout(HELLO)
        self.stream = connection.makefile("rw", encoding="utf-8")
        about = json.loads(self.stream.readline())
        self.key, self.call, self.pid = str(about["key"]), int(about["call"]), int(about["pid"])

    def judge(self, seconds: float) -> Judged:
        """Have it judged within so many seconds."""
        self.connection.settimeout(2 * seconds + GRACE)
        try:
            self.stream.write(json.dumps({"timeout": seconds}) + "\n")
            self.stream.flush()
            line = self.stream.readline()
            answer = json.loads(line) if line else {"error": "the copy of the process crashed while it was judged"}
        except TimeoutError:
            answer = {"error": f"a call did not come back within {2 * seconds + GRACE:g} s and was stopped"}
        except (OSError, ValueError) as problem:
            answer = {"error": f"the copy of the process crashed while it was judged ({problem})"}
        self.end()
        return Judged(self.key, self.call, answer)

    def end(self) -> None:
        """Kill it, with all that it started."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)
        with suppress(OSError, ValueError):
            self.stream.close()
        self.connection.close()


class Court:
    """Takes the calls of copies while the command runs, and judges them."""

    def __init__(self, folder: str, limits: Limits, progress: Callable[[int, int, str], None]) -> None:
        self.limits = limits
        self.progress = progress
        self.copies: list[Copy] = []
        self.judged: list[Judged] = []
        self.lock = Lock()
        self.closing = Event()
        self.spent = 0.0
        self.server = socket.socket(socket.AF_UNIX)
        self.server.bind(os.path.join(folder, SOCKET))
        self.server.listen(256)
        self.server.settimeout(0.1)
        self.thread = Thread(target=self._listen, daemon=True)
        self.thread.start()

    def _listen(self) -> None:
        while True:
            try:
                connection, _ = self.server.accept()
            except TimeoutError:
                if self.closing.is_set():
                    return
                continue
            except OSError:
                return
            with suppress(OSError, ValueError, KeyError):  # a copy that was killed before it spoke
                copy = Copy(connection)
                with self.lock:
                    self.copies.append(copy)
                    early = self.copies.pop(0) if len(self.copies) > WAITING else None
                if early is not None:
                    self._judge(early)

    def _judge(self, copy: Copy) -> None:
        started = monotonic()
        if self.spent > self.limits.budget:
            copy.end()
            told = f"the time for all of them ({self.limits.budget:g} s, --budget) was over"
            self.judged.append(Judged(copy.key, copy.call, {"unjudged": told}))
            return
        found = copy.judge(self.limits.timeout)
        with self.lock:
            self.judged.append(found)
            self.spent += (monotonic() - started) / self.limits.jobs

    def decide(self) -> list[Judged]:
        """Judge what is left; everything that was judged, in the order of the calls."""
        self.closing.set()
        self.thread.join()
        turns: dict[str, int] = {}
        order = []
        for copy in sorted(self.copies, key=lambda one: (one.key, one.call)):
            turns[copy.key] = turns.get(copy.key, 0) + 1
            order.append((turns[copy.key], copy))
        order.sort(key=lambda one: one[0])
        with ThreadPoolExecutor(self.limits.jobs) as pool:
            for done, _ in enumerate(pool.map(self._judge, [copy for _, copy in order]), 1):
                self.progress(done, len(order), "judging")
        return sorted(self.judged, key=lambda one: (one.key, one.call))

    def close(self) -> None:
        """End every copy that still waits."""
        self.closing.set()
        self.thread.join()
        self.server.close()
        for copy in self.copies:
            copy.end()


def audited(argv: Sequence[str], limits: Limits, progress: Callable[[int, int, str], None]) -> Outcome:
    """Run a command and judge the gradients that its Python processes call.

    Raises GradcliError GC745 where the command cannot be started, or the system has no `fork`.
    """
    if not hasattr(os, "fork"):
        raise error("GC745", "an audit copies processes, which this system cannot do", help="use Linux or macOS")
    folder = tempfile.mkdtemp(prefix="gradcli-")
    try:
        Path(folder, "options.json").write_text(json.dumps({"only": limits.only, "size": limits.size}), "utf-8")
        court = Court(folder, limits, progress)
        try:
            code = run(argv, folder)
            ended = monotonic()
            judged = court.decide()
        finally:
            court.close()
        return Outcome(code, *recorded(folder), judged, troubles(folder), monotonic() - ended)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def run(argv: Sequence[str], folder: str) -> int:
    """The exit code of a command, as a shell has it; Ctrl-C is for the command, and the audit goes on behind it."""
    path = os.pathsep.join(one for one in (injected_folder(), os.environ.get("PYTHONPATH")) if one)
    environment = {**os.environ, "PYTHONPATH": path, "GRADCLI_AUDIT": folder}
    try:
        process = subprocess.Popen(list(argv), env=environment)
    except OSError as problem:
        reason = (problem.strerror or "").lower()
        raise error("GC745", f"cannot start {visible(argv[0], 200)}: {reason}", help="is it on the PATH?") from None
    before = signal.signal(signal.SIGINT, lambda number, frame: leave(number, frame))
    try:
        code = process.wait()
    except BaseException:  # this process was asked to end
        process.terminate()
        process.wait()
        raise
    finally:
        signal.signal(signal.SIGINT, before)
    return code if code >= 0 else 128 - code


def leave(number: int, frame: FrameType | None) -> None:
    """Leave a signal to the command, which gets it as well."""


def recorded(folder: str) -> tuple[int, dict[str, Record]]:
    """How many Python processes reported, and the gradients that they called, those of several processes together."""
    processes = 0
    found: dict[str, Record] = {}
    for path in sorted(Path(folder).glob("*.jsonl")):
        processes += 1
        calls: dict[str, int] = {}
        untracked: dict[str, int] = {}
        for line in path.read_text("utf-8").splitlines():
            record = json.loads(line)
            if "gradient" in record:
                found.setdefault(record["key"], {**record["gradient"], "skipped": ""})
            if "counts" in record:
                calls[record["counts"]] = record["calls"]
                untracked[record["counts"]] = record.get("untracked", 0)
                found[record["counts"]]["skipped"] = record.get("skipped") or found[record["counts"]]["skipped"]
        for key, count in calls.items():
            one = found[key]
            one["total"] = one.get("total", 0) + count
            one["unwanted"] = one.get("unwanted", 0) + untracked[key]
    return processes, found


def troubles(folder: str) -> list[str]:
    """What went wrong in the watching itself."""
    found = [path.read_text("utf-8") for path in sorted(Path(folder).glob("*.trouble"))]
    for path in sorted(Path(folder).glob("*.jsonl")):
        records = map(json.loads, path.read_text("utf-8").splitlines())
        found += [str(one["fault"]) for one in records if "fault" in one]
    return list(dict.fromkeys(found))
