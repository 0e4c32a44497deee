"""Threads: work that is shared among some of them, and the number of threads of NumPy's linear algebra library."""

from __future__ import annotations

import ctypes
import os
import threading
from collections import deque
from contextlib import contextmanager
from functools import cache
from itertools import pairwise
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

Piece = TypeVar("Piece")
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


def on_one_thread(function: Callable[..., T], *args: Any) -> T:
    """A call of a function that multiplies matrices, on the thread that calls it."""
    found = setters()
    if found is None or found[0]() == 1:
        return function(*args)
    with one_thread():
        return function(*args)


class Task:
    """A function that is called once: by a thread, or by whoever waits for it if that thread is not awake by then."""

    __slots__ = ("_left", "ended", "error")

    def __init__(self, work: Callable[[], None]) -> None:
        self._left = [work]
        self.ended: SimpleQueue[None] = SimpleQueue()
        self.error: BaseException | None = None

    def run(self) -> bool:
        """Call the function, unless somebody has; whether it was called here."""
        try:
            work = self._left.pop()  # atomic
        except IndexError:
            return False
        try:
            work()
        except BaseException as problem:  # for the one who waits
            self.error = problem
        self.ended.put(None)
        return True


class Team:
    """Threads that are kept, each with a queue of tasks."""

    def __init__(self) -> None:
        self.queues: list[SimpleQueue[Task]] = []
        self._growing = threading.Lock()

    def grow(self, size: int) -> None:
        """Have so many threads, or as many as the system gives."""
        with self._growing:
            for number in range(len(self.queues), size):
                queue: SimpleQueue[Task] = SimpleQueue()
                thread = threading.Thread(target=_serve, args=(queue,), name=f"gradcli-plan-{number}", daemon=True)
                try:
                    thread.start()
                except RuntimeError:
                    return
                self.queues.append(queue)


def _serve(queue: SimpleQueue[Task]) -> None:
    with np.errstate(all="ignore"):
        while True:
            queue.get().run()


@cache
def team() -> Team:
    """The threads of this process."""
    return Team()


def together(works: Sequence[Callable[[], None]]) -> None:
    """Run functions at once, the first one on this thread; returns when all have ended, and raises what they raise.

    They may not wait for each other: what a thread has not begun when this one has ended its own work is done here.
    """
    if len(works) == 1:
        works[0]()
        return
    if len(team().queues) < len(works) - 1:
        team().grow(len(works) - 1)
    queues = team().queues
    tasks = []
    for place, work in enumerate(works[1:]):
        task = Task(work)
        tasks.append(task)
        if place < len(queues):  # else it is left for the one who waits for it
            queues[place].put(task)
    try:
        works[0]()
    finally:
        for task in tasks:
            if not task.run():
                task.ended.get()
    for task in tasks:
        if task.error is not None:
            raise task.error


def shared(pieces: Sequence[Piece], threads: int) -> list[deque[Piece]]:
    """The pieces of each of some threads, neighbours all of them: what a thread has in its cache it takes again."""
    bounds = [len(pieces) * at // threads for at in range(threads + 1)]
    return [deque(pieces[first:last]) for first, last in pairwise(bounds)]


def dealt(shares: Sequence[deque[Piece]], at: int) -> Iterator[Piece]:
    """The pieces of one thread in their order; when none is left, those of the others, from their ends.

    So threads hardly ever write to the same page for the first time: the system would clear it for each of them.
    """
    for take in (shares[at].popleft, *[other.pop for other in shares]):
        try:
            while True:
                yield take()
        except IndexError:  # another thread may have taken the last one
            continue


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=team.cache_clear)  # a child has none of its parent's threads
