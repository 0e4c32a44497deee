"""How many threads NumPy's library of linear algebra may use: asked, and set to one while a loop runs."""

from __future__ import annotations

import ctypes
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

MOST_THREADS = 16
_LOCK = threading.Lock()
_ENTERED: list[None] = []  # one for each context that is open
_BEFORE: list[int] = []
NAMES = tuple(
    f"{library}_{{}}_num_threads{suffix}" for library in ("scipy_openblas", "openblas") for suffix in ("64_", "")
)


def processors() -> int:
    """How many threads may work at once: GRADCLI_THREADS of the environment, else what the machine has, at most 16."""
    told = os.environ.get("GRADCLI_THREADS", "")
    if told.isdecimal() and int(told) > 0:
        return min(int(told), MOST_THREADS)
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(allowed, MOST_THREADS)


@cache
def setters() -> tuple[Any, Any] | None:
    """The functions that tell and set the number of threads of OpenBLAS beside NumPy, or None."""
    root = Path(np.__file__).parent
    for folder in (root.parent / "numpy.libs", root / ".dylibs", root / ".libs"):
        for path in sorted(folder.glob("*openblas*")) if folder.is_dir() else ():
            try:
                library = ctypes.CDLL(str(path))
            except OSError:
                continue
            for name in NAMES:
                get, put = (getattr(library, name.format(verb), None) for verb in ("get", "set"))
                if get is not None and put is not None:
                    get.restype, put.argtypes = ctypes.c_int, [ctypes.c_int]
                    return get, put
    return None


@contextmanager
def one_thread() -> Iterator[None]:
    """A context in which matrix products use the thread that calls them, and no other; contexts may overlap."""
    found = setters()
    if found is None:
        yield
        return
    get, put = found
    with _LOCK:
        if not _ENTERED:
            _BEFORE[:] = [get()]
            put(1)
        _ENTERED.append(None)
    try:
        yield
    finally:
        with _LOCK:
            _ENTERED.pop()
            if not _ENTERED:
                put(_BEFORE[0])


@cache
def pool(threads: int) -> ThreadPoolExecutor:
    """Threads for loops, kept from run to run."""
    return ThreadPoolExecutor(threads, "gradcli-plan")


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=pool.cache_clear)  # a child has none of its parent's threads
