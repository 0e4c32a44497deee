"""Places in code: the line of an instruction, and the calls, layers and iterations of loops around an operation.

The latter are the groups of a large picture. They are read from the stack at each operation. An iteration of a loop
begins where the instructions of a function jump back, or where an instruction calls again what it has called.
"""

from __future__ import annotations

import dis
import linecache
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from gradcli.base.results.graph_vertices import Group

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import CodeType, FrameType


LONGEST = 60


class SourceLine(NamedTuple):
    """A line of a file, and what of it was running."""

    file: str
    number: int
    text: str
    span: tuple[int, int, int] | None = None  # of what was running: its first byte, its last line, the byte after it


def filename_of(path: str) -> str:
    """The name that code from a path carries; `-` is standard input."""
    return "<stdin>" if path == "-" else os.path.abspath(path)


def file_name(file: str) -> str:
    """What people call a file: its name without folders; of a notebook's cell `Cell In[3]`."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    cell = getattr(getattr(shell, "compile", None), "format_code_name", lambda file: None)(file)
    return " ".join(cell) if cell else os.path.basename(file)


OWN, LIBRARY, TENSORS, RECORD = range(4)  # whose a file is: the user's, a library's, the tensors', the record's
PACKAGE = str(Path(__file__).absolute().parents[2]) + os.sep
RECORDERS = tuple(os.path.join(PACKAGE, name, "") for name in ("recording", "why"))
STANDARD = os.path.dirname(os.path.abspath(os.__file__)) + os.sep
INSTALLED = ("site-packages", "dist-packages")
TYPED = ("<stdin>", "<ipython")  # how names of code begin that a user typed


class Owners(dict[str, int]):
    """Whose each file of code is. `folder` is the user's, `library` that of the tensors."""

    def __init__(self, folder: str, library: str = PACKAGE) -> None:
        self.folders = (folder, os.path.realpath(folder) + os.sep)
        self.library = (library, PACKAGE)

    def __missing__(self, filename: str) -> int:
        owner = self[filename] = self._find(filename)
        return owner

    def near(self, filename: str) -> bool:
        """Whether a file is the user's, and lies in the user's folder."""
        return filename == "<stdin>" or (filename.startswith(self.folders) and self[filename] == OWN)

    def _find(self, filename: str) -> int:
        if filename.startswith(RECORDERS):
            return RECORD
        if filename.startswith(self.library):
            return TENSORS
        within = next((filename[len(folder) :] for folder in self.folders if filename.startswith(folder)), None)
        if any(part in (filename if within is None else within) for part in INSTALLED):
            return LIBRARY
        if within is not None or filename.startswith(TYPED):
            return OWN
        return LIBRARY if filename.startswith(("<", STANDARD)) else OWN


MOST_CODES = 1024  # functions whose lines are kept
_known: dict[
    int, tuple[CodeType, dict[int, SourceLine]]
] = {}  # by the code's identity: its hash reads all its constants


def line_of(place: tuple[CodeType, int] | None) -> SourceLine | None:
    """The line of a place; the text is empty where the source cannot be read."""
    return None if place is None else line_in(*place)


def line_in(code: CodeType, at: int) -> SourceLine:
    """The line of an instruction of some code."""
    known = _known.get(id(code))
    if known is None:
        if len(_known) >= MOST_CODES:
            _known.clear()
        known = _known[id(code)] = (code, {})
    line = known[1].get(at)
    if line is None:
        line = known[1][at] = _read(code, at)
    return line


def _read(code: CodeType, at: int) -> SourceLine:
    first, last, start, stop = next(
        (position for i, position in enumerate(code.co_positions()) if 2 * i == at), (None, None, None, None)
    )
    if first is None:
        return SourceLine(code.co_filename, code.co_firstlineno, "")
    return placed(code.co_filename, first, last or first, start, stop)


def placed(file: str, first: int, last: int, start: int | None, stop: int | None) -> SourceLine:
    """The line of what stands between two points of a file."""
    lines = [linecache.getline(file, number) for number in range(first, last + 1)]
    text = "".join(lines)
    if start is not None and stop is not None and lines[-1]:
        before = "".join(lines[:-1]).encode()
        text = (before + lines[-1].encode()[:stop])[start:].decode(errors="replace")
    span = None if start is None or stop is None else (start, last, stop)
    return SourceLine(file, first, _shortened(text), span)


def statement_in(code: CodeType, at: int) -> SourceLine:
    """The line of an instruction with all that stands on it."""
    line = line_in(code, at)
    return whole_line(line.file, line.number)


def whole_line(file: str, number: int) -> SourceLine:
    """A line of a file with all that stands on it."""
    return SourceLine(file, number, _shortened(linecache.getline(file, number)))


def _shortened(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= LONGEST else text[: LONGEST - 3] + "..."


class CodeLoop(NamedTuple):
    """A loop of some code, from its first instruction to the jump back."""

    start: int
    end: int


class RunningFunction:
    """A function or a layer that runs: its groups, and at which instruction of which loops it was last."""

    __slots__ = ("at", "callee", "frame", "groups", "loops", "outer")

    def __init__(self, frame: FrameType, outer: tuple[Group, ...]) -> None:
        self.frame = frame
        self.outer = outer  # the groups around its loops
        self.at = -1
        self.callee: FrameType | None = None
        self.loops: dict[CodeLoop, tuple[Group, Group]] = {}  # those that run: the loop and its iteration
        self.groups = outer


class Calls:
    """The stack at the last operation.

    `own` is whether a file is the user's, `layer_call` the module and the name of the function that calls a layer.
    """

    def __init__(self, own: Callable[[str], bool], layer_call: tuple[str, str]) -> None:
        self.own, self.layer_call = own, layer_call
        self.levels: list[RunningFunction] = []
        self.count = 0
        self.last: tuple[Group, ...] | None = None  # of the operation of which a part has been entered
        self.known: dict[CodeType, list[CodeLoop]] = {}

    def groups(self, frame: FrameType | None) -> tuple[Group, ...]:
        """The groups of an operation that runs in a frame, the outermost first."""
        chain: list[FrameType] = []
        while frame is not None:
            chain.append(frame)
            frame = frame.f_back
        chain.reverse()
        places = [at for at, frame in enumerate(chain) if self._is_layer(frame) or self.own(frame.f_code.co_filename)]
        groups: tuple[Group, ...] = ()
        levels, layer = self.levels, None
        for place, at in enumerate(places):
            frame = chain[at]
            callee = chain[at + 1] if at + 1 < len(chain) else None
            if place >= len(levels) or levels[place].frame is not frame:
                del levels[place:]
                caller = chain[places[place - 1]] if place else None
                levels.append(RunningFunction(frame, (*groups, *self._entered(frame, caller, layer))))
            level = levels[place]
            if not self._is_layer(frame):
                self._iterated(level, callee)
            layer = frame.f_locals.get("self") if self._is_layer(frame) else layer
            groups = level.groups
        del levels[len(places) :]
        return groups

    def of_entry(self, frame: FrameType | None, part: bool) -> tuple[Group, ...]:
        """The groups of an operation, or of a `part` of the operation that comes next, which has the same ones."""
        groups = self.groups(frame) if self.last is None else self.last
        self.last = groups if part else None
        return groups

    def clear(self) -> None:
        """Forget the stack: no function runs anymore."""
        self.levels.clear()

    def _is_layer(self, frame: FrameType) -> bool:
        return (frame.f_globals.get("__name__"), frame.f_code.co_name) == self.layer_call

    def _entered(self, frame: FrameType, caller: FrameType | None, outer: Any) -> tuple[Group, ...]:
        """The group of a frame that begins; none for a module, a comprehension, or the forward of a layer."""
        name = frame.f_code.co_name
        if self._is_layer(frame):
            layer = frame.f_locals["self"]
            kind = type(layer).__name__
            called = (
                next((name for name, part in outer.named_modules() if part is layer), "") if outer is not None else ""
            )
            return (self._group(f"{called}: {kind}" if called else kind, caller),)
        if name.startswith("<") or (caller is not None and self._is_layer(caller)):
            return ()
        return (self._group(f"{frame.f_code.co_qualname.replace('<locals>.', '')}()", caller),)

    def _group(self, label: str, caller: FrameType | None = None) -> Group:
        place = ""
        if caller is not None and self.own(caller.f_code.co_filename):
            line = line_in(caller.f_code, caller.f_lasti)
            place = f"line {line.number}: {line.text}"
        return Group(self._next(), label, place)

    def _iterated(self, level: RunningFunction, callee: FrameType | None) -> None:
        """Note where a frame is now: loops that ended, began, or turned."""
        at, before = level.frame.f_lasti, level.at
        again = at < before or (at == before and (callee is None or callee is not level.callee))
        level.at, level.callee = at, callee
        if at == before and not again:
            return
        around = [loop for loop in self._loops(level.frame.f_code) if loop.start <= at <= loop.end]
        running = {loop: level.loops[loop] for loop in around if loop in level.loops}
        if again and running:
            inner = next(loop for loop in reversed(around) if loop in running)
            whole, iteration = running[inner]
            running[inner] = whole, self._group(f"iteration {int(iteration.label.split()[1]) + 1}")
            around_it = around[: around.index(inner) + 1]
            running = {loop: running[loop] for loop in around_it if loop in running}
        for loop in around:
            if loop not in running:
                line = statement_in(level.frame.f_code, loop.start)
                place = f"{file_name(line.file)}, line {line.number}"
                whole = Group(self._next(), line.text.rstrip(":"), place)
                running[loop] = whole, self._group("iteration 1")
        level.loops = {loop: running[loop] for loop in around}
        level.groups = (*level.outer, *(group for loop in around for group in level.loops[loop]))

    def _next(self) -> int:
        self.count += 1
        return self.count

    def _loops(self, code: CodeType) -> list[CodeLoop]:
        """The loops of some code, those around others first."""
        if code not in self.known:
            ends: dict[int, int] = {}
            for step in dis.get_instructions(code):
                if "JUMP" in step.opname and isinstance(step.argval, int) and step.argval < step.offset:
                    ends[step.argval] = max(step.offset, ends.get(step.argval, 0))
            self.known[code] = [CodeLoop(start, ends[start]) for start in sorted(ends)]
        return self.known[code]
