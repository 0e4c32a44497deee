"""The names of a function and its derivative and a point go in, a report comes out, whatever the code there does.

The code runs in a process of its own, with nothing to read from and a limit on time. A crash, an exit, a hang or a
flood of output ends that process only, and becomes a verdict. The two talk through pipes, so nothing is left on the
disk; whatever ends this process, even a SIGKILL, ends the code and all that it started in its process group.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress
from queue import Empty, SimpleQueue
from threading import Thread
from time import monotonic
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.checks.callables import runner
from gradcli.checks.callables.channel import packed, received, send
from gradcli.checks.callables.failures import KEPT, innermost
from gradcli.checks.callables.runner import RUNNING, file_of
from gradcli.checks.child import CODE, QUIET
from gradcli.checks.report import Check, Report, summarised, timed
from gradcli.diagnostics import Diagnostic, GradcliError, error, visible
from gradcli.points import array_of, read_point

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Self

    from gradcli.language.limits import Limits

START = 60.0  # seconds for our own imports, on the slowest of machines
GRACE = 1.0  # beyond the time that the check allows itself
PAUSE = 0.05
LEAST = 0.05
MOST_REST = 1 << 16


def check_target(
    python: str,
    grad: str | None = None,
    *,
    at: Mapping[str, Any] | Sequence[str] = (),
    wrt: Sequence[str] | None = None,
    samples: int = 3,
    seed: int | None = None,
    timeout: float = 60.0,
    dtype: str = "float64",
    require: str | None = None,
    allow_kink: bool = False,
    lenient: bool = False,
    limits: Limits | None = None,
) -> Report:
    """Judge the function `python` by its hand-written gradient `grad`; both are TARGET:NAME.

    TARGET is a path that ends in .py, or a dotted module. Without `grad` the function has gradients of its own (a
    `torch.autograd.Function`, a function of tensors, a `custom_vjp`), or returns the pair (value, gradient). For a
    function that returns an array, `grad` gives its Jacobian.

    Raises GradcliError: GC731 where a target is malformed or missing, GC732 where the point does not fit.
    """
    for text in (python, grad):
        if text is not None:
            checked_target(text)
    if dtype == "complex128":
        raise error("GC732", "functions of complex numbers are not checked", help="check real and imaginary parts")
    started = monotonic()
    point, notes = read_point(at, limits)
    arrays = {name: np.asarray(array_of(value)) for name, value in point.items()}
    options = {"wrt": None if wrt is None else list(wrt), "samples": samples, "seed": seed, "dtype": dtype}
    options |= {"require": require, "allow_kink": allow_kink, "lenient": lenient}
    seconds = max(timeout, LEAST)
    request: dict[str, Any] = {"python": python, "grad": grad, "options": {**options, "timeout": seconds}}
    request["point"] = {name: packed(array) for name, array in arrays.items()}
    report = run(request, seconds, python, lenient)
    shared = (monotonic() - started) / max(len(report.checks), 1)  # the checks of a function share its calls
    report = timed(report, [shared] * len(report.checks))
    return Report(report.expression, report.checks, report.summary, (*notes, *report.diagnostics))


def checked_target(text: str) -> None:
    """GC731 unless a text is TARGET:NAME and its file is there."""
    place, colon, name = text.rpartition(":")
    named = all(part.isidentifier() for part in name.split("."))
    dotted = place.endswith(".py") or all(part.isidentifier() for part in place.split("."))
    if not colon or not place or not named or not dotted:
        raise error(
            "GC731",
            f"`{visible(text, 200)}` is not TARGET:NAME",
            help="write --python losses.py:f, or package.module:f",
        )
    if place.endswith(".py") and not os.path.isfile(place):
        raise error("GC731", f"cannot read {visible(place, 200)}: no such file")


def run(request: dict[str, Any], seconds: float, python: str, lenient: bool) -> Report:
    """The report of the process that runs the code, or on how it ended."""
    with Runner(seconds) as child:
        child.send(request)
        answer = child.receive()
    return ended(child, python, lenient) if answer is None else read(answer, child.output.notes())


class Runner:
    """The process that runs the code, in a session of its own; what it says comes as messages.

    It holds the reading end of a pipe that nobody writes to, the lifeline: when this process ends, in whatever way,
    a guard beside the code reads the end of the file and kills all of the session's first group.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.phase, self.role = "", ""
        self.since = monotonic()
        self.late = False
        self.rest = b""  # what it wrote beside messages: where it crashed
        self.messages: SimpleQueue[dict[str, Any] | None] = SimpleQueue()
        paths = [os.path.abspath(path) for path in sys.path if path]
        reading, self.lifeline = os.pipe()
        try:
            posix: dict[str, Any] = {"pass_fds": (reading,)} if hasattr(os, "fork") else {}
            self.process = subprocess.Popen(
                [sys.executable, "-P", "-c", CODE.format(paths=paths, module=runner.__name__), str(reading)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env={**os.environ, **QUIET},
                start_new_session=True,
                **posix,
            )
        except BaseException:
            os.close(self.lifeline)
            raise
        finally:
            os.close(reading)
        self.output = Output(self.process)
        self.thread = Thread(target=self._listen, daemon=True)
        self.thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *problem: object) -> None:
        self.end()

    def send(self, message: dict[str, Any]) -> None:
        """Send a message; that the process has died is seen where an answer is expected."""
        assert self.process.stdin is not None
        with suppress(OSError):
            send(self.process.stdin, message)

    def receive(self) -> dict[str, Any] | None:
        """The next answer; None where the process ended before, or was too late (`late`)."""
        while True:
            try:
                message = self.messages.get(timeout=PAUSE)
            except Empty:
                allowed = START if not self.phase else self.seconds + GRACE
                if monotonic() - self.since > allowed:
                    self.late = True
                    return None
                if exited(self.process):
                    self.kill()  # with what it forked, which may hold its pipes open
                    self.thread.join(timeout=GRACE)
                    if self.messages.empty():
                        return None
                continue
            if message is None or "stage" not in message:
                return message
            phase, _, self.role = str(message["stage"]).partition(" ")
            if phase != self.phase:
                self.phase, self.since = phase, monotonic()

    def kill(self) -> None:
        """Kill the process and whatever it started, even if it has ended by itself."""
        if hasattr(os, "killpg"):
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.process.pid, signal.SIGKILL)
        with suppress(OSError):
            self.process.kill()

    def end(self) -> None:
        """`kill`, and read the rest of what it wrote."""
        self.kill()
        self.process.wait()
        os.close(self.lifeline)
        self.thread.join(timeout=GRACE)
        self.output.close()
        for stream in (self.process.stdin, self.process.stdout):
            if stream is not None and not self.thread.is_alive():
                with suppress(OSError):
                    stream.close()

    def _listen(self) -> None:
        stream = self.process.stdout
        assert stream is not None
        with suppress(OSError, ValueError):
            for line in stream:
                message = received(line)
                if message is not None:
                    self.messages.put(message)
                elif len(self.rest) < MOST_REST:
                    self.rest += line
        self.messages.put(None)


def exited(process: subprocess.Popen[bytes]) -> bool:
    """Whether a process has ended; it stays a zombie where that is possible, so that nothing else gets its number."""
    if not hasattr(os, "waitid"):
        return process.poll() is not None
    try:
        return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:
        return True


class Output:
    """Reads what a process writes, so that it never waits; keeps the beginning."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process
        self.kept = b""
        self.thread = Thread(target=self._read, daemon=True)
        self.thread.start()

    def _read(self) -> None:
        stream = self.process.stderr
        assert stream is not None
        while True:
            piece = os.read(stream.fileno(), 1 << 16)
            if not piece:
                return
            self.kept += piece[: KEPT - len(self.kept)] if len(self.kept) < KEPT else b""

    def close(self) -> None:
        """The process has ended."""
        self.thread.join(timeout=GRACE)
        if not self.thread.is_alive() and self.process.stderr is not None:
            self.process.stderr.close()

    def notes(self) -> list[Diagnostic]:
        """What it wrote past Python's own streams."""
        text = self.kept.decode("utf-8", "replace").strip()
        told = f"the code writes to its standard output: {visible(text, 80)}"
        return [Diagnostic("GC734", told, severity="note")] if text else []


def read(answer: dict[str, Any], heard: Sequence[Diagnostic]) -> Report:
    """The report of an answer; raises the GradcliError that it may hold instead."""
    if "refusal" in answer:
        raise GradcliError(*map(diagnostic, answer["refusal"]))
    told = answer["report"]
    checks = [Check(**{**one, "diagnostics": tuple(map(diagnostic, one["diagnostics"]))}) for one in told["checks"]]
    notes = [diagnostic(one) for one in (*told["diagnostics"], *answer["notes"])]
    return summarised(told["expression"], checks, [*notes, *heard])


def diagnostic(one: Sequence[Any]) -> Diagnostic:
    """A diagnostic from plain data."""
    code, message, hint, severity = one
    return Diagnostic(code, message, help=hint, severity=severity)


def ended(child: Runner, python: str, lenient: bool) -> Report:
    """The report on a process that gave no answer."""
    code, late = child.process.returncode, child.late
    what = child.role or "f" if child.phase == RUNNING else "the module"
    if not child.phase:
        raise error("GC999", f"the process for Python code does not start (exit code {code})")
    place = crash_place(child.rest)
    evidence: dict[str, object] = {"role": what}
    if place:
        evidence["place"] = place
    verdict = "INCONCLUSIVE"
    found: tuple[Diagnostic, ...] = ()
    if late:
        told = f"{what} did not come back within {child.seconds:g} s and was stopped"
    else:
        how = f"with signal {signal_name(-code)}" if code < 0 else f"with exit code {code}"
        told = f"{what} ended the process {how}"
        where = f" ({place})" if place else ""
        verdict, found = "ERROR", (Diagnostic("GC733", told + where),)
    passed = late and lenient
    file = file_of(python)
    check = Check("callable", file, None, "callable", None, verdict, evidence, told, found, None, passed)
    return summarised(visible(python, 200), [check], child.output.notes())


def signal_name(number: int) -> str:
    """SIGSEGV and the like."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return str(number)


def crash_place(text: bytes) -> str | None:
    """The innermost line of the user's code when the process crashed, as `file:line`."""
    frames = []
    for line in text.decode("utf-8", "replace").splitlines():  # the innermost call comes first
        name, _, rest = line.strip().removeprefix('File "').partition('", line ')
        if rest:
            frames.append((name, int(rest.split(" ")[0])))
    return innermost(frames[::-1])
