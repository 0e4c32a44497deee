"""Names of a module that have a value in each thread."""

from __future__ import annotations

import sys
import threading
from types import ModuleType
from typing import Any


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
