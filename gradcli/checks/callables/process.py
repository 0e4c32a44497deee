"""The names of a function and its derivative and a point go in, a report comes out, whatever the code there does.

The code runs in a process of its own, with nothing to read from and a limit on time. A crash, an exit, a hang or a
flood of output ends that process only, and becomes a verdict.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from json import dumps, loads
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.checks.callables import runner
from gradcli.checks.callables.failures import KEPT, innermost
from gradcli.checks.child import CODE, QUIET
from gradcli.checks.report import Check, Report, summarised, timed
from gradcli.diagnostics import Diagnostic, GradcliError, error, visible
from gradcli.points import array_of, read_point

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gradcli.language.limits import Limits

START = 60.0  # seconds for our own imports, on the slowest of machines
GRACE = 1.0  # beyond the time that the check allows itself
PAUSE = 0.01
LEAST = 0.05


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
    request = {"python": python, "grad": grad, "names": list(arrays), "options": {**options, "timeout": seconds}}
    with TemporaryDirectory(prefix="gradcli-") as name:
        folder = Path(name)
        (folder / runner.REQUEST).write_text(dumps(request), encoding="utf-8")
        with (folder / runner.POINT).open("wb") as file:
            np.savez(file, allow_pickle=False, **arrays)  # allowed: numbers alone, objects are refused
        report = run(folder, seconds, python, lenient)
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


def run(folder: Path, seconds: float, python: str, lenient: bool) -> Report:
    """The report of the process that works in a folder, or on how it ended."""
    paths = [os.path.abspath(path) for path in sys.path if path]
    process = subprocess.Popen(
        [sys.executable, "-P", "-c", CODE.format(paths=paths, module=runner.__name__), str(folder)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env={**os.environ, **QUIET},
        start_new_session=True,
    )
    heard = Output(process)
    try:
        late = wait(process, folder, seconds)
    finally:
        end(process)
    heard.close()
    answer = folder / runner.ANSWER
    if answer.exists():
        return read(loads(answer.read_text(encoding="utf-8")), heard.notes())
    return ended(process.returncode, late, folder, seconds, python, lenient, heard.notes())


def wait(process: subprocess.Popen[bytes], folder: Path, seconds: float) -> bool:
    """Until the process ends by itself; True where its time was over first."""
    allowed = {"": START, runner.LOADING: seconds + GRACE, runner.RUNNING: seconds + GRACE}
    phase, since = "", monotonic()
    while process.poll() is None:
        now = stage(folder).partition(" ")[0]
        if now != phase and now in allowed:
            phase, since = now, monotonic()
        if monotonic() - since > allowed[phase]:
            return True
        sleep(PAUSE)
    return False


def stage(folder: Path) -> str:
    """What the process wrote that it was doing."""
    try:
        return (folder / runner.STAGE).read_text(encoding="utf-8").strip()
    except OSError:
        return ""


def end(process: subprocess.Popen[bytes]) -> None:
    """End the process if it still runs, and with it whatever it started."""
    if process.returncode is None:
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        process.kill()
    process.wait()


class Output:
    """Reads what a process writes, so that it never waits; keeps the beginning."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process
        self.kept = b""
        self.thread = Thread(target=self._read, daemon=True)
        self.thread.start()

    def _read(self) -> None:
        stream = self.process.stdout
        assert stream is not None
        while True:
            piece = os.read(stream.fileno(), 1 << 16)
            if not piece:
                return
            self.kept += piece[: KEPT - len(self.kept)] if len(self.kept) < KEPT else b""

    def close(self) -> None:
        """The process has ended."""
        self.thread.join(timeout=GRACE)
        if not self.thread.is_alive() and self.process.stdout is not None:
            self.process.stdout.close()

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


def ended(
    code: int, late: bool, folder: Path, seconds: float, python: str, lenient: bool, heard: Sequence[Diagnostic]
) -> Report:
    """The report on a process that gave no answer."""
    phase, _, role = stage(folder).partition(" ")
    what = role or "f" if phase == runner.RUNNING else "the module"
    if not phase:
        raise error("GC999", f"the process for Python code does not start (exit code {code})")
    place = crash_place(folder)
    evidence: dict[str, object] = {"role": what}
    if place:
        evidence["place"] = place
    verdict = "INCONCLUSIVE"
    found: tuple[Diagnostic, ...] = ()
    if late:
        told = f"{what} did not come back within {seconds:g} s and was stopped"
    else:
        how = f"with signal {signal_name(-code)}" if code < 0 else f"with exit code {code}"
        told = f"{what} ended the process {how}"
        where = f" ({place})" if place else ""
        verdict, found = "ERROR", (Diagnostic("GC733", told + where),)
    passed = late and lenient
    file = runner.file_of(python)
    check = Check("callable", file, None, "callable", None, verdict, evidence, told, found, None, passed)
    return summarised(python, [check], heard)


def signal_name(number: int) -> str:
    """SIGSEGV and the like."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return str(number)


def crash_place(folder: Path) -> str | None:
    """The innermost line of the user's code when the process crashed, as `file:line`."""
    try:
        lines = (folder / runner.TRACE).read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return None
    frames = []
    for line in lines:  # the innermost call comes first
        name, _, rest = line.strip().removeprefix('File "').partition('", line ')
        if rest:
            frames.append((name, int(rest.split(" ")[0])))
    return innermost(frames[::-1])
