"""Paths go in, a report for each script comes out, in the order of the paths whatever the number of workers.

Each worker is a process with one script in flight. A worker that dies or falls silent is killed and started again, and
exactly the script that it was busy with gets the verdict ERROR.
"""

from __future__ import annotations

import os
from contextlib import suppress
from json import dumps, loads
from queue import Empty, SimpleQueue
from threading import Thread
from time import monotonic
from typing import TYPE_CHECKING, Any

from gradcli.batch.discovery import scripts
from gradcli.batch.transport import report_from_json
from gradcli.checks.child import start, whole_lines
from gradcli.checks.report import Check, Report, summarised, timed

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable, Iterable, Mapping

GRACE = 60.0  # seconds beside the time of a check: reading, lowering, differentiating


def check_paths(
    paths: Iterable[str], options: Mapping[str, Any] | None = None, *, jobs: int | None = None, **more: Any
) -> list[Report]:
    """The reports of all scripts that the paths name or contain, sorted by path.

    The options are those of `checks.check_script`, and `jobs` (default: one worker per processor), `select` and
    `exclude`, patterns as `discovery.scripts` takes them, and `progress`, a function of (done, total, label).
    """
    told = {**(options or {}), **more}
    jobs = told.pop("jobs", None) or jobs or os.cpu_count() or 1
    progress: Callable[..., Any] | None = told.pop("progress", None)
    limits = told.pop("limits", None)
    told["limits"] = None if limits is None else limits.as_dict()
    told["at"] = list(told["at"]) if told.get("at") and not isinstance(told["at"], dict) else told.get("at") or []
    files = scripts(paths, told.pop("select", ()), told.pop("exclude", ()))
    if not files:
        return []
    team = Team(min(jobs, len(files)), told, float(told.get("timeout") or 60.0) * 3 + GRACE)
    try:
        return team.run(files, progress)
    finally:
        team.close()


class Worker:
    """One process, and the script that it is busy with."""

    def __init__(self, number: int, options: dict[str, Any], answers: SimpleQueue[tuple[int, int, str | None]]) -> None:
        self.number = number
        self.options = options
        self.answers = answers
        self.process: subprocess.Popen[str] | None = None
        self.life = 0  # counts processes, so that a late line of a dead one is known as such
        self.position: int | None = None
        self.deadline = 0.0
        self.waiting = 0.0

    def give(self, position: int, path: str, seconds: float) -> None:
        """Hand a script to the process, which is started if need be."""
        if self.process is None:
            self._start()
        assert self.process is not None and self.process.stdin is not None
        self.position = position
        self.deadline = monotonic() + seconds
        self.waiting = seconds
        with suppress(OSError):  # it has died: its reader will say so
            self.process.stdin.write(dumps(path) + "\n")
            self.process.stdin.flush()

    def beat(self) -> None:
        """A sign of life: the time starts again."""
        self.deadline = monotonic() + self.waiting

    def end(self) -> int | None:
        """Kill the process; its exit code."""
        process, self.process = self.process, None
        if process is None:
            return None
        code = process.poll()
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                with suppress(OSError):  # what was not written yet has no reader any more
                    stream.close()
        return code

    def _start(self) -> None:
        self.life += 1
        self.process = start("gradcli.batch.worker")
        assert self.process.stdin is not None
        with suppress(OSError):
            self.process.stdin.write(dumps(self.options) + "\n")
        Thread(target=self._listen, args=(self.process.stdout, self.life), daemon=True).start()

    def _listen(self, stream: Any, life: int) -> None:
        try:
            for line in whole_lines(stream):
                self.answers.put((self.number, life, line))
        except (OSError, ValueError):
            return
        self.answers.put((self.number, life, None))


class Team:
    """Some workers and the scripts that they share."""

    def __init__(self, count: int, options: dict[str, Any], seconds: float) -> None:
        self.answers: SimpleQueue[tuple[int, int, str | None]] = SimpleQueue()
        self.workers = [Worker(number, options, self.answers) for number in range(count)]
        self.seconds = seconds

    def run(self, files: list[str], progress: Callable[..., Any] | None) -> list[Report]:
        """The reports of the files, in their order."""
        found: dict[int, Report] = {}
        waiting = list(enumerate(files))[::-1]
        for worker in self.workers:
            if waiting:
                worker.give(*waiting.pop(), self.seconds)
        while len(found) < len(files):
            worker, report = self._next(files)
            if report is None:
                continue
            assert worker.position is not None
            found[worker.position] = report
            if progress is not None:
                progress(len(found), len(files), files[worker.position])
            worker.position = None
            if waiting:
                worker.give(*waiting.pop(), self.seconds)
        return [found[position] for position in range(len(files))]

    def close(self) -> None:
        for worker in self.workers:
            worker.end()

    def _next(self, files: list[str]) -> tuple[Worker, Report | None]:
        """The next thing that happens to a worker, and the report that it makes, if any."""
        busy = [worker for worker in self.workers if worker.position is not None]
        first = min(busy, key=lambda worker: worker.deadline)
        try:
            number, life, line = self.answers.get(timeout=max(0.0, first.deadline - monotonic()))
        except Empty:
            assert first.position is not None
            first.end()
            return first, failed(files[first.position], f"no sign of life for {self.seconds:g} s, so it was ended")
        worker = self.workers[number]
        if life != worker.life or worker.position is None or worker.process is None:
            return worker, None
        path = files[worker.position]
        if line is None:
            code = worker.process.wait()
            worker.end()
            how = f"signal {-code}" if code < 0 else f"exit code {code}"
            return worker, failed(path, f"the process that checked it died ({how})")
        answer = loads(line)
        if "beat" in answer:
            worker.beat()
            return worker, None
        if "failure" in answer:
            return worker, failed(path, f"internal error: {answer['failure']}")
        return worker, timed(report_from_json(answer["report"]), answer["seconds"])


def failed(path: str, reason: str) -> Report:
    """The report of a script that could not be checked."""
    check = Check("error", path, None, "gradient", None, "ERROR", {"reason": reason}, reason, passed=False)
    return summarised("", [check], file=path)
