"""What every operation asks before it records: is recording on, is this inference; holds flags and the line counter.

The flags belong to a thread. Nothing here knows tensors.
"""

from __future__ import annotations

import itertools
import sys
import threading
from typing import Any


class _State(threading.local):
    grad_enabled = True
    inference = False


state = _State()
sequence = itertools.count()
Place = tuple[Any, int] | None


def recording() -> bool:
    """Whether operations leave nodes."""
    return state.grad_enabled and not state.inference


def place() -> Place:
    """Where the caller's own code stands: (code, instruction) of the first frame outside this package."""
    frame: Any = sys._getframe(1)
    while frame is not None:
        if not frame.f_globals.get("__name__", "").startswith("gradcli."):
            return (frame.f_code, frame.f_lasti)
        frame = frame.f_back
    return None


def spoken(where: Place) -> str:
    """A place as people read it: `file.py, line 3`."""
    if where is None:
        return "an unknown line"
    code, at = where
    line = code.co_firstlineno
    for start, stop, number in code.co_lines():
        if start <= at < stop and number is not None:
            line = number
    return f"{code.co_filename.rpartition('/')[2]}, line {line}"
