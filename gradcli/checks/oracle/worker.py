"""The process for exact arithmetic: it is started, given questions one at a time, and replaced when it dies or grows.

A question whose process dies is put once more to a fresh process; where that dies too, or the time of the check is
over, there is no answer and the check is INCONCLUSIVE: a lost process never weakens a verdict. One thread uses an
oracle at a time, for as long as a script or a callable is checked. Nothing is pickled: both sides speak JSON.
"""

from __future__ import annotations

import atexit
import os
from contextlib import suppress
from functools import wraps
from json import dumps, loads
from queue import Empty, SimpleQueue
from subprocess import TimeoutExpired
from threading import RLock, Thread
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from gradcli.checks.oracle.child_process import resident, start, whole_lines
from gradcli.diagnostics import error

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable

    Answer = dict[str, Any]

P = ParamSpec("P")
R = TypeVar("R")

MOST_MEMORY = 200  # MiB; a process that holds more is replaced before the next script, for 0.15 s
FRESH = {"memory": "it has no memory left", "used": "SymPy has worked in it before"}  # what a fresh process may answer
MOST_HELD = 3  # programs of one script: the one that is checked, and what its diagnosis compares
MOST_PROGRAMS = 4000  # the same, also where the system does not say how much memory a process holds


class NoAnswer(Exception):
    """No answer to a question: two processes died over it, or as a `TimeOver`; the check is then INCONCLUSIVE."""


class TimeOver(NoAnswer):
    """The time of a check is over."""


class Lost(Exception):
    """The process died over a question, or ran out of memory; a fresh one may have an answer."""


class Oracle:
    """A process of its own for exact arithmetic; started at the first question, and again after a loss.

    `with oracle:` keeps it for one thread; other threads wait there until it is free.
    """

    def __init__(self) -> None:
        self._lock = RLock()
        self._users = 0  # nested uses of the thread that holds the lock
        self._process: subprocess.Popen[str] | None = None
        self._answers: SimpleQueue[str | None] = SimpleQueue()
        self._number = 0
        self._programs = 0  # sent to the present process
        self._answered = False  # whether any process has ever answered: one that cannot start is a fault of its own
        self._held: list[Any] = []  # the programs that the present process holds; questions are about the first
        self._wanted: Any = None  # the one that they should be about

    def __enter__(self) -> Oracle:
        self._lock.acquire()
        self._users += 1
        if self._users == 1 and (self._programs > MOST_PROGRAMS or self.memory() > MOST_MEMORY):
            self.close()
        return self

    def __exit__(self, *exc: object) -> None:
        self._users -= 1
        if not self._users:
            self._wanted = None  # the next user sends a program of its own
            self._held.clear()
        self._lock.release()

    def memory(self) -> float:
        """The memory of the process in MiB; 0 without a process, or where the system does not report it."""
        return 0.0 if self._process is None else resident(self._process.pid)

    def load(self, flat: Any) -> None:
        """The program that the next questions are about; it is sent with the next question."""
        self._wanted = flat

    @property
    def holds(self) -> bool:
        """Whether the process still has the program, and what was derived from it."""
        alive = self._process is not None and self._process.poll() is None
        return alive and bool(self._held) and self._held[0] is self._wanted

    def ask(self, op: str, timeout: float, **question: Any) -> Answer:
        """The answer to one question; raises NoAnswer where two processes died over it, or the time is over.

        Raises GradcliError GC999 where no process could ever be started.
        """
        with self._lock:
            try:
                return self._asked(op, timeout, question)
            except Lost:
                self.close()
            try:
                return self._asked(op, timeout, question)
            except Lost as reason:
                self.close()
                if not self._answered:
                    raise error(
                        "GC999",
                        f"the process for exact arithmetic does not start ({reason})",
                        help="see why with: python -c 'import gradcli.checks.oracle.oracle_server'",
                    ) from None
                raise NoAnswer(
                    f"the process for exact arithmetic was lost twice over the same question: {reason}"
                ) from None

    def warm(self) -> None:
        """Start the process now, so that its imports run beside the caller's work; not while another thread uses it."""
        if self._lock.acquire(blocking=False):
            try:
                if self._process is None or self._process.poll() is not None:
                    self._start()
            finally:
                self._lock.release()

    def close(self) -> None:
        """End the process."""
        process, self._process = self._process, None
        self._held.clear()
        if process is not None:
            process.kill()
            process.wait()
            for stream in (process.stdin, process.stdout):
                if stream is not None:
                    with suppress(OSError):  # what is left in its buffer has no reader
                        stream.close()

    # --- inner ----------------------------------------------------------------------------------------------

    def _asked(self, op: str, timeout: float, question: dict[str, Any]) -> Answer:
        """The answer to a question about the program that is wanted, which is sent first where it is not loaded."""
        self.warm()
        if self._wanted is not None and not self.holds:
            place = next((place for place, one in enumerate(self._held) if one is self._wanted), None)
            if place is None:
                self._exchange("load", timeout, {"flat": self._wanted, "keep": len(self._held[: MOST_HELD - 1])})
                self._held = [self._wanted, *self._held[: MOST_HELD - 1]]
                self._programs += 1
            else:
                self._exchange("recall", timeout, {"place": place})
                self._held.insert(0, self._held.pop(place))
        return self._exchange(op, timeout, question)

    def _exchange(self, op: str, timeout: float, question: dict[str, Any]) -> Answer:
        assert self._process is not None and self._process.stdin is not None
        self._number += 1
        try:
            self._process.stdin.write(dumps({"number": self._number, "op": op, **question}) + "\n")
            self._process.stdin.flush()
            line = self._answers.get(timeout=timeout)
        except Empty:
            self.close()
            raise TimeOver("no answer in time") from None
        except OSError:
            line = None
        if line is None:
            raise Lost(f"it ended with code {self._ended()}")
        try:
            answer: Answer = loads(line)
        except ValueError:  # it died within a line
            raise Lost("it ended within its answer") from None
        self._answered = True
        if answer.pop("number") != self._number:
            raise Lost("it lost count of its questions")
        if answer.get("problem") in FRESH:
            raise Lost(FRESH[answer["problem"]])
        return answer

    def _ended(self) -> int | None:
        """The exit code of a process that has stopped talking."""
        process = self._process
        assert process is not None
        with suppress(TimeoutExpired):
            process.wait(timeout=1.0)
        self.close()
        return process.returncode

    def _start(self) -> None:
        self._answers = SimpleQueue()
        self._held.clear()
        self._programs = 0
        self._process = start(
            "gradcli.checks.oracle.oracle_server", {"SYMPY_GROUND_TYPES": "python", "PYTHONHASHSEED": "0"}
        )
        Thread(target=_listen, args=(self._process.stdout, self._answers), daemon=True).start()


def _listen(stream: Any, answers: SimpleQueue[str | None]) -> None:
    """Hand on each line; None when there will be no more."""
    try:
        for line in whole_lines(stream):
            answers.put(line)
    except (OSError, ValueError):
        answers.put(None)  # the stream was closed under us
        return
    answers.put(None)


_shared: list[Oracle] = []
_making = RLock()


def shared() -> Oracle:
    """The oracle of this process, made at the first call and ended with it."""
    with _making:
        if not _shared:
            _shared.append(Oracle())
            atexit.register(_shared[0].close)
        return _shared[0]


def _forked() -> None:
    """A forked child starts an oracle of its own: it must neither use nor end that of its parent."""
    global _making
    for oracle in _shared:
        atexit.unregister(oracle.close)
    _shared.clear()
    _making = RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)


def exclusive(function: Callable[P, R]) -> Callable[P, R]:
    """A function that keeps its `oracle`, or the shared one, for its thread as long as it runs."""

    @wraps(function)
    def kept(*args: P.args, **kwargs: P.kwargs) -> R:
        oracle: Any = kwargs.get("oracle")
        with oracle or shared():
            return function(*args, **kwargs)

    return kept
