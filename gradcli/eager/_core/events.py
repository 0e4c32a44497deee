"""Where operations, sweeps and in-place changes report to the record of a run.

`current` is None unless someone records in this thread. The places that report test `events.current is not None` first,
so that an ordinary run pays next to nothing. A record holds no tensor: each tensor has a number instead.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Sequence
from types import ModuleType
from typing import Any, TypeVar

T = TypeVar("T")


def per_thread(module: str, **values: Any) -> Any:
    """Give these names of a module a value in each thread, at first the given one.

    The module is read and assigned to as usual from outside. The object that is returned has the same names, for the
    module itself.

    >>> import types; sys.modules["example"] = types.ModuleType("example")
    >>> own = per_thread("example", current=None)
    >>> sys.modules["example"].current = 3
    >>> thread = threading.Thread(target=lambda: print(own.current))
    >>> thread.start(); thread.join()
    None
    >>> own.current
    3
    """
    local = type("Values", (threading.local,), values)()

    def named(name: str) -> property:
        return property(lambda _: getattr(local, name), lambda _, value: setattr(local, name, value))

    sys.modules[module].__class__ = type("Module", (ModuleType,), {name: named(name) for name in values})
    return local


current: Any  # an `EagerWatch` (`run_recorder.py`), whose methods say what is reported; None unless one is kept
_own = per_thread(__name__, current=None)


def report(what: str, *args: Any, **options: Any) -> None:
    """Call this method of the recorder, if there is one."""
    if _own.current is not None:
        getattr(_own.current, what)(*args, **options)


def noted(name: str, xs: Sequence[Any], result: T) -> T:
    """The result of an operation that never leaves a node, reported to the recorder."""
    if _own.current is not None:
        _own.current.operation(name, xs, result)
    return result
