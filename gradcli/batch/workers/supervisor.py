"""Checks cases in worker processes that may die, hang or grow: every case has an outcome, whatever its worker does.

A worker has one case in flight. If it dies, exactly that case is tried once more at the end, in a fresh process
while no other case is in flight; if it dies again, the case has crashed. A worker that gives no sign of life for
long is killed, and its case is not tried again: it would take the same time once more. Processes are spawned, lead a
process group with what they start, and end with this one, even when it is killed (`process_limits.end_with_parent`).
"""

from __future__ import annotations

import os
import signal
from collections import deque
from contextlib import suppress
from io import TextIOWrapper
from json import dumps, loads
from queue import Empty, SimpleQueue
from subprocess import TimeoutExpired
from threading import Thread
from time import monotonic
from typing import TYPE_CHECKING, Any, NamedTuple

from gradcli.base.child_process import kill_group, start, whole_lines
from gradcli.base.diagnostics import error
from gradcli.batch.workers.transport import report_from_json
from gradcli.checks.report import Check, Report
from gradcli.language.comments.directives import longest_timeout

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator, Mapping

    from gradcli.batch.discovery.cases import BatchCase

WORKER = "gradcli.batch.workers.local_worker"
PULSE = 0.5  # seconds between two outcomes, or None, for the caller
GRACE = 60.0  # seconds in addition to the time of a check: reading, lowering, differentiating
STARTING = 60.0  # seconds for the imports of a worker, on a slow machine
ADDRESS_SPACE = (
    8192  # MiB; 0.4 GiB for scalars, and room for several arrays of the largest size a script may have, 1 GiB
)
MOST_MEMORY = 300  # MiB that a worker and its oracle may keep between cases; 225 after 1,300 of the samples
ENDING = 2.0  # seconds from the last output of a process to its end, on a busy machine
UNREADABLE = "an answer that cannot be read"
MOST_STARTS = 3  # processes in a row that may die before they can take a case


class Task(NamedTuple):
    """A case to be checked; `content` are its bytes, None where the worker is to read the file.

    `copies` (`data.copy_of`) are the data files that it reads, where the worker is on another machine.
    """

    index: int  # type: ignore[assignment]  # hides a method of tuples that is not needed here
    path: str
    block: int
    content: bytes | None
    copies: tuple[Any, ...] = ()


class Done(NamedTuple):
    """The outcome of the task with this index: the worker's line (`worker.answered`), or why there is none."""

    index: int  # type: ignore[assignment]  # hides a method of tuples that is not needed here
    line: str | None
    reason: str | None


def supervise(
    tasks: Iterable[Task],
    options: Mapping[str, Any],
    *,
    jobs: int,
    memory: int | None = None,
    seconds: float | None = None,
    module: str = WORKER,
) -> Generator[Done | None, None, None]:
    """Check all tasks in `jobs` processes; yields each outcome as it comes, and None at least twice a second.

    A task is taken from the iterable when a worker is free; while the iterable blocks, nothing is yielded.
    `options` are those of `checks.check_script`, as plain data. `memory` bounds the address space of a worker and of
    its oracle, in MiB; without it the bound is the same on every machine, and there is none for a backend other than
    NumPy, since those map more than they use. `seconds` is how long a worker may give no sign of life: by default
    three times the `timeout` of a check, and a minute. `module` has the `main` of a worker. Close the generator to end
    all processes at once.

    Raises GradcliError GC999 where workers do not start.

    >>> [done.index for done in supervise([Task(0, "x.grad", 0, b"x = 2; x**2")], {}, jobs=1) if done]  # doctest: +SKIP
    [0]
    """
    team = Team(options, jobs, memory, seconds, module)
    try:
        yield from team.run(iter(tasks))
    finally:
        team.close()


def report_of(done: Done, case: BatchCase) -> Report:
    """The report of a case: the one that the worker made, or a single check that says why there is none.

    The verdict is CRASHED where the worker died or was killed, and ERROR without a diagnostic for a failure of gradcli.
    """
    if done.line is None:
        return _unchecked(
            case, "crash", "CRASHED", str(done.reason), f"the process that checked it failed: {done.reason}"
        )
    answer = loads(done.line)
    if "failure" in answer:
        return _unchecked(case, "error", "ERROR", answer["failure"], f"internal error: {answer['failure']}")
    return report_from_json(answer["report"], answer["seconds"])


def _unchecked(case: BatchCase, name: str, verdict: str, reason: str, message: str) -> Report:
    """The report of a case without one; its line is where the block begins."""
    line = case.line if case.block else None
    check = Check(name, case.path, line, "gradient", None, verdict, {"reason": reason}, message, passed=False)
    return Report("", (check,), file=case.path, block=case.block)


def cpu_time(patience: float) -> float:
    """The limit on the CPU time of a worker that may be silent for `patience` seconds.

    It is so high that it ends a worker only if this process is no longer there to kill it.
    """
    return (patience + STARTING) * (os.cpu_count() or 1)


class Worker:
    """A worker process and its current task."""

    def __init__(self, module: str, setup: str, events: SimpleQueue[tuple[Worker, str | None]]) -> None:
        self.task: Task | None = None
        self.alone = False  # whether no other task is in flight, and this is the last try
        self.number = 0  # of the task within this process
        self.ready = False  # whether it has ever taken a task
        self.memory = 0.0
        self.patience = 0.0  # seconds that it may give no sign of life
        self.deadline = 0.0
        self._events = events
        self._outgoing: SimpleQueue[str | None] = SimpleQueue()
        self._outgoing.put(setup)
        self.process = start(module, own_session=True)
        for work in (self._write, self._read):  # so that a process which does not read or write blocks no other
            Thread(target=work, daemon=True).start()

    def give(self, task: Task, alone: bool, patience: float) -> None:
        self.task, self.alone, self.patience = task, alone, patience
        self.number += 1
        content = None if task.content is None else task.content.decode("latin-1")
        case = {"number": self.number, "path": task.path, "block": task.block, "content": content}
        case["copies"] = task.copies
        case["cpu"] = cpu_time(patience)
        self._outgoing.put(dumps(case) + "\n")

    def end_of_life(self) -> str:
        """Why a process that has closed its output has ended."""
        try:
            code = self.process.wait(timeout=ENDING)
        except TimeoutExpired:  # it runs on without output
            return UNREADABLE
        if code >= 0:
            return f"exit code {code}"
        names = {member.value: f" ({member.name})" for member in signal.Signals}
        return f"killed by signal {-code}{names.get(-code, '')}"

    def kill(self) -> None:
        """End the process and all that it started."""
        self._outgoing.put(None)
        kill_group(self.process)

    def reap(self) -> None:
        """Wait for a process that was killed."""
        with suppress(TimeoutExpired):  # only the system can delay it so long
            self.process.wait(timeout=5.0)

    def _write(self) -> None:
        stream = self.process.stdin
        assert stream is not None
        with suppress(OSError):
            while (text := self._outgoing.get()) is not None:
                stream.write(text)
                stream.flush()
        with suppress(OSError):
            stream.close()

    def _read(self) -> None:
        stream = self.process.stdout
        assert isinstance(stream, TextIOWrapper)
        stream.reconfigure(errors="surrogateescape")  # a line that is not UTF-8 must not take the lines before it along
        with stream:
            for line in whole_lines(stream):
                self._events.put((self, line))
            self._events.put((self, None))


class Team:
    """Workers and the tasks that they share; the arguments are those of `supervise`."""

    def __init__(
        self,
        options: Mapping[str, Any],
        jobs: int,
        memory: int | None = None,
        seconds: float | None = None,
        module: str = WORKER,
    ) -> None:
        if memory is None and options.get("backend", "auto") in ("auto", "numpy"):
            memory = ADDRESS_SPACE
        seconds = seconds or 3 * (options.get("timeout") or 60.0) + GRACE
        self.setup = dumps({"options": dict(options), "memory": memory, "cpu": cpu_time(seconds)}) + "\n"
        self.jobs = jobs
        self.seconds = seconds
        self.module = module
        self.events: SimpleQueue[tuple[Worker, str | None]] = SimpleQueue()
        self.busy: list[Worker] = []
        self.idle: list[Worker] = []
        self.unstarted: deque[tuple[Task, bool]] = deque()  # tasks whose process died before it could take them
        self.crashed: deque[tuple[Task, str]] = deque()
        self.reasons: dict[int, str] = {}  # why a task that is tried again crashed
        self.failed_starts = 0

    def run(self, tasks: Iterator[Task]) -> Generator[Done | None, None, None]:
        done: Done | None = None
        while True:
            paused = monotonic()
            self._fill(tasks)
            if self.busy or done is not None:
                yield done
            if not self.busy:
                return
            self._postpone(monotonic() - paused)  # the caller's time counts against no worker
            done = self._next()

    def close(self) -> None:
        """End all processes."""
        workers, self.busy, self.idle = [*self.busy, *self.idle], [], []
        for worker in workers:
            worker.kill()
        for worker in workers:
            worker.reap()

    # --- inner ----------------------------------------------------------------------------------------------

    def _fill(self, tasks: Iterator[Task]) -> None:
        """Give every free worker a task; when none is left, retry those that crashed, one at a time."""
        while len(self.busy) < self.jobs:
            if self.unstarted:
                self._give(*self.unstarted.popleft())
            elif (task := next(tasks, None)) is not None:
                self._give(task)
            else:
                break
        if not self.busy and self.crashed:
            task, self.reasons[task.index] = self.crashed.popleft()
            self._give(task, alone=True)

    def _give(self, task: Task, alone: bool = False) -> None:
        if alone:
            self.close()  # idle workers: they hold memory, and this task gets a fresh process
        while self.idle and self.idle[-1].process.poll() is not None:  # it was killed meanwhile
            self._end(self.idle[-1])
        worker = self.idle.pop() if self.idle else Worker(self.module, self.setup, self.events)
        self.busy.append(worker)
        patience = self.seconds  # a pragma in the script may give its checks more time
        if task.content is not None and b"timeout" in task.content:
            patience = max(patience, 3 * longest_timeout(task.content.decode("latin-1")) + GRACE)
        worker.give(task, alone, patience)
        worker.deadline = monotonic() + patience + (0.0 if worker.ready else STARTING)

    def _next(self) -> Done | None:
        """The next outcome; None where there is none within PULSE seconds, or a worker has become free without one."""
        end = monotonic() + PULSE
        while True:
            until = min(end, *(worker.deadline for worker in self.busy))
            try:
                worker, line = self.events.get(timeout=max(0.0, until - monotonic()))
            except Empty:
                late = monotonic() - until
                if late > PULSE:  # this process was suspended; what workers wrote meanwhile is still to be read
                    self._postpone(late)
                    return None
                return self._silent()
            done = self._handle(worker, line)
            if worker not in self.busy or monotonic() >= end:
                return done

    def _postpone(self, seconds: float) -> None:
        for worker in self.busy:
            worker.deadline += seconds

    def _silent(self) -> Done | None:
        """End a worker that gives no sign of life, if there is one."""
        for worker in self.busy:
            if worker.deadline <= monotonic():
                task = worker.task
                assert task is not None
                if not worker.ready:
                    return self._lost(worker, f"no sign of life for {worker.patience + STARTING:g} s")
                reason = f"no sign of life for {worker.patience:g} s"
                self._end(worker)
                return Done(task.index, None, reason)
        return None

    def _handle(self, worker: Worker, line: str | None) -> Done | None:
        """Handle a line of a worker, or its end (None); return the outcome of its task, if that is complete."""
        if worker in self.idle:  # it has ended, or writes what was not requested
            self._end(worker)
        if worker not in self.busy:
            return None
        if line is None:
            return self._lost(worker, worker.end_of_life())
        number, _, text = line.rstrip("\n").partition(" ")
        try:
            answer = loads(text) if text.isascii() else None  # as `dumps` writes it
        except (ValueError, RecursionError):
            answer = None
        if not isinstance(answer, dict) or number != (str(worker.number) if worker.ready else "0"):
            return self._lost(worker, UNREADABLE)
        if "crash" in answer:
            return self._lost(worker, answer["crash"])
        worker.deadline = monotonic() + worker.patience
        if "ready" in answer:
            worker.ready = True
            self.failed_starts = 0
        elif "memory" in answer:
            worker.memory = answer["memory"]
        elif "beat" not in answer:
            task = worker.task
            assert task is not None
            if worker.memory > MOST_MEMORY:
                self._end(worker)
            else:
                self.busy.remove(worker)
                self.idle.append(worker)
            return Done(task.index, text, None)
        return None

    def _lost(self, worker: Worker, reason: str) -> Done | None:
        """End a worker that failed; its task is retried once, and then has crashed."""
        task = worker.task
        assert task is not None
        self._end(worker)
        if not worker.ready:
            self.failed_starts += 1
            if self.failed_starts == MOST_STARTS:
                raise error(
                    "GC999",
                    f"the processes that check scripts do not start ({reason})",
                    help=f"allow them more memory, or see the reason with: python -c 'import {self.module}'",
                )
            self.unstarted.append((task, worker.alone))
        elif worker.alone:
            first = self.reasons.pop(task.index)
            return Done(task.index, None, reason if reason == first else f"{first}, then {reason}")
        else:
            self.crashed.append((task, reason))
        return None

    def _end(self, worker: Worker) -> None:
        (self.busy if worker in self.busy else self.idle).remove(worker)
        worker.kill()
        worker.reap()
