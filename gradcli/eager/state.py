"""What every operation asks first: is recording on, is anything unusual on; holds flags, and tells lines of code.

The flags belong to a thread. `state.mode` sums them up, so that an operator asks one question: `PLAIN` (operations
leave nodes, nothing else is on), `SILENT` (they leave none), or `SPECIAL` (inference, a recorder, saved-tensor hooks,
forward mode: the operator takes the long way). Nothing here knows tensors.
"""

from __future__ import annotations

import itertools
import sys
import threading
import warnings
from typing import Any

import numpy as np

from gradcli.eager import recorder

PLAIN, SILENT, SPECIAL = 0, 1, 2
Place = tuple[Any, int] | None


class _State(threading.local):
    """The flags of one thread; assigning to one brings `mode` up to date."""

    def __init__(self) -> None:
        np.seterr(all="ignore")  # of this thread: NumPy keeps it in a context variable
        self._grad = True
        self._inference = False
        self._hooks: tuple[Any, ...] = ()
        self._dual: Any = None
        self._watched = 0
        self.sweep: Any = None  # the full sweep that is going on
        self.mode = PLAIN
        self.told = False  # whether a recorder is all that is unusual: the recipes of `dispatch` hold
        self.refresh()

    def refresh(self) -> None:
        """Sum the flags up again; also called by whoever starts or stops a recorder."""
        unusual = self._inference or self._hooks or self._dual is not None or self._watched
        self.told = recorder.current is not None and not unusual
        if unusual or self.told:
            self.mode = SPECIAL
        else:
            self.mode = PLAIN if self._grad else SILENT

    @property
    def grad_enabled(self) -> bool:
        """Whether operations leave nodes, inference apart."""
        return self._grad

    @grad_enabled.setter
    def grad_enabled(self, value: bool) -> None:
        self._grad = value
        self.refresh()

    @property
    def inference(self) -> bool:
        """Whether inference mode is on."""
        return self._inference

    @inference.setter
    def inference(self, value: bool) -> None:
        self._inference = value
        self.refresh()

    @property
    def saved_hooks(self) -> tuple[Any, ...]:
        """The (pack, unpack) pairs that are on, innermost last."""
        return self._hooks

    @saved_hooks.setter
    def saved_hooks(self, value: tuple[Any, ...]) -> None:
        self._hooks = value
        self.refresh()

    @property
    def watched(self) -> int:
        """How many ask that every operation takes the long way, through `dispatch.record`."""
        return self._watched

    @watched.setter
    def watched(self, value: int) -> None:
        self._watched = value
        self.refresh()

    @property
    def dual(self) -> Any:
        """The forward-mode level that is open, or None."""
        return self._dual

    @dual.setter
    def dual(self, value: Any) -> None:
        self._dual = value
        self.refresh()


class _Sweeps:
    """Whether a backward may take the short way: as long as nobody can watch the order in which leaves are reached."""

    watched = False
    anomaly = False
    check_nan = True


state = _State()
sweeps = _Sweeps()
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
        found = self[name] = isinstance(name, str) and name.startswith("gradcli.")
        return found


ours = _Ours()


class _Caller:
    """The code outside this package that called an operator last: a loop calls from the same code again and again."""

    __slots__ = ("code",)

    def __init__(self) -> None:
        self.code: Any = None


caller = _Caller()


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
    """A place as people read it: `file.py, line 3`."""
    if where is None:
        return "an unknown line"
    name, line = line_of(where)
    return f"{name.rpartition('/')[2]}, line {line}"
