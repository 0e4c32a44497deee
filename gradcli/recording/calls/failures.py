"""Failures of a user's function as data, and the capture of what it writes."""

from __future__ import annotations

import contextlib
import io
import os
import sys
import traceback
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gradcli.base.diagnostics import visible
from gradcli.recording.calls.random_draws import RandomDraws

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Self

PACKAGE = str(Path(__file__).absolute().parents[2]) + os.sep
LIBRARIES = os.path.dirname(os.__file__) + os.sep
KEPT = 200  # characters of what a function printed
LONGEST = 300  # characters of an exception's message


class OutOfTime(Exception):
    """The time for the check is over."""


class Failed(Exception):
    """A call that gave nothing to judge: who failed, why, and where in its file."""

    def __init__(self, role: str, reason: str, *, place: str | None = None, help: str | None = None) -> None:
        super().__init__(reason)
        self.role = role
        self.reason = reason
        self.place = place
        self.help = help


class BoundedStream(io.TextIOBase):
    """A stream that keeps the beginning of what is written and counts the rest, so that no flood fills the memory."""

    def __init__(self) -> None:
        super().__init__()
        self.kept = ""
        self.count = 0

    def writable(self) -> bool:
        """True: it takes everything."""
        return True

    def write(self, text: str) -> int:
        """Take a text; what is over the limit is counted only."""
        if len(self.kept) < KEPT:
            self.kept += text[: KEPT - len(self.kept)]
        self.count += len(text)
        return len(text)


class Listener:
    """Captures what a function prints, warns of and draws at random; by who was running when it did."""

    def __init__(self, stage: Callable[[str], None] | None = None) -> None:
        self.stage = stage  # called with the role that runs, whenever that changes
        self.running = ""
        self.prints: dict[str, BoundedStream] = {}
        self.warned: dict[str, list[str]] = {}
        self.draws = RandomDraws()
        self._stack = contextlib.ExitStack()
        self._heard: list[Any] = []

    def __enter__(self) -> Self:
        self._heard = self._stack.enter_context(warnings.catch_warnings(record=True))
        warnings.simplefilter("always")
        return self

    def __exit__(self, *problem: object) -> None:
        self._stack.close()

    @contextlib.contextmanager
    def hearing(self, role: str, at_the_point: bool) -> Iterator[None]:
        """While `role` runs; warnings count at the given point only, elsewhere they are the checker's doing."""
        if self.stage is not None and role != self.running:
            self.stage(role)
            self.running = role
        sink = self.prints.setdefault(role, BoundedStream())
        before = sys.stdout, sys.stderr
        sys.stdout = sys.stderr = sink
        try:
            with self.draws.watching(role):
                yield
        finally:
            sys.stdout, sys.stderr = before
            if at_the_point:
                texts = [f"{warning.category.__name__}: {warning.message}" for warning in self._heard]
                self.warned.setdefault(role, []).extend(text for text in texts if text not in self.warned[role])
            self._heard.clear()

    def notes(self) -> list[str]:
        """What was heard, in sentences."""
        notes = []
        for role, sink in self.prints.items():
            if sink.count:
                first = sink.kept.strip().partition("\n")[0]
                notes.append(f"{role} prints: {visible(first, 80)}" if first else f"{role} prints")
        for role, texts in self.warned.items():
            notes += [f"{role} warns at this point: {visible(text, 120)}" for text in texts[:3]]
        return notes


def called(role: str, function: Callable[..., Any], *args: Any, **keywords: Any) -> Any:
    """The result of a call; Failed for whatever it raises, except what is meant for us (Ctrl-C, a deadline)."""
    try:
        return function(*args, **keywords)
    except (KeyboardInterrupt, OutOfTime, Failed):
        raise
    except SystemExit as problem:
        raise Failed(role, f"{role} calls sys.exit({problem.code!r})", place=place_of(problem)) from None
    except BaseException as problem:
        missing = isinstance(problem, ModuleNotFoundError) and problem.name in ("torch", "jax", "jaxlib")
        help = "pip install 'gradcli[peers]'" if missing else None
        raise Failed(role, f"{role} raises {describe(problem)}", place=place_of(problem), help=help) from problem


def describe(problem: BaseException) -> str:
    """An exception as text: its name and the first line of its message."""
    try:
        lines = str(problem).strip().splitlines()
    except Exception:  # an exception of the user's that cannot be printed
        lines = []
    message = visible(lines[0], LONGEST) if lines else ""
    return f"{type(problem).__name__}: {message}" if message else type(problem).__name__


def place_of(problem: BaseException) -> str | None:
    """The innermost line of the user's code that an exception passed, as `file:line`."""
    return innermost([(frame.filename, frame.lineno or 0) for frame in traceback.extract_tb(problem.__traceback__)])


def innermost(frames: Sequence[tuple[str, int]]) -> str | None:
    """The last frame that is the user's, else the last that is not ours, as `file:line`."""
    others = [frame for frame in frames if not frame[0].startswith((PACKAGE, "<"))]
    frames = [frame for frame in others if is_users(frame[0])] or others
    return f"{visible(frames[-1][0], LONGEST)}:{frames[-1][1]}" if frames else None


def crash_place(text: bytes) -> str | None:
    """The innermost line of the user's code when the process crashed, as `file:line`."""
    frames = []
    for line in text.decode("utf-8", "replace").splitlines():  # the innermost call comes first
        name, _, rest = line.strip().removeprefix('File "').partition('", line ')
        if rest:
            frames.append((name, int(rest.split(" ")[0])))
    return innermost(frames[::-1])


def is_users(path: str) -> bool:
    """Whether a file is the user's: none of this package, of Python's library, or of what is installed beside it."""
    libraries = "site-packages" in path or "dist-packages" in path
    return not libraries and not path.startswith((PACKAGE, LIBRARIES, "<"))
