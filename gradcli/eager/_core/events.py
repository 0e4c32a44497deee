"""Where operations, sweeps and in-place changes report to the record of a run.

`own.current` is None unless someone records in this thread; places that report often test that first, so that an
ordinary run pays next to nothing. A record holds no tensor: each tensor has a number instead.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any, TypeVar

T = TypeVar("T")


def per_thread(**values: Any) -> Any:
    """An object whose attributes have a value of their own in each thread, at first the given one."""
    return type("Values", (threading.local,), values)()


# `current`: an `EagerWatch` (`recording/libraries/`), whose methods say what is reported; None unless one is kept
own = per_thread(current=None)


def report(what: str, *args: Any, **options: Any) -> None:
    """Call this method of the recorder, if there is one."""
    if own.current is not None:
        getattr(own.current, what)(*args, **options)


def counted(kind: str, module: Any, hook: Any) -> Any:
    """A hook that is registered on a module; one that the recorder, if there is one, counts the calls of."""
    return hook if own.current is None else own.current.counted(kind, module, hook)


def noted(name: str, xs: Sequence[Any], result: T) -> T:
    """The result of an operation that never leaves a node, reported to the recorder."""
    if own.current is not None:
        own.current.operation(name, xs, result)
    return result
