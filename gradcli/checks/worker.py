"""Questions to the oracle's process go in, its answers or the reason why there is none come out.

One question is in flight at a time. A process that does not answer in time, or that dies, is killed and started
again; the question that it was busy with is the one to blame. Nothing is pickled: both sides speak JSON.
"""

from __future__ import annotations

import atexit
from json import dumps, loads
from queue import Empty, SimpleQueue
from threading import Thread
from typing import TYPE_CHECKING, Any

from gradcli.checks.child import start, whole_lines
from gradcli.diagnostics import error

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Sequence

    Answer = dict[str, Any]


LOAD_SECONDS = 10.0


class NoAnswer(Exception):
    """The oracle was killed or died over a question; the text says which."""


class Oracle:
    """A process of its own for exact arithmetic; started at the first question, and again after a loss."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None
        self._answers: SimpleQueue[str | None] = SimpleQueue()
        self._number = 0
        self._answered = False  # whether any process has ever answered: one that cannot start is a fault of its own
        self.generation = 0  # counts programs sent: what was derived belongs to one of them
        self._loaded: Any = None  # what the present process holds
        self._wanted: Any = None  # what it should hold

    def load(self, flat: Any) -> None:
        """The program that the next questions are about; it is sent with the next question."""
        self._wanted = flat

    @property
    def holds(self) -> bool:
        """Whether the process still has the program, and what was derived from it."""
        return self._process is not None and self._process.poll() is None and self._loaded is self._wanted

    def ask(self, op: str, timeout: float, **question: Any) -> Answer:
        """The answer to one question; raises NoAnswer where the process did not give one in time.

        Raises GradcliError GC999 where no process could ever be started.
        """
        self.prepare(timeout)
        return self._exchange(op, timeout, question)

    def prepare(self, timeout: float) -> None:
        """Send the program, unless the process has it; a new `generation` begins, without what was derived."""
        if self._wanted is not None and not self.holds:
            self._exchange("load", max(timeout, LOAD_SECONDS), {"flat": self._wanted})
            self._loaded = self._wanted
            self.generation += 1

    def warm(self) -> None:
        """Start the process now, so that its imports run beside the caller's work."""
        if self._process is None or self._process.poll() is not None:
            self._start()

    def close(self) -> None:
        """End the process."""
        process, self._process = self._process, None
        self._loaded = None
        if process is not None:
            process.kill()
            process.wait()
            for stream in (process.stdin, process.stdout):
                if stream is not None:
                    stream.close()

    # --- inner ----------------------------------------------------------------------------------------------

    def _exchange(self, op: str, timeout: float, question: dict[str, Any]) -> Answer:
        self.warm()
        assert self._process is not None and self._process.stdin is not None
        self._number += 1
        try:
            self._process.stdin.write(dumps({"number": self._number, "op": op, **question}) + "\n")
            self._process.stdin.flush()
            line = self._answers.get(timeout=timeout)
        except Empty:
            self.close()
            raise NoAnswer(f"no answer within {timeout:g} s") from None
        except OSError:
            line = None
        if line is None:
            code = self._process.wait()
            self.close()
            if not self._answered:
                raise error(
                    "GC999",
                    f"the process for exact arithmetic does not start (exit code {code})",
                    help="see why with: python -c 'import gradcli.checks.oracle'",
                )
            raise NoAnswer(f"the oracle's process ended with code {code}")
        self._answered = True
        answer: Answer = loads(line)
        if answer.pop("number") != self._number:
            self.close()
            raise NoAnswer("the oracle lost count of its questions")
        return answer

    def _start(self) -> None:
        self._answers = SimpleQueue()
        self._loaded = None
        self._process = start("gradcli.checks.oracle", {"SYMPY_GROUND_TYPES": "python"})
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


def shared() -> Oracle:
    """The oracle of this process, made at the first call and ended with it."""
    if not _shared:
        _shared.append(Oracle())
        atexit.register(_shared[0].close)
    return _shared[0]


__all__: Sequence[str] = ["NoAnswer", "Oracle", "shared"]
