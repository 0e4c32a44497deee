"""A run of `check` over many cases: stored reports are looked up, other cases are checked, and reports come in order.

A `Run` holds at most one case per worker, and the compressed reports of cases that were done before an earlier one;
delivered reports are not kept. Reports do not depend on the number of workers, on the order in which they answer, or on
how many reports were stored.
"""

from __future__ import annotations

import os
import signal
import threading
from contextlib import closing, contextmanager
from json import dumps, loads
from time import monotonic
from typing import TYPE_CHECKING, Any, NamedTuple
from zlib import compress, decompress

from gradcli.batch.journal import Journal
from gradcli.batch.totals import Totals
from gradcli.batch.workers.supervisor import Done, Task, report_of, supervise
from gradcli.batch.workers.transport import report_from_json, report_to_json

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Mapping, Sequence

    from gradcli.batch.discovery.cases import BatchCase
    from gradcli.checks.report import Report

OPENED = '"opened": [['  # in the line of a case that read data files
TICK = 0.1  # seconds between two signs of progress while cases are looked up


def unchanged(report: Report, case: BatchCase | None = None) -> Report:
    return report


def nowhere(report: Report) -> None:
    """Write a report to no place."""


class Workforce(NamedTuple):
    """Who checks: so many processes (default: one per processor), each of which may use `memory` MiB; or a cluster.

    `cluster` is the address of a Dask scheduler, whose workers replace the processes of this machine.
    """

    jobs: int | None = None
    memory: int | None = None
    cluster: str | None = None


class Handling(NamedTuple):
    """What happens to a report: `adjust` changes it when it arrives, as a baseline does, and `settle` when it is its
    turn; `deliver` writes it then, before it is counted.
    """

    adjust: Callable[[Report, BatchCase], Report] = unchanged
    settle: Callable[[Report], Report] = unchanged
    deliver: Callable[[Report], None] = nowhere


class Run:
    """The cases of a run, their reports, and the counts over them.

    `options` are those of `checks.check_script`. `progress` is called with (done, total, name of a case, number of
    cases that failed). With `fail_fast` the run ends after the first case that failed.
    """

    def __init__(
        self,
        cases: Sequence[BatchCase],
        options: Mapping[str, Any] | None = None,
        *,
        journal: Journal | None = None,
        workers: Workforce = Workforce(),  # noqa: B008
        fail_fast: bool = False,
        handling: Handling = Handling(),  # noqa: B008
        progress: Callable[[int, int, str, int], None] | None = None,
    ) -> None:
        self.cases = cases
        self.options = plain_options(options or {})
        self.journal = journal or Journal(None)
        self.workers = workers
        self.fail_fast = fail_fast
        self.handling = handling
        self.progress = progress
        self.totals = Totals(selected=len(cases))
        self.opened: set[str] = set()  # data files that scripts have read, or looked for
        self._stamp = self.journal.stamp(self.options)
        self._held: dict[int, bytes] = {}  # done, but an earlier case is not: compressed
        self._next = 0  # the first case that has not been reported
        self._done = 0
        self._failed = 0

    def reports(self) -> Iterator[Report]:
        """The report of each case in the order of the cases, as soon as those before it are done.

        If this is interrupted, or the run ends early, `rest` yields the other reports that are done.
        """
        missing = yield from self._stored()
        if missing and not self.totals.stopped:
            yield from self._judged(missing)
        if self.totals.stopped:
            yield from self.rest()

    def rest(self) -> Iterator[Report]:
        """The reports that were held back because an earlier case is not done, once no more are to come."""
        for index in sorted(self._held):
            yield self._counted(unpacked(self._held.pop(index)))

    def _stored(self) -> Generator[Report, None, list[int]]:
        """Take the reports that the journal has; return the positions of the other cases."""
        missing: list[int] = []
        drawn = monotonic()
        for index, case in enumerate(self.cases):
            content = case.content()
            line = None if content is None else self.journal.get(self.journal.key(case, content, self._stamp))
            if line is None:
                missing.append(index)
                continue
            yield from self._arrived(Done(index, line, None))
            if self.totals.stopped:
                break
            if monotonic() - drawn > TICK:
                drawn = monotonic()
                self._show(case.name)
        return missing

    def _judged(self, missing: Sequence[int]) -> Iterator[Report]:
        """The reports of the cases that the journal does not have; each is stored as soon as it arrives."""
        keys: dict[int, bytes] = {}

        def tasks() -> Iterator[Task]:
            for index in missing:
                case = self.cases[index]
                content = case.content()
                if content is not None:
                    keys[index] = self.journal.key(case, content, self._stamp)
                yield Task(index, case.path, case.block, content)

        name = self.cases[missing[0]].name
        self._show(name)
        with closing(self._answers(tasks(), len(missing))) as answers:
            for done in answers:
                if done is not None:
                    name = self.cases[done.index].name
                    key = keys.pop(done.index, None)
                    if key is not None and done.line is not None:
                        self.journal.put(key, done.line)
                    yield from self._arrived(done)
                    if self.totals.stopped:
                        break
                self._show(name)

    def _answers(self, tasks: Iterator[Task], count: int) -> Generator[Done | None, None, None]:
        if self.workers.cluster is not None:
            from gradcli.batch.workers.cluster import supervise_on

            return supervise_on(self.workers.cluster, tasks, self.options)
        jobs = self.workers.jobs or os.cpu_count() or 1
        return supervise(tasks, self.options, jobs=min(jobs, count), memory=self.workers.memory)

    def _arrived(self, done: Done) -> Iterator[Report]:
        """Take one answer, and return the reports whose turn it is."""
        case = self.cases[done.index]
        if done.line is not None and OPENED in done.line:
            self.opened.update(path for path, _ in loads(done.line)["opened"])
        report = self.handling.adjust(report_of(done, case), case)
        failed = any(not check.passed for check in report.checks)
        self.journal.remember(os.path.abspath(case.path), case.block, failed)
        self._done += 1
        self._failed += failed
        if done.index == self._next:
            self._next += 1
            yield self._counted(report)
            while self._next in self._held:
                self._next += 1
                yield self._counted(unpacked(self._held.pop(self._next - 1)))
        else:
            self._held[done.index] = packed(report)
        if self.fail_fast and any(not check.passed and check.verdict != "INCONCLUSIVE" for check in report.checks):
            if self._done < len(self.cases):
                self.totals.stopped = "first failure"

    def _counted(self, report: Report) -> Report:
        report = self.handling.settle(report)
        with undisturbed():
            self.handling.deliver(report)
            self.totals.add(report)
        return report

    def _show(self, name: str) -> None:
        if self.progress is not None:
            self.progress(self._done, len(self.cases), name, self._failed)


ENDING = ("SIGINT", "SIGTERM", "SIGHUP")  # signals that end a run in order


@contextmanager
def undisturbed() -> Iterator[None]:
    """A context in which signals that end a run are delayed. (A mask is not enough: another thread may get them.)"""
    waiting: list[int] = []
    numbers = [getattr(signal, name) for name in ENDING if hasattr(signal, name)]
    handlers = {number: handler for number in numbers if callable(handler := signal.getsignal(number))}
    if threading.current_thread() is not threading.main_thread():
        handlers = {}  # signals do not reach other threads
    try:
        for number in handlers:
            signal.signal(number, lambda number, _: waiting.append(number))
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
    for number in waiting[:1]:
        signal.raise_signal(number)


def packed(report: Report) -> bytes:
    """A report, compressed."""
    data = {"report": report_to_json(report), "seconds": [check.seconds for check in report.checks]}
    return compress(dumps(data).encode(), 1)


def unpacked(data: bytes) -> Report:
    """The report that `packed` compressed."""
    fields = loads(decompress(data))
    return report_from_json(fields["report"], fields["seconds"])


def plain_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options of `check_script` as JSON data, for workers and for keys."""
    plain = dict(options)
    limits = plain.pop("limits", None)
    plain["limits"] = None if limits is None else limits.as_dict()
    at = plain.get("at")
    plain["at"] = at if isinstance(at, dict) else list(at or ())
    return plain
