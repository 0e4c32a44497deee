"""Runs functions at once on threads of their own processors, and sets the number of threads of NumPy's library.

A system under a hypervisor takes an idle processor for one that is busy elsewhere, and wakes a thread on the processor
of the one that woke it: two threads then share one processor for milliseconds. So while our threads work, each of them,
the caller's too, keeps to processors of its own.
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections import deque
from contextlib import contextmanager, suppress
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
    """Threads that are kept: each has a queue of tasks, and its number in the system."""

    def __init__(self) -> None:
        self.numbers: list[int] = []
        self.allowed: set[int] = set()  # the processors that have been shared out
        self.placed = 0  # among so many threads, the caller's too
        self.parts: list[frozenset[int]] = []  # to the caller, then to each thread; none where there are too few
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
                assert thread.native_id is not None
                self.numbers.append(thread.native_id)
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
    with apart(len(works)):
        handed_out(works)


def handed_out(works: Sequence[Callable[[], None]]) -> None:
    """`together` within `apart`."""
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


class apart:
    """A context in which this thread and the others of some threads have processors of their own, if there are enough.

    Within such a context another one, of no more threads, changes nothing.
    """

    __slots__ = ("_before", "_mine", "_threads")

    def __init__(self, threads: int) -> None:
        self._threads = threads
        self._mine = False
        self._before: set[int] | None = None

    def __enter__(self) -> None:
        others, where = team(), _where()
        if len(others.queues) < self._threads - 1:
            others.grow(self._threads - 1)
        self._mine = where is not None and _APART.acquire(blocking=False)
        if where is None or not self._mine:  # threads are at work already: all share
            return
        try:
            allowed = os.sched_getaffinity(0)
            here = where()
            if allowed != others.allowed or self._threads != others.placed:
                others.allowed, others.placed = set(), 0
                others.parts = list(shares(allowed, here, min(self._threads, len(others.numbers) + 1)))
                for number, part in zip(others.numbers, others.parts[1:], strict=False):
                    os.sched_setaffinity(number, part)
                others.allowed, others.placed = allowed, self._threads
            elif others.parts and here not in others.parts[0]:  # this thread stays: to move it would take far longer
                for place, part in enumerate(others.parts):
                    if here in part:
                        os.sched_setaffinity(others.numbers[place - 1], others.parts[0])
                        others.parts[0], others.parts[place] = part, others.parts[0]
            if others.parts:
                self._before = allowed
                os.sched_setaffinity(0, others.parts[0])
        except OSError:  # the system forbids it: threads work as they are
            return

    def __exit__(self, *_: object) -> None:
        if self._mine:
            if self._before is not None:
                with suppress(OSError):
                    os.sched_setaffinity(0, self._before)
            _APART.release()


def shares(allowed: set[int], here: int, count: int) -> tuple[frozenset[int], ...]:
    """The processors of each of some threads, that of `here` among the first ones; none where they are too few."""
    if here not in allowed or len(allowed) < count:
        return ()
    order = [here, *sorted(allowed - {here})]
    return tuple([frozenset(order[place::count]) for place in range(count)])


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=team.cache_clear)  # a child has none of its parent's threads
