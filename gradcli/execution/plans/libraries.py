"""Functions go in and are run at once, on threads that stay apart; the threads of NumPy's library are asked and set.

A system under a hypervisor takes an idle processor for one that is busy elsewhere, and wakes a thread on the processor
of the one that woke it: two threads then share one processor for milliseconds. So while our threads work, each of them,
the caller's too, keeps to processors of its own.
"""

from __future__ import annotations

import ctypes
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

MOST_THREADS = 16
_LOCK = threading.Lock()
_ENTERED: list[None] = []  # one for each context that is open
_BEFORE: list[int] = []
_APART = threading.Lock()
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


class Team:
    """Threads that are kept, and know their numbers in the system."""

    def __init__(self, size: int) -> None:
        self.numbers: list[int] = []
        self.parts: tuple[frozenset[int], ...] = ()
        self._executor = ThreadPoolExecutor(size, "gradcli-plan", self._enter)
        self.submit = self._executor.submit
        all_here = threading.Barrier(size + 1)
        try:
            for _ in range(size):
                self.submit(all_here.wait)
            all_here.wait()
        except BaseException:  # no thread can be had: those that wait must not wait forever
            all_here.abort()
            raise

    def _enter(self) -> None:
        self.numbers.append(threading.get_native_id())


@cache
def pool(threads: int) -> Team:
    """Threads for loops, kept from run to run."""
    return Team(threads)


def together(works: Sequence[Callable[[], None]]) -> None:
    """Run functions at once, the first one on this thread; returns when all have ended, and raises what they raise."""
    if len(works) == 1:
        works[0]()
        return
    team = pool(len(works) - 1)
    with _apart(team):
        others = [team.submit(work) for work in works[1:]]
        try:
            works[0]()
        finally:
            for other in others:
                other.result()


@cache
def _where() -> Callable[[], int] | None:
    """The function that tells on which processor a thread runs; None where threads cannot be kept apart."""
    if not hasattr(os, "sched_setaffinity"):
        return None
    try:
        found = ctypes.CDLL(None).sched_getcpu
    except (OSError, AttributeError):
        return None
    return found


@contextmanager
def _apart(team: Team) -> Iterator[None]:
    """A context in which this thread and those of a team have processors of their own, as far as there are enough."""
    where = _where()
    if where is None or not _APART.acquire(blocking=False):  # somebody else's threads are at work: all share
        yield
        return
    try:
        allowed = os.sched_getaffinity(0)
        parts = shares(allowed, where(), len(team.numbers) + 1)
        if not parts:
            yield
            return
        with suppress(OSError):  # where the system forbids it, threads work as they are
            if team.parts != parts:
                for number, part in zip(team.numbers, parts[1:], strict=True):
                    os.sched_setaffinity(number, part)
                team.parts = parts
            os.sched_setaffinity(0, parts[0])
        try:
            yield
        finally:
            with suppress(OSError):
                os.sched_setaffinity(0, allowed)
    finally:
        _APART.release()


def shares(allowed: set[int], here: int, count: int) -> tuple[frozenset[int], ...]:
    """The processors of each of some threads, that of `here` among the first ones; none where they are too few."""
    if here not in allowed or len(allowed) < count:
        return ()
    order = [here, *sorted(allowed - {here})]
    return tuple([frozenset(order[place::count]) for place in range(count)])


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=pool.cache_clear)  # a child has none of its parent's threads
