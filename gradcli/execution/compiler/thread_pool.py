"""Threads: work that is shared among some of them, and the number of threads of NumPy's linear algebra library."""

from __future__ import annotations

import ctypes
import os
import threading
from collections import deque
from contextlib import contextmanager, suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

T = TypeVar("T")
MOST_THREADS = 16
_LOCK = threading.Lock()
_ENTERED: list[None] = []  # one for each context that is open
_BEFORE: list[int] = []
NAMES = tuple(
    f"{library}_{{}}_num_threads{suffix}" for library in ("scipy_openblas", "openblas") for suffix in ("64_", "")
)


def processors() -> int:
    """How many threads may work at once: GRADCLI_THREADS of the environment, else what the machine has, at most 16."""
    requested = os.environ.get("GRADCLI_THREADS", "")
    if requested.isdecimal() and int(requested) > 0:
        return min(int(requested), MOST_THREADS)
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(allowed, MOST_THREADS)


@cache
def setters() -> tuple[Any, Any] | None:
    """The functions that get and set the number of threads of NumPy's OpenBLAS, or None."""
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
    functions = setters()
    if functions is None:
        yield
        return
    get, put = functions
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


def on_one_thread(function: Callable[..., T], *args: Any) -> T:
    """A call of a function that multiplies matrices, on the thread that calls it."""
    functions = setters()
    if functions is None or functions[0]() == 1:
        return function(*args)
    with one_thread():
        return function(*args)


@cache
def helpers() -> Any:
    """The threads of this process that help the one that calls."""
    pool = import_module("concurrent.futures").ThreadPoolExecutor
    return pool(MOST_THREADS, "gradcli-plan", initializer=np.seterr, initargs=("ignore",))


def together(works: Sequence[Callable[[], None]]) -> None:
    """Run functions at once, beginning on this thread; returns when all have ended, and raises what they raise.

    They must not depend on each other: this thread runs those that no other has begun.
    """
    if len(works) == 1:
        works[0]()
        return
    left = deque(works)
    futures = []
    try:
        with suppress(RuntimeError):  # the system may give no more threads
            for _ in works[1:]:
                futures.append(helpers().submit(_drain, left.pop))
        _drain(left.popleft)
    finally:
        left.clear()
        for future in futures:
            if not future.cancel():
                future.exception()  # when it has ended
    for future in futures:
        if not future.cancelled():
            future.result()


def _drain(take: Callable[[], Callable[[], None]]) -> None:
    """Run functions that are taken one by one until none is left."""
    while True:
        try:
            work = take()
        except IndexError:
            return
        work()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=helpers.cache_clear)  # a child has none of its parent's threads
