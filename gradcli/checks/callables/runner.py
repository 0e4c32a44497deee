"""The process in which a user's code runs: it receives calls through a pipe and returns values and gradients.

Nothing is pickled; what this process sends is never run.

This is the only module here that loads a user's file. It may crash, hang or be killed at any time: `process` starts
it, follows its messages, and ends it. It judges nothing.
"""

from __future__ import annotations

import faulthandler
import gc
import importlib
import importlib.util
import os
import signal
import sys
import warnings
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from gradcli.base.child_process import MARK, MIB, adopt_orphans, kill_all, limit_memory, receive, send
from gradcli.base.diagnostics import GradcliError, did_you_mean, error, shadowing, visible
from gradcli.recording.calls.box import ClaimedDerivative, Defined, backward_of, boxed, opened
from gradcli.recording.calls.failures import Failed, Listener, OutOfTime, called, place_of
from gradcli.recording.calls.gradient_libraries import attribute, library_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

    from gradcli.recording.calls.box import BlackBox

    Message = dict[str, Any]

LOADING, RUNNING = "load", "run"
MOST_FILES = 1 << 12  # numbers of open files that a process which has just begun may have


def main() -> None:
    """Answer the requests on standard input, then end, whatever threads are still running."""
    gc.set_threshold(700, 10, 10)  # as Python has it: the code is not ours
    requests = os.fdopen(os.dup(0), "rb")
    answers = os.fdopen(os.dup(1), "wb")
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)  # the code finds nothing to read
    os.dup2(2, 1)  # and does not write among the answers
    if hasattr(os, "fork"):
        guard(int(sys.argv[-1]))
    adopt_orphans()
    faulthandler.enable(answers)
    request = receive(requests)
    if request is not None:
        try:
            serve(request, requests, answers)
        except GradcliError as problem:
            refusal = [[x.code, x.message, x.help, x.severity] for x in problem.diagnostics]
            send(answers, {"refusal": refusal})
        except OSError:
            pass  # the parent has ended
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
        kill_all(os.getpgrp(), os.environ.get(MARK))


def serve(request: dict[str, Any], requests: IO[bytes], answers: IO[bytes]) -> None:
    """Load what the request names, call it once, and answer questions about it until there are no more."""
    at: dict[str, Any] = request["point"]
    plain = {name: complex if value.dtype.kind == "c" else float for name, value in at.items()}
    at = {name: array if array.shape else plain[name](array) for name, array in at.items()}
    wrt, seconds, dtype = request["wrt"], request["timeout"], request["dtype"]
    if request["memory"] is not None:
        limit_memory(request["memory"] * MIB)
    send(answers, {"stage": LOADING})
    loader = Loader(Listener())
    about: Message = {"line": None, "rule": None}
    try:
        f = loader.target(request["python"])
        df = loader.target(request["grad"]) if request["grad"] else None
        own = df is None and not library_of(f, list(at.values()), True).differentiates
        rule = backward_of(f) if df is None else df
        about |= {"line": Defined.of(f).line, "rule": None if rule is None else [*Defined.of(rule)]}

        def stage(role: str) -> None:
            loader.listener.running = role
            send(answers, {"stage": f"{RUNNING} {role}"})

        claimed = ClaimedDerivative(True if own else None, df)
        with boxed(f, claimed, at=at, wrt=wrt, timeout=seconds, dtype=dtype, stage=stage) as box:
            at_first = box.arguments
            box, value = opened(box)
            first: Message = {name: getattr(box, name) for name in FIELDS}
            first |= {**about, "heard": loader.listener.notes(), "library": box.library.name, "value": value}
            for name, taken in (("given", at_first), ("arguments", box.arguments)):  # before and after the first call
                first[name] = [[argument.name, argument.array is not None, argument.keyword] for argument in taken]
            misshapen = {name: vars(failure) for name, failure in box.misshapen.items()}
            send(answers, {**first, "misshapen": misshapen, "claimed": box.claimed})
            while (question := receive(requests)) is not None:
                send(answers, answer(box, question))
    except (Failed, KeyboardInterrupt) as problem:
        role = loader.listener.running or "the module"
        stopped = Failed(role, f"{role} raises KeyboardInterrupt", place=place_of(problem))
        reason = vars(problem if isinstance(problem, Failed) else stopped)
        send(answers, {"failure": reason, **about, "heard": loader.listener.notes()})


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
        target: Any = self.modules[place]
        for part in name.split("."):
            if not hasattr(target, part):
                public = [text for text in dir(target) if not text.startswith("_")]
                guess = did_you_mean(part, public)
                ours = self.modules[place].__name__
                own = [text for text in public if attribute(attribute(target, text), "__module__") == ours]
                raise error(
                    "GC731",
                    f"{visible(place, 200)} has no `{visible(part)}`",
                    help=f"did you mean `{guess}`?"
                    if guess
                    else f"it has {', '.join((own or public)[:8]) or 'no public names'}",
                )
            target = getattr(target, part)
        return target

    def load(self, place: str) -> ModuleType:
        """The module of a path or of a dotted name."""
        if not place.endswith(".py"):
            sys.path.insert(0, os.getcwd())
            return importlib.import_module(place)  # allowed: to run this module is what --python is for
        path = Path(place).resolve()
        sys.path.insert(0, str(path.parent))
        sys.argv = [str(path)]
        free = path.stem.isidentifier() and path.stem not in sys.modules
        name = path.stem if free else f"_checked_{len(sys.modules)}"
        spec = importlib.util.spec_from_file_location(name, path)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)  # allowed: to run this file is what --python is for
        return module


# --- questions and answers --------------------------------------------------------------------------------------------


FIELDS: dict[str, Callable[[Any], Any]] = {  # of a box that has been opened, and how the other side reads them
    "kind": str,
    "shape": lambda shape: None if shape is None else tuple(map(int, shape)),
    "size": int,
    "dtype": str,
    "float32": bool,
    "names": lambda names: [str(name) for name in names],
    "skipped": lambda names: [str(name) for name in names],
}


def answer(box: BlackBox, question: Message) -> Message:
    """The answer to one question: what it asks for, and the arguments of that."""
    ask = question.pop("ask")
    try:
        if ask == "recording":
            from gradcli.checks.callables.recorded import recording  # with all that judges scripts

            return recording(box, **question)
        if ask == "remarks":
            return {"remarks": box.remarks(), "outside": box.outside, "drawing": box.drawing}
        return {"found": getattr(box, ask)(**question)}
    except OutOfTime:
        return {"late": True}
    except Failed as problem:
        return {"failed": vars(problem)}
    except ImportError as problem:  # of what judges
        shadow = shadowing(problem)
        if shadow is None:
            raise
        return {"failed": vars(Failed("f", shadow.message, help=shadow.help))}
