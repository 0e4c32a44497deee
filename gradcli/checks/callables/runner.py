"""A request in a folder goes in, a report in the same folder comes out: the process in which a user's code runs.

This is the only module here that loads a user's file. It may crash, hang or be killed at any time: `process` started
it, reads what it was doing, and ends it.
"""

from __future__ import annotations

import faulthandler
import importlib
import importlib.util
import os
import sys
from json import dumps, loads
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.checks.callables.api import check_callable, failed
from gradcli.checks.callables.failures import Failed, Listener, called
from gradcli.diagnostics import Diagnostic, GradcliError, did_you_mean, error, visible

if TYPE_CHECKING:
    from types import ModuleType

    from gradcli.checks.report import Report

REQUEST, POINT, ANSWER, STAGE, TRACE = "request.json", "point.npz", "answer.json", "stage", "trace"
LOADING, RUNNING = "load", "run"


def main() -> None:
    """Answer the request in the folder that the last argument names, and end, whatever threads are still running."""
    folder = Path(sys.argv[-1])
    stage = os.open(folder / STAGE, os.O_WRONLY | os.O_CREAT)
    trace = (folder / TRACE).open("w", encoding="utf-8")
    faulthandler.enable(trace)
    try:
        answer = answered(folder, stage)
    except GradcliError as problem:
        answer = {"refusal": [list_of(one) for one in problem.diagnostics]}
    (folder / "unfinished").write_text(dumps(answer), encoding="utf-8")
    os.replace(folder / "unfinished", folder / ANSWER)
    os._exit(0)


def answered(folder: Path, stage: int) -> dict[str, Any]:
    """Load what the request names, check it, and give the report as plain data."""
    request = loads((folder / REQUEST).read_text(encoding="utf-8"))
    with np.load(folder / POINT, allow_pickle=False) as file:  # allowed: numbers alone, objects are refused
        at: dict[str, Any] = {name: file[name] for name in file.files}
    plain = {name: complex if value.dtype.kind == "c" else float for name, value in at.items()}
    at = {name: at[name] if at[name].shape else plain[name](at[name]) for name in request["names"]}
    options = request["options"]
    tell(stage, LOADING)
    loader = Loader(Listener())
    file = file_of(request["python"])
    title = (
        f"{Path(file).name if file else request['python'].rpartition(':')[0]}:{request['python'].rpartition(':')[2]}"
    )
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
            stage=lambda role: tell(stage, f"{RUNNING} {role}"),
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


def tell(stage: int, role: str) -> None:
    """Write down what is running now, for whoever finds this process dead."""
    text = role.encode()[:79].ljust(80)
    os.lseek(stage, 0, os.SEEK_SET)
    os.write(stage, text)


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
