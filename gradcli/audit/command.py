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
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from threading import Event, Lock, Thread
from time import monotonic
from typing import TYPE_CHECKING, Any, NamedTuple

from gradcli.audit.watching.snapshots import HOME, SOCKET
from gradcli.base.child_process import kill_all
from gradcli.base.diagnostics import error, visible

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from gradcli.audit.pairs import Pair

    Record = dict[str, Any]

INJECTED = str(Path(__file__).resolve().parent / "injected")  # a watched process has it first on its path
GRACE = 10.0  # beyond the time of a check: imports, and the sorting of what does not agree
WAITING = 24  # copies that may wait while the command runs; older ones are judged then
HELLO = 30.0  # seconds in which a copy that has called says who it is


class AuditLimits(NamedTuple):
    """What an audit may take: seconds for one point, seconds for all, bytes of a point; `only` one package.

    `callbacks`: whether functions that JAX traces may deliver their numbers. `again`: the key of the one gradient that
    is judged, and the number of its call.
    """

    timeout: float
    budget: float
    size: int
    only: str
    jobs: int
    callbacks: bool
    again: tuple[str, int] | None = None
    pairs: Sequence[Pair] = ()


class JudgedCall(NamedTuple):
    """One call that was kept, and what became of it."""

    key: str
    call: int
    answer: Record


class CommandOutcome(NamedTuple):
    """What a command did: its exit code, its Python processes, its gradients by key, their judged calls.

    `faults` are those of the watching itself, `missed` modules of pairs that could not be imported; `seconds` is the
    time that judging took behind it.
    """

    code: int
    processes: int
    gradients: dict[str, Record]
    judged: list[JudgedCall]
    faults: list[str]
    missed: list[str]
    seconds: float


class Copy:
    """A copy of a process that waits at its end of a socket."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        connection.settimeout(HELLO)
        self.stream = connection.makefile("rw", encoding="utf-8")
        about = json.loads(self.stream.readline())
        self.key, self.call, self.pid = str(about["key"]), int(about["call"]), int(about["pid"])

    def judge(self, seconds: float) -> JudgedCall:
        """Have it judged within so many seconds."""
        self.connection.settimeout(2 * seconds + GRACE)
        try:
            self.stream.write(json.dumps({"timeout": seconds}) + "\n")
            self.stream.flush()
            line = self.stream.readline()
            answer = json.loads(line) if line else {"error": "the copy of the process crashed during the check"}
        except TimeoutError:
            answer = {"error": f"a call did not return within {2 * seconds + GRACE:g} s and was stopped"}
        except (OSError, ValueError) as problem:
            answer = {"error": f"the copy of the process crashed during the check ({problem})"}
        self.end()
        return JudgedCall(self.key, self.call, answer)

    def end(self) -> None:
        """Kill it, with all that it started."""
        kill_all(self.pid)
        with suppress(OSError, ValueError):
            self.stream.close()
        self.connection.close()


class Exported:
    """A rule that a process has written down, which is judged in a process of its own."""

    CODE = (
        "import sys; sys.path[:] = {path}; from gradcli.audit.judging import judge_exported; "
        "judge_exported({exported!r}, {seconds}, {size}, {kept})"
    )

    def __init__(self, record: Record) -> None:
        self.key, self.call = str(record["job"]), int(record["call"])
        self.python = str(record["python"])
        self.about = {"exported": str(record["exported"]), "size": int(record["size"]), "kept": record["kept"]}
        self.about["path"] = [folder for folder in record["path"] if folder] + [HOME]

    def judge(self, seconds: float) -> JudgedCall:
        """Have it judged within so many seconds."""
        code = self.CODE.format(seconds=seconds, **self.about)
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        limit = 2 * seconds + GRACE
        try:
            done = subprocess.run(
                [self.python, "-P", "-c", code],
                env={**environment, "JAX_PLATFORMS": "cpu"},
                capture_output=True,
                text=True,
                timeout=limit,
                check=False,
            )
            answer = json.loads(done.stdout.splitlines()[-1])
        except subprocess.TimeoutExpired:
            answer = {"error": f"a call did not return within {limit:g} s and was stopped"}
        except (OSError, ValueError, IndexError):
            last = (done.stderr.strip().splitlines() or ["no output"])[-1]  # of a traceback it says what happened
            answer = {"error": f"the process of the check crashed: {visible(last, 200)}"}
        if not self.call:
            answer.setdefault("notes", []).append("at a random point: the program never called it with numbers")
        return JudgedCall(self.key, self.call, answer)

    def end(self) -> None:
        """It has no process yet."""


class Judge:
    """Takes the calls of copies while the command runs, and judges them."""

    def __init__(self, folder: str, limits: AuditLimits, progress: Callable[[int, int, str], None]) -> None:
        self.limits = limits
        self.progress = progress
        self.copies: list[Copy | Exported] = []
        self.judged: list[JudgedCall] = []
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

    def _judge(self, copy: Copy | Exported) -> None:
        started = monotonic()
        if self.spent > self.limits.budget:
            copy.end()
            reason = f"the time for all checks ({self.limits.budget:g} s) ran out: raise --budget"
            self.judged.append(JudgedCall(copy.key, copy.call, {"unjudged": reason}))
            return
        judged = copy.judge(self.limits.timeout)
        with self.lock:
            self.judged.append(judged)
            self.spent += (monotonic() - started) / self.limits.jobs

    def decide(self, jobs: Sequence[Record]) -> list[JudgedCall]:
        """Judge what is left, and what processes have exported; everything, in the order of the calls."""
        self.closing.set()
        self.thread.join()
        for job in jobs:
            if "exported" in job:
                self.copies.append(Exported(job))
            else:
                self.judged.append(JudgedCall(job["job"], job["call"], {"unjudged": job["unjudged"]}))
        turns: dict[str, int] = {}
        order = []
        for copy in sorted(self.copies, key=lambda copy: (copy.key, copy.call)):
            turns[copy.key] = turns.get(copy.key, 0) + 1
            order.append((turns[copy.key], copy))
        order.sort(key=lambda turn: turn[0])
        with ThreadPoolExecutor(self.limits.jobs) as pool:
            for done, _ in enumerate(pool.map(self._judge, [copy for _, copy in order]), 1):
                self.progress(done, len(order), "judging")
        return sorted(self.judged, key=lambda judged: (judged.key, judged.call))

    def close(self) -> None:
        """End every copy that still waits."""
        self.closing.set()
        self.thread.join()
        self.server.close()
        for copy in self.copies:
            copy.end()


def audited(argv: Sequence[str], limits: AuditLimits, progress: Callable[[int, int, str], None]) -> CommandOutcome:
    """Run a command and judge the gradients that its Python processes call.

    Raises GradcliError GC745 where the command cannot be started, or the system has no `fork`.
    """
    if not hasattr(os, "fork"):
        message = "gradcli audit copies processes, which this operating system cannot do"
        raise error("GC745", message, help="use Linux or macOS")
    folder = tempfile.mkdtemp(prefix="gradcli-")
    try:
        options = {"only": limits.only, "size": limits.size, "callbacks": limits.callbacks, "again": limits.again}
        options["pairs"] = [{**pair._asdict(), "guessed": not pair.confirmed} for pair in limits.pairs]
        Path(folder, "options.json").write_text(json.dumps(options), "utf-8")
        judge = Judge(folder, limits, progress)
        try:
            code = run(argv, folder)
            ended = monotonic()
            judged = judge.decide([record for record in records(folder) if "job" in record])
        finally:
            judge.close()
        faults = [path.read_text("utf-8") for path in sorted(Path(folder).glob("*.trouble"))]
        faults += [str(record["fault"]) for record in records(folder) if "fault" in record]
        missed = [str(record["missed"]) for record in records(folder) if "missed" in record]
        faults, missed = (list(dict.fromkeys(texts)) for texts in (faults, missed))
        return CommandOutcome(code, *recorded(folder), judged, faults, missed, monotonic() - ended)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def calling(place: str) -> tuple[str, ...]:
    """The command that calls the pairs of a package, or of a folder, by doctests and defaults."""
    folder = Path(place).resolve()
    while (folder / "__init__.py").exists():
        folder = folder.parent
    return (sys.executable, "-m", "gradcli.audit.pair_calls", *([str(folder)] if Path(place).is_dir() else []))


def run(argv: Sequence[str], folder: str) -> int:
    """The exit code of a command, as a shell has it; Ctrl-C is for the command, and the audit goes on behind it."""
    path = os.pathsep.join(folder for folder in (INJECTED, os.environ.get("PYTHONPATH")) if folder)
    environment = {**os.environ, "PYTHONPATH": path, "GRADCLI_AUDIT": folder}
    try:
        process = subprocess.Popen(list(argv), env=environment)
    except OSError as problem:
        reason = (problem.strerror or "").lower()
        script = argv[0].endswith(".py") and os.path.isfile(argv[0])
        hint = f"write gradcli audit -- python {visible(argv[0], 200)}" if script else "is it on the PATH?"
        raise error("GC745", f"cannot start {visible(argv[0], 200)}: {reason}", help=hint) from None
    before = signal.signal(signal.SIGINT, lambda number, frame: None)  # the command gets it as well
    try:
        code = process.wait()
    except BaseException:  # a signal requested that this process end
        process.terminate()
        process.wait()
        raise
    finally:
        signal.signal(signal.SIGINT, before)
    return code if code >= 0 else 128 - code


def recorded(folder: str) -> tuple[int, dict[str, Record]]:
    """How many Python processes reported, and the gradients that they called, those of several processes together."""
    gradients: dict[str, Record] = {}
    counts: dict[tuple[str, str], Record] = {}
    processes = set()
    for record in records(folder):
        processes.add(record["pid"])
        if "gradient" in record:
            facts = {**record["gradient"], "skipped": "", "calls": 0, "untracked": 0}
            known = gradients.setdefault(record["key"], facts)
            if (facts["pair"] or {}).get("invented"):  # in one of several processes
                known["pair"]["invented"] = True
        if "counts" in record:
            counts[record["counts"], record["pid"]] = record  # the last one of a process counts
            gradients[record["counts"]]["skipped"] = record.get("skipped") or gradients[record["counts"]]["skipped"]
    for (key, _), record in counts.items():
        gradients[key]["calls"] += record["calls"]
        gradients[key]["untracked"] += record.get("untracked", 0)
    return len(processes), gradients


def records(folder: str) -> Iterator[Record]:
    """What all processes wrote, one after the other; a line that a killed process did not finish is left out."""
    for path in sorted(Path(folder).glob("*.jsonl")):
        for line in path.read_text("utf-8").splitlines(keepends=True):
            if line.endswith("\n"):
                yield {**json.loads(line), "pid": path.stem}
