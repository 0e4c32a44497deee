"""A request through a pipe goes in, a report through another comes out: the process in which a user's code runs.

This is the only module here that loads a user's file. It may crash, hang or be killed at any time: `process` started
it, hears what it is doing, and ends it.
"""

from __future__ import annotations

import faulthandler
import importlib
import importlib.util
import os
import signal
import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gradcli.checks.callables.api import check_callable, failed
from gradcli.checks.callables.channel import received, send, unpacked
from gradcli.checks.callables.failures import Failed, Listener, called
from gradcli.diagnostics import Diagnostic, GradcliError, did_you_mean, error, visible

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

    from gradcli.checks.report import Report

LOADING, RUNNING = "load", "run"
MOST_FILES = 1 << 12  # numbers of open files that a process which has just begun may have


def main() -> None:
    """Answer the request on standard input, and end, whatever threads are still running."""
    requests = os.fdopen(os.dup(0), "rb")
    answers = os.fdopen(os.dup(1), "wb")
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)  # the code finds nothing to read
    os.dup2(2, 1)  # and does not write among the answers
    if hasattr(os, "fork"):
        guard(int(sys.argv[-1]))
    faulthandler.enable(answers)
    try:
        request = received(requests.readline())
        if request is None:
            os._exit(0)
        answer = answered(request, lambda stage: send(answers, {"stage": stage}))
    except GradcliError as problem:
        answer = {"refusal": [list_of(one) for one in problem.diagnostics]}
    send(answers, answer)
    os._exit(0)


def guard(lifeline: int) -> None:
    """Start a process that kills this one and all of its group as soon as the one that judges has ended.

    A thread could not: code that never gives up the interpreter's lock would keep it from running.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of threads: nothing of them is used
        if os.fork():
            os.close(lifeline)
            return
    try:
        for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT"):
            signal.signal(getattr(signal, name), signal.SIG_IGN)
        os.dup2(0, 1)
        os.dup2(0, 2)
        os.closerange(3, lifeline)
        os.closerange(lifeline + 1, MOST_FILES)
        while os.read(lifeline, 1):
            pass
    finally:
        os.killpg(0, signal.SIGKILL)


def answered(request: dict[str, Any], tell: Callable[[str], None]) -> dict[str, Any]:
    """Load what the request names, check it, and give the report as plain data."""
    at: dict[str, Any] = {name: unpacked(value) for name, value in request["point"].items()}
    plain = {name: complex if value.dtype.kind == "c" else float for name, value in at.items()}
    at = {name: array if array.shape else plain[name](array) for name, array in at.items()}
    options = request["options"]
    tell(LOADING)
    loader = Loader(Listener())
    file = file_of(request["python"])
    place, _, name = request["python"].rpartition(":")
    title = visible(f"{Path(file).name if file else place}:{name}", 200)
    try:
        f = loader.target(request["python"])
        df = loader.target(request["grad"]) if request["grad"] else None
        own = df is None and not differentiates(f, at)
        report = check_callable(
            f,
            True if own else None,
            jac=df,
            at=at,
            title=title,
            file=file,
            stage=lambda role: tell(f"{RUNNING} {role}"),
            **options,
        )
    except Failed as problem:
        report = failed(problem, title, file, None)
    except KeyboardInterrupt:
        report = failed(Failed("f", "f raises KeyboardInterrupt"), title, file, None)
    notes = [Diagnostic("GC734", text, severity="note") for text in loader.listener.notes()]
    return {"report": plain_report(report), "notes": [list_of(one) for one in notes]}


def differentiates(f: Any, at: dict[str, Any]) -> bool:
    """Whether a function has gradients of its own: one of tensors, or of JAX."""
    from gradcli.checks.callables.libraries import library_of

    return library_of(f, list(at.values()), True).differentiates


class Loader:
    """Loads modules by path or dotted name, each once, as Python would for a script beside them."""

    def __init__(self, listener: Listener) -> None:
        self.listener = listener
        self.modules: dict[str, ModuleType] = {}

    def target(self, text: str) -> Any:
        """The object that TARGET:NAME names; Failed where its module raises, GC731 where it is not there."""
        place, _, name = text.rpartition(":")
        if place not in self.modules:
            with self.listener, self.listener.hearing("the module", False):
                self.modules[place] = called("the module", self.load, place)
        found: Any = self.modules[place]
        for part in name.split("."):
            if not hasattr(found, part):
                public = [one for one in dir(found) if not one.startswith("_")]
                guess = did_you_mean(part, public)
                own = [one for one in public if getattr(getattr(found, one), "__module__", "") == self.name_of(place)]
                public = own or public
                raise error(
                    "GC731",
                    f"{visible(place, 200)} has no `{visible(part)}`",
                    help=f"did you mean `{guess}`?"
                    if guess
                    else f"it has {', '.join(public[:8]) or 'no public names'}",
                )
            found = getattr(found, part)
        return found

    def name_of(self, place: str) -> str:
        """What the functions of a module call it."""
        return self.modules[place].__name__

    def load(self, place: str) -> ModuleType:
        """The module of a path or of a dotted name."""
        if not place.endswith(".py"):
            sys.path.insert(0, os.getcwd())
            return importlib.import_module(place)  # allowed: to run this module is what --python is for
        path = Path(place).resolve()
        sys.path.insert(0, str(path.parent))
        sys.argv = [str(path)]
        name = (
            path.stem if path.stem.isidentifier() and path.stem not in sys.modules else f"_checked_{len(sys.modules)}"
        )
        spec = importlib.util.spec_from_file_location(name, path)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)  # allowed: to run this file is what --python is for
        return module


def file_of(target: str) -> str | None:
    """The file of a target as it was written; None for a dotted name."""
    place = target.rpartition(":")[0]
    return place if place.endswith(".py") else None


def list_of(one: Diagnostic) -> list[Any]:
    """A diagnostic as plain data."""
    return [one.code, one.message, one.help, one.severity]


def plain_report(report: Report) -> dict[str, Any]:
    """A report as plain data."""
    return {
        "expression": report.expression,
        "diagnostics": [list_of(one) for one in report.diagnostics],
        "checks": [
            {**{key: getattr(one, key) for key in FIELDS}, "diagnostics": [list_of(d) for d in one.diagnostics]}
            for one in report.checks
        ],
    }


FIELDS = ("id", "file", "line", "kind", "leaf", "verdict", "evidence", "message", "expected", "passed")
