"""Checks a function and its derivative in a process of its own, whatever the code there does.

The process has nothing to read from and a limit on time. A crash, an exit, a hang or a flood of output ends that
process only, and becomes a verdict. The two communicate through pipes, so nothing is left on the
disk; whatever ends this process, even a SIGKILL, ends the code and all that it started in its process group.
"""

from __future__ import annotations

import os
import signal
import subprocess
from contextlib import closing, suppress
from dataclasses import replace
from functools import partial
from queue import Empty, SimpleQueue
from threading import Thread
from time import monotonic
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.base.child_process import MARK, exited, kill_all, listen, receive, send, start
from gradcli.base.diagnostics import Diagnostic, GradcliError, error, visible
from gradcli.checks.callables import runner
from gradcli.checks.callables.api import About, failed, report_on
from gradcli.checks.callables.runner import FIELDS, RUNNING
from gradcli.checks.report import Check, Report, Settings, timed
from gradcli.checks.witnesses import parse_witnesses
from gradcli.lowering.points import array_of, read_point
from gradcli.recording.calls.box import BlackBox
from gradcli.recording.calls.call_arguments import Argument
from gradcli.recording.calls.failures import KEPT, Failed, OutOfTime, crash_place
from gradcli.recording.calls.gradient_libraries import TITLES, Library

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from gradcli.language.limits import Limits

    Message = dict[str, Any]
    Floats = NDArray[np.floating[Any]]

START = 60.0  # seconds for our own imports, on the slowest of machines
GRACE = 1.0  # beyond the time that the check allows itself
PAUSE = 0.05
LEAST = 0.05


def check_target(
    python: str,
    grad: str | None = None,
    *,
    at: Mapping[str, Any] | Sequence[str] = (),
    wrt: Sequence[str] | None = None,
    limits: Limits | None = None,
    witnesses: str = "none",
    memory: int | None = None,
    **judging: Any,
) -> Report:
    """Judge the function `python` by its hand-written gradient `grad`; both are TARGET:NAME.

    TARGET is a path that ends in .py, or a dotted module. Without `grad` the function has gradients of its own (a
    `torch.autograd.Function`, a function of tensors, a `custom_vjp`), or returns the pair (value, gradient). For a
    function that returns an array, `grad` gives its Jacobian. `memory` is how many MiB its process may have;
    `judging` are the further fields of `Settings`, as `check_callable` takes them.

    Raises GradcliError: GC731 where a target is malformed or missing, GC732 where the point does not fit.
    """
    for text in (python, grad):
        if text is not None:
            checked_target(text)
    settings = Settings.of_caller(**judging, witnesses=parse_witnesses(witnesses))
    if settings.plane:
        hint = "check the real and the imaginary part separately"
        raise error("GC732", "functions of complex numbers are not supported", help=hint)
    started = monotonic()
    point, notes = read_point(at, limits)
    arrays = {name: np.asarray(array_of(value)) for name, value in point.items()}
    seconds = max(settings.timeout, LEAST)
    request: Message = {"python": python, "grad": grad, "timeout": seconds, "dtype": settings.dtype, "point": arrays}
    request["memory"] = memory
    request["wrt"] = None if wrt is None else list(wrt)
    report: Report | None
    with closing(Runner(seconds)) as child:
        try:
            report, heard = judged(child, child.exchange(request), (python, grad), arrays, settings)
        except ProcessLost as end:
            (last,) = end.args
            report, heard = judged(child, last, (python, grad), arrays, settings) if last else (None, [])
    if report is None:
        report = ended(child, python, settings.lenient)
    if written := child.written.decode("utf-8", "replace").strip():
        heard = [*heard, f"the code writes to standard output: {visible(written, 80)}"]
    remarks = [Diagnostic("GC734", visible(text, 300), severity="note") for text in heard]
    report = replace(report, diagnostics=(*notes, *report.diagnostics, *remarks))
    shared = (monotonic() - started) / max(len(report.checks), 1)  # the checks of a function share its calls
    return timed(report, [shared] * len(report.checks))


def checked_target(text: str) -> None:
    """GC731 unless a text is TARGET:NAME and its file is there."""
    place, colon, name = text.rpartition(":")
    named = all(part.isidentifier() for part in name.split("."))
    dotted = place.endswith(".py") or all(part.isidentifier() for part in place.split("."))
    if not colon or not place or not named or not dotted:
        hint = "write --python losses.py:f, or package.module:f"
        raise error("GC731", f"`{visible(text, 200)}` does not have the form TARGET:NAME", help=hint)
    if place.endswith(".py") and not os.path.isfile(place):
        raise error("GC731", f"cannot read {visible(place, 200)}: no such file")


def file_of(target: str) -> str | None:
    """The file of a target as it was written; None for a dotted name."""
    place = target.rpartition(":")[0]
    return place if place.endswith(".py") else None


def judged(
    child: Runner,
    first: Message,
    targets: tuple[str, str | None],
    arrays: Mapping[str, NDArray[Any]],
    settings: Settings,
) -> tuple[Report, list[str]]:
    """The report on a function that runs in `child`, and what its module prints; `first` is the answer to the request.

    `targets` are the function and its derivative.

    Raises Lost where the process ends before.
    """
    if "refusal" in first:
        raise GradcliError(*(Diagnostic(code, text, help=hint, severity=s) for code, text, hint, s in first["refusal"]))
    try:
        python, grad = targets
        place, _, name = python.rpartition(":")
        title = visible(f"{os.path.basename(place) if file_of(python) else place}:{name}", 200)
        about = About(title, file_of(python), None if first["line"] is None else int(first["line"]))
        heard = [str(text) for text in first["heard"]]
        if "failure" in first:
            return failed(Failed(**first["failure"]), about), heard
        box = RemoteBox(first, arrays, child.exchange, child.seconds)
        value = np.asarray(first["value"], dtype=np.float64).reshape(box.size)
        if first["rule"] is not None:
            about = about_rule(about, grad, *first["rule"])
        return report_on(box, value, about, box.given_arguments, settings, box.recording).shown(), heard
    except (KeyError, TypeError, ValueError, AttributeError) as problem:
        if os.environ.get("GRADCLI_DEBUG"):
            raise
        raise error(
            "GC733",
            f"the process that runs the function sent an unreadable answer ({type(problem).__name__})",
            help="does the function write to file descriptors of the process, such as 1 or 3?",
        ) from None


def about_rule(about: About, grad: str | None, name: Any, defined_in: Any, line: Any) -> About:
    """What a report calls a derivative; its line where it stands in the file that the caller named."""
    file = about.file if grad is None else file_of(grad)
    same = file is None or (defined_in is not None and os.path.abspath(str(defined_in)) == os.path.abspath(file))
    return About(about.title, file, int(line) if same and line is not None else None, visible(str(name), 80))


class RemoteBox(BlackBox):
    """A box whose calls are messages; `exchange` sends one and gives the answer, or raises where there is none."""

    def __init__(
        self, opened: Message, arrays: Mapping[str, Floats], exchange: Callable[[Message], Message], seconds: float
    ) -> None:
        self.exchange = exchange
        self.seconds = seconds
        self.ends = monotonic() + seconds
        self.library = Library()
        self.library.name = str(opened["library"])
        if self.library.name not in TITLES:
            raise ValueError("an unknown library")
        self.given_arguments = [argument(arrays, *parts) for parts in opened["given"]]  # before f was called
        self.arguments = [argument(arrays, *parts) for parts in opened["arguments"]]
        for name, read in FIELDS.items():
            setattr(self, name, read(opened[name]))
        self.misshapen = {str(name): Failed(**failure) for name, failure in opened["misshapen"].items()}
        self.outside = 0
        self._claimed = opened["claimed"]
        self._lay_out(self.names)
        if not self.x.size:
            raise ValueError("nothing moves")

    @property
    def claimed(self) -> str | None:
        """The kind of the numbers that the derivative returns."""
        return None if self._claimed is None else str(self._claimed)

    def value(self, x: Floats) -> Floats:
        """The outputs at a point near the given one; NaN where f raises. Raises OutOfTime."""
        if monotonic() > self.ends:
            raise OutOfTime
        return self._numbers(self.size, {"ask": "value", "x": x})

    def again(self) -> Floats:
        """The outputs at the given point once more."""
        return self._numbers(self.size, {"ask": "again"})

    def pullback(self, x: Floats, weights: Floats, at_the_point: bool = False) -> Floats:
        """The derivative of a combination of the outputs, flat. Raises Failed."""
        question = {"ask": "pullback", "x": x, "weights": weights, "at_the_point": at_the_point}
        return self._numbers(self.x.size, question)

    def recording(self, seed: int) -> Message:
        """The program of a function of gradcli's own tensors as plain data."""
        return self.exchange({"ask": "recording", "seed": seed})

    def remarks(self) -> list[str]:
        """Notes on the calls so far."""
        answer = self.exchange({"ask": "remarks"})
        self.outside = int(answer["outside"])
        self.drawing = [str(role) for role in answer["drawing"]]
        return [str(text) for text in answer["remarks"]]

    def _numbers(self, size: int, question: Message) -> Floats:
        answer = self.exchange(question)
        if "late" in answer:
            raise OutOfTime
        if "failed" in answer:
            raise Failed(**answer["failed"])
        numbers = answer["found"]
        if numbers.shape != (size,):
            raise ValueError(f"an answer of {numbers.size} numbers, not {size}")
        return np.asarray(numbers, dtype=np.float64)


def argument(arrays: Mapping[str, Floats], name: str, moves: bool, keyword: bool) -> Argument:
    """An argument with its numbers, without the object that was given."""
    array = np.asarray(arrays[name], dtype=np.float64) if moves else None
    return Argument(str(name), None, array, bool(keyword))


class ProcessLost(Exception):
    """The process that runs the code gave no answer, or as its last one why it cannot go on."""


class Runner:
    """The process that runs the code, in a session of its own; what it says comes as messages.

    When this process ends, in whatever way, a guard beside the code reads the end of a pipe that nothing writes to, and
    kills all of the session's first group.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.phase, self.role = "", ""
        self.deadline = monotonic() + START
        self.late = False
        self.rest: list[bytes] = []  # what it wrote beside messages: where it crashed
        self.written = b""  # the beginning of what it wrote past Python's own streams
        self.messages: SimpleQueue[Message | None] = SimpleQueue()
        self.mark = f"{os.getpid()}-{id(self)}-{monotonic()}"
        marked = {MARK: self.mark}
        self.process = start(runner.__name__, marked, own_session=True, errors=subprocess.PIPE, encoding=None)
        assert self.process.stdout is not None
        said = iter(partial(receive, self.process.stdout, self.rest), None)
        self.threads = [listen(said, self.messages.put), Thread(target=self._read, daemon=True)]
        self.threads[1].start()

    def exchange(self, message: Message) -> Message:
        """Send a message; the answer. Raises Lost where the process ended before, or was too late (`late`).

        All calls together have the time of the check, whatever was done here in between; one call has GRACE.
        """
        assert self.process.stdin is not None
        with suppress(OSError):  # that it has died is seen below
            send(self.process.stdin, message)
        self.deadline = max(self.deadline, monotonic() + GRACE)
        answer = self._answer()
        if answer is None or ("failure" in answer and "ask" in message):
            raise ProcessLost(answer)
        return answer

    def _answer(self) -> Message | None:
        while True:
            try:
                message = self.messages.get(timeout=PAUSE)
            except Empty:
                if exited(self.process):
                    self.kill()  # with what it forked, which may hold its pipes open
                    self.threads[0].join(timeout=GRACE)
                    if self.messages.empty():
                        return None
                elif monotonic() > self.deadline:
                    self.late = True
                    return None
                continue
            if message is None or "stage" not in message:
                return message
            phase, _, self.role = str(message["stage"]).partition(" ")
            if phase != self.phase:
                self.phase, self.deadline = phase, monotonic() + self.seconds + GRACE

    def close(self) -> None:
        """Kill the process and what it started, and read the rest of what it wrote."""
        self.kill()
        self.process.wait()
        for thread in self.threads:
            thread.join(timeout=GRACE)
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            if stream is not None and not any(thread.is_alive() for thread in self.threads):
                with suppress(OSError):
                    stream.close()

    def kill(self) -> None:
        """Kill the process and what it started."""
        if hasattr(os, "killpg"):
            kill_all(self.process.pid, self.mark)
        else:
            self.process.kill()

    def _read(self) -> None:
        """Read all that it writes, so that it never waits; keep the beginning."""
        assert self.process.stderr is not None
        while piece := os.read(self.process.stderr.fileno(), 1 << 16):
            self.written = (self.written + piece)[:KEPT] if len(self.written) < KEPT else self.written


def ended(child: Runner, python: str, lenient: bool) -> Report:
    """The report on a process that gave no answer."""
    code, late = child.process.returncode, child.late
    what = child.role or "f" if child.phase == RUNNING else "the module"
    if not child.phase:
        raise error("GC999", f"the process for Python code does not start (exit code {code})")
    file, title = file_of(python), visible(python, 200)
    if not late:
        signals = {int(number): number.name for number in signal.Signals}
        how = f"with signal {signals.get(-code, str(-code))}" if code < 0 else f"with exit code {code}"
        place = crash_place(b"".join(child.rest))
        return failed(Failed(what, f"{what} ended the process {how}", place=place), About(title, file))
    message = f"{what} did not return within {child.seconds:g} s and was stopped"
    evidence: dict[str, object] = {"role": what}
    check = Check("callable", file, None, "callable", None, "INCONCLUSIVE", evidence, message, passed=lenient)
    return Report(title, (check,))
