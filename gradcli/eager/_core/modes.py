"""Grad mode, inference mode and the other flags of a thread; the sequence numbers of nodes; lines of code.

`state.mode` sums the flags up, so that an operator tests one number: `PLAIN` (operations leave nodes, nothing else is
on), `SILENT` (they leave none), or `SPECIAL` (inference, a recorder, saved-tensor hooks, forward mode: the operator
takes the long way). `no_grad`, `enable_grad`, `set_grad_enabled` and `inference_mode` are contexts, decorators and
functions, as in PyTorch.
"""

from __future__ import annotations

import functools
import inspect
import itertools
import sys
import threading
import warnings
from operator import attrgetter
from types import SimpleNamespace
from typing import Any

import numpy as np

from gradcli.eager._core import events

PLAIN, SILENT, SPECIAL = 0, 1, 2
Place = tuple[Any, int] | None


def _flag(name: str) -> Any:
    """A flag that brings `mode` up to date when it is assigned to."""

    def assign(state: Any, value: Any) -> None:
        setattr(state, name, value)
        state.refresh()

    return property(attrgetter(name), assign)


class _State(threading.local):
    """The flags of one thread; assigning to one brings `mode` up to date."""

    def __init__(self) -> None:
        np.seterr(all="ignore")  # of this thread: NumPy keeps it in a context variable
        self._grad = True
        self._inference = False
        self._hooks: tuple[Any, ...] = ()
        self._dual: Any = None
        self._watched = 0
        self.mode = PLAIN
        self.recorder_only = False  # whether a recorder is all that is unusual: the followers of `fastpath.py` hold
        self.refresh()

    def refresh(self) -> None:
        """Sum the flags up again; also called when a recorder starts or stops."""
        unusual = self._inference or self._hooks or self._dual is not None or self._watched
        self.recorder_only = events.own.current is not None and not unusual
        if unusual or self.recorder_only:
            self.mode = SPECIAL
        else:
            self.mode = PLAIN if self._grad else SILENT

    grad_enabled = _flag("_grad")  # whether operations leave nodes, inference apart
    inference = _flag("_inference")
    saved_hooks = _flag("_hooks")  # the (pack, unpack) pairs that are on, innermost last
    watched = _flag("_watched")  # how many callers want every operation to run through `record.record`
    dual = _flag("_dual")  # the forward-mode level that is open, or None


state = _State()
# what makes a backward observable: hooks that see in which order leaves are reached, or anomaly mode
sweeps = SimpleNamespace(watched=False, anomaly=False, check_nan=True)
sequence = itertools.count(1)

_said: set[str] = set()
always = [False]


def once(key: str, text: str, category: type[Warning] = UserWarning) -> None:
    """Warn the first time in a process, or each time after `set_warn_always(True)`."""
    if always[0] or key not in _said:
        _said.add(key)
        warn(text, category)


def warn(text: str, category: type[Warning] = UserWarning) -> None:
    """A warning at the line outside this package that led to it."""
    depth = 1
    frame: Any = sys._getframe()
    while frame is not None and ours[frame.f_globals.get("__name__")]:
        frame, depth = frame.f_back, depth + 1
    warnings.warn(text, category, stacklevel=depth)


def recording() -> bool:
    """Whether operations leave nodes."""
    return state._grad and not state._inference


class _Ours(dict[Any, bool]):
    """By the name of a module whether it is one of this package."""

    def __missing__(self, name: Any) -> bool:
        answer = self[name] = isinstance(name, str) and name.startswith("gradcli.")
        return answer


ours = _Ours()


def outside(frame: Any) -> Place:
    """(code, instruction) of the first frame outside this package, from a frame on."""
    while frame is not None:
        if not ours[frame.f_globals.get("__name__")]:
            return (frame.f_code, frame.f_lasti)
        frame = frame.f_back
    return None


def place() -> Place:
    """Where the caller's own code stands."""
    return outside(sys._getframe(1))


def line_of(where: Place) -> tuple[str, int]:
    """A place as file and line."""
    if where is None:
        return "", 0
    code, at = where
    line = code.co_firstlineno
    for start, stop, number in code.co_lines():
        if start <= at < stop and number is not None:
            line = number
    return code.co_filename, line


def spoken(where: Place) -> str:
    """A place in words: `file.py, line 3`."""
    if where is None:
        return "an unknown line"
    name, line = line_of(where)
    return f"{name.rpartition('/')[2]}, line {line}"


def is_grad_enabled() -> bool:
    """Whether operations leave nodes here."""
    return state._grad


def is_inference_mode_enabled() -> bool:
    """Whether inference mode is on here."""
    return state._inference


class _Mode:
    """A context that sets flags and sets them back; nested uses of one object are kept in order."""

    grad: bool | None = None
    inference: bool | None = None
    arguments: tuple[tuple[Any, ...], dict[str, Any]] = ((), {})

    def __new__(cls, *args: Any, **options: Any) -> Any:
        mode = object.__new__(cls)
        if not args or not callable(args[0]):
            mode.arguments = (args, options)
            return mode
        mode.__init__()  # type: ignore[misc]
        return mode(args[0])  # `@no_grad` without parentheses decorates at once

    def __init__(self) -> None:
        self.before: list[tuple[bool, bool]] = []

    def __enter__(self) -> None:
        self.before.append((state.grad_enabled, state.inference))
        if self.grad is not None:
            state.grad_enabled = self.grad
        if self.inference is not None:
            state.inference = self.inference
        events.report("mode_set", self, "with")

    def __exit__(self, *exc: object) -> None:
        state.grad_enabled, state.inference = self.before.pop()
        events.report("mode_set", self, "exit")

    def __call__(self, function: Any) -> Any:
        args, options = self.arguments
        again = functools.partial(type(self), *args, **options)
        if inspect.isgeneratorfunction(function):

            @functools.wraps(function)
            def stepwise(*args: Any, **kwargs: Any) -> Any:
                with again():
                    inner = function(*args, **kwargs)
                    step = functools.partial(next, inner)
                while True:
                    try:
                        with again():
                            value = step()
                    except StopIteration as end:
                        return end.value
                    try:
                        sent = yield value
                    except GeneratorExit:
                        with again():
                            inner.close()
                        raise
                    except BaseException as thrown:
                        step = functools.partial(inner.throw, thrown)
                    else:
                        step = functools.partial(inner.send, sent)

            return stepwise

        @functools.wraps(function)
        def inside(*args: Any, **kwargs: Any) -> Any:
            with again():
                return function(*args, **kwargs)

        return inside


class no_grad(_Mode):
    """Operations inside leave no nodes."""

    grad = False


class enable_grad(_Mode):
    """Operations inside leave nodes again, in a `no_grad` block too."""

    grad = True


class inference_mode(_Mode):
    """Operations inside leave no nodes, and their results can never be saved for a backward."""

    def __init__(self, mode: bool = True) -> None:
        super().__init__()
        self.mode = self.inference = mode
        self.grad = False if mode else None


class set_grad_enabled(_Mode):
    """Recording on or off: at once when called, and back at the end of a `with` block."""

    def __init__(self, mode: bool) -> None:
        super().__init__()
        self.mode = self.grad = bool(mode)
        self.old = (state.grad_enabled, state.inference)
        state.grad_enabled = self.mode
        events.report("mode_set", self, "call")

    def __enter__(self) -> None:
        self.before.append(self.old)
        state.grad_enabled = self.mode
        events.report("mode_set", self, "with")

    def __call__(self, function: Any) -> Any:
        state.grad_enabled = self.old[0]  # as a decorator it must not change the mode outside
        events.report("mode_set", self, "exit")
        return super().__call__(function)
