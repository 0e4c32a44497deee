"""A Python process that runs the `main` of a module: its pipes and messages, and the limits that it sets itself.

The process finds modules where this one does, but never in the current folder for being there. Messages are lines of
JSON, in which arrays of numbers are objects of three fields. Nothing is pickled.
"""

from __future__ import annotations

import os
import signal
import sys
from binascii import a2b_base64, b2a_base64  # `base64` has the same, and takes longer to import
from contextlib import suppress
from importlib import import_module
from itertools import takewhile
from json import dumps, loads
from queue import SimpleQueue
from select import select
from threading import Thread
from time import process_time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable, Iterable, Iterator
    from typing import IO

    Message = dict[str, Any]


CODE = (  # graphs and forms are many small objects without cycles: garbage is collected seldom
    "import gc, sys; gc.set_threshold(100_000, 50, 100); sys.path.extend(p for p in {paths!r} if p not in sys.path); "
    "from {module} import main; main()"
)
MARK = "GRADCLI_JUDGED"  # a variable of the environment
MOST_GENERATIONS = 10
QUIET = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "PYTHONIOENCODING": "utf-8"}


def start(
    module: str,
    environment: dict[str, str] | None = None,
    *,
    own_session: bool = False,
    errors: int | None = None,
    encoding: str | None = "utf-8",
) -> subprocess.Popen[Any]:
    """The process; one thread of its own for linear algebra, so that several of them share the machine, and few
    searches for cycles of garbage.

    Its `main` may call `end_with_parent`. With `own_session` it leads a process group, to which what it starts belongs
    too, and the signals of a terminal do not reach it. `errors` is its standard error, by default nothing; without an
    `encoding` its streams are of bytes.
    """
    import subprocess  # the process itself, which also imports this module, starts no others
    from weakref import finalize

    paths = [os.path.abspath(path) for path in sys.path if path]
    reading, writing = os.pipe()
    posix: dict[str, Any] = {"pass_fds": (reading,)} if hasattr(os, "fork") else {}
    try:
        process = subprocess.Popen(
            [sys.executable, "-P", "-c", CODE.format(paths=paths, module=module), str(reading)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL if errors is None else errors,
            encoding=encoding,
            env={**os.environ, **QUIET, **(environment or {})},
            start_new_session=own_session,
            **posix,
        )
    except BaseException:
        os.close(writing)
        raise
    finally:
        os.close(reading)
    finalize(process, os.close, writing)
    return process


def exited(process: subprocess.Popen[bytes]) -> bool:
    """Whether a process has ended; it stays a zombie where that is possible, so that nothing else gets its number."""
    if not hasattr(os, "waitid"):
        return process.poll() is not None
    try:
        return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:
        return True


def kill_group(process: subprocess.Popen[Any]) -> None:
    """Kill a process that leads a group and whatever it started, even if it has ended by itself."""
    if hasattr(os, "killpg"):
        kill_all(process.pid)
    else:
        process.kill()


def kill_all(leader: int, mark: str | None = None) -> None:
    """Kill the group of a process; on Linux also what it started in other sessions, if it still runs.

    What has `mark` in its environment (MARK) is killed even if nothing leads from it to the leader any more.
    """
    with suppress(ProcessLookupError, PermissionError):
        os.kill(leader, signal.SIGSTOP)  # it starts nothing more
    for _ in range(MOST_GENERATIONS):  # what is killed may have started something in between
        victims = [pid for pid in below(leader, mark) if pid not in (leader, os.getpid())]
        for pid in victims:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        if not victims:
            break
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)


def below(leader: int, mark: str | None) -> list[int]:
    """The processes that descend from one, or bear a mark, as far as the system tells; zombies do not count."""
    parents: dict[int, int] = {}
    marked: list[int] = []
    for name in os.listdir("/proc") if os.path.isdir("/proc/self") else ():
        if not name.isdecimal():
            continue
        with suppress(OSError, ValueError, IndexError):  # it has ended, or belongs to another user
            with open(f"/proc/{name}/stat", encoding="utf-8", errors="replace") as file:
                state, parent = file.read().rpartition(")")[2].split()[:2]
            if state not in "ZX":
                parents[int(name)] = int(parent)
                if mark is not None:
                    with open(f"/proc/{name}/environ", "rb") as file:
                        if f"{MARK}={mark}".encode() in file.read().split(b"\0"):
                            marked.append(int(name))
    family = {leader, *marked}
    while more := {pid for pid, parent in parents.items() if parent in family} - family:
        family |= more
    return [pid for pid in family if pid in parents]


def listen(messages: Iterable[Any], put: Callable[[Any], None]) -> Thread:
    """The thread that hands on each message of a process, and None when there will be no more."""

    def work() -> None:
        with suppress(OSError, ValueError):  # the stream was closed
            for message in messages:
                put(message)
        put(None)

    thread = Thread(target=work, daemon=True)
    thread.start()
    return thread


def whole_lines(stream: Iterable[str]) -> Iterator[str]:
    """The lines of a process; what has no newline at its end is what the process wrote when it died."""
    return takewhile(lambda line: line.endswith("\n"), stream)


def conversation() -> tuple[SimpleQueue[str], IO[str]]:
    """The requests of a process that `start` started, line by line, and where its answers go.

    The process ends with its parent and with its standard input, whatever it is doing. What else is written to its
    standard output does not get among the answers.
    """
    end_with_parent()
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    requests: SimpleQueue[str] = SimpleQueue()

    def read() -> None:
        for line in sys.stdin:
            requests.put(line)
        os._exit(0)

    Thread(target=read, daemon=True).start()
    return requests, answers


# --- messages ---------------------------------------------------------------------------------------------------------

KINDS = "fciub"  # numbers and truth values
MOST_LINES = 1_000


def send(stream: IO[bytes], message: Message) -> None:
    """Write one message, which may hold arrays of numbers. Raises OSError where the reader has ended."""
    stream.write(dumps(message, default=packed).encode() + b"\n")
    stream.flush()


def receive(stream: IO[bytes], rest: list[bytes] | None = None) -> Message | None:
    """The next message; None where there are no more. Lines that are none, such as a crash's, are left in `rest`."""
    while line := stream.readline():
        try:
            message = loads(line, object_hook=with_array) if line.endswith(b"\n") else None
        except (ValueError, TypeError, RecursionError):
            message = None
        if isinstance(message, dict):
            return message
        if rest is not None and len(rest) < MOST_LINES:
            rest.append(line)
    return None


def packed(array: Any) -> Message:
    """An array of numbers as JSON. Raises TypeError for anything else.

    >>> import numpy as np
    >>> with_array(packed(np.array([1.5, np.nan])))
    array([1.5, nan])
    """
    import numpy as np  # the oracle's process sends no arrays

    array = np.asarray(array)
    if array.dtype.kind not in KINDS:
        raise TypeError(f"an array of {array.dtype} holds no numbers")
    data = b2a_base64(np.ascontiguousarray(array).tobytes(), newline=False).decode()
    return {"dtype": array.dtype.str, "shape": list(array.shape), "data": data}


def with_array(value: Message) -> Any:
    """The array of its JSON, any other object as it is. Raises TypeError or ValueError for an array without numbers."""
    if value.keys() != {"dtype", "shape", "data"}:
        return value
    import numpy as np

    dtype = np.dtype(str(value["dtype"]))
    if dtype.kind not in KINDS:
        raise TypeError(f"an array of {dtype} holds no numbers")
    return np.ndarray(tuple(map(int, value["shape"])), dtype, a2b_base64(value["data"])).copy()


# --- limits ---------------------------------------------------------------------------------------------------------

MIB = 2**20


def end_with_parent() -> None:
    """Let the kernel kill this process when its parent ends, in whatever way; on Linux.

    The last argument of the command line is the reading end of a pipe without a writer (`start`): the parent
    holds the other end. When that is closed the kernel sends the signal for input, which is made SIGKILL here. Unlike
    PR_SET_PDEATHSIG this depends on the parent's process, not on the thread that started this one.
    """
    fcntl = module("fcntl")
    if not hasattr(fcntl, "F_SETSIG") or not sys.argv[-1].isdecimal():
        return
    lifeline = int(sys.argv[-1])
    fcntl.fcntl(lifeline, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(lifeline, fcntl.F_SETSIG, signal.SIGKILL)
    fcntl.fcntl(lifeline, fcntl.F_SETFL, fcntl.fcntl(lifeline, fcntl.F_GETFL) | fcntl.FASYNC)
    if select([lifeline], [], [], 0)[0]:  # it was closed before
        os._exit(1)


def adopt_orphans() -> None:
    """Be the parent of what descends from this process and has lost its own; on Linux."""
    if sys.platform == "linux":
        from ctypes import CDLL

        with suppress(OSError, AttributeError):
            CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER


def limit_memory(most: int) -> None:
    """Let this process, and what it starts, have at most so many bytes of address space, or what it has been allowed.

    A request that grows without bound then fails with a MemoryError here, before the machine suffers.
    """
    resource = module("resource")
    if resource is not None:
        with suppress(ValueError, OSError):  # a system that names the limit and does not have it
            soft, hard = resource.getrlimit(resource.RLIMIT_AS)
            if soft == resource.RLIM_INFINITY or soft > most:
                resource.setrlimit(resource.RLIMIT_AS, (most, hard))


def cpu_limit() -> float | None:
    """The seconds of CPU time that this process may use in all; None for no limit."""
    resource = module("resource")
    if resource is None:
        return None
    soft = resource.getrlimit(resource.RLIMIT_CPU)[0]
    return None if soft == resource.RLIM_INFINITY else float(soft)


def extend_cpu_limit(seconds: float | None) -> None:
    """Let this process use so many seconds of CPU time from now on; the system then kills it."""
    resource = module("resource")
    if resource is None or seconds is None:
        return
    hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
    soft = int(process_time() + seconds) + 1
    resource.setrlimit(resource.RLIMIT_CPU, (soft if hard == resource.RLIM_INFINITY else min(soft, hard), hard))


def resident(pid: int | str = "self") -> float:
    """The memory that a process holds, in MiB; 0 where the system does not report it."""
    try:
        with open(f"/proc/{pid}/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / MIB
    except (AttributeError, OSError, ValueError, IndexError):
        return 0.0


def module(name: str) -> Any:
    """A module of the standard library that not every system has; None where it is missing."""
    try:
        return import_module(name)
    except ImportError:
        return None
