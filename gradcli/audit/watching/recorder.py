"""Counts the calls of each hand-written gradient, and keeps the 1st, 2nd, 8th, 32nd, ... until there are three points.

A line of JSON for each new gradient and each call that is kept goes to a file of the process at once, so that a process
that is killed leaves what it had seen.
"""

from __future__ import annotations

import atexit
import json
import os
import sys
from _thread import RLock, get_ident
from contextlib import contextmanager
from functools import update_wrapper

from gradcli.audit.watching import snapshots

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from types import FrameType
    from typing import Any

MARK = "__gradcli_watched__"  # on functions that stand in for others: the function itself
POINTS = 3  # kept of each gradient
LIBRARIES = frozenset({"scipy", "torch", "jax", "jaxlib", "autograd", "numpy"})  # their own rules are left alone
FOLDER = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


class HandWrittenGradient:
    """One hand-written gradient: what it is called, where it stands, who called it, and how often.

    `files` are those that its code and the objects that it holds come from; the author of one owns the gradient.
    """

    def __init__(self, library: str, role: str, name: str, file: str, line: int, files: Iterable[str]) -> None:
        self.library = library
        self.role = role
        self.name = name
        self.file = file
        self.line = line
        self.files = list(dict.fromkeys([file, *files]))
        self.caller = ""
        self.pair: dict[str, Any] | None = None  # by which it was recognised in a file of pairs
        self.begin()

    def begin(self) -> None:
        """Count from the first call on."""
        self.calls = 0
        self.untracked = 0  # calls in which no gradient was wanted
        self.next = 1  # the call that is kept next; 0 where none is
        self.kept: list[object] = []  # fingerprints of the points
        self.skipped = ""  # why a point was not kept

    @property
    def key(self) -> str:
        """What identifies a gradient, in every process."""
        return "|".join((self.library, self.role, self.name, f"{self.file}:{self.line}", self.caller))

    def facts(self) -> dict[str, Any]:
        """What the report says of it, beside the counts."""
        names = ("library", "role", "name", "file", "line", "files", "caller", "pair")
        return {name: getattr(self, name) for name in names}


class State:
    """What this process has seen."""

    def __init__(self) -> None:
        self.folder = ""
        self.pid = 0
        self.wanted = ""  # the package that is watched alone
        self.limit = 2**20  # bytes of a point
        self.lock = RLock()
        self.gradients: dict[str, HandWrittenGradient] = {}
        self.inside: set[int] = set()  # threads that run code of ours
        self.faults: list[str] = []
        self.rules: dict[Any, HandWrittenGradient | None] = {}  # by the class or function; None where it is left alone
        self.again: tuple[str, int] | None = None  # the one gradient, and its call, that is kept
        self.pairs: dict[str, list[dict[str, Any]]] = {}  # of each module
        self.owners: dict[str, set[Any]] = {}  # by the name of a derivative the classes and modules that have a pair
        self.callbacks = True  # whether traced functions may deliver their numbers
        self.exporting = False  # whether traced functions are written down at the end


state = State()


def start(folder: str) -> None:
    """Write to a folder what this process calls, and what processes do that it forks."""
    with open(os.path.join(folder, "options.json"), encoding="utf-8") as file:
        options = json.load(file)
    state.folder, state.wanted, state.limit = folder, options["only"], options["size"]
    state.callbacks = options["callbacks"]
    for row in options["pairs"]:
        state.pairs.setdefault(row["derivative"].partition(":")[0], []).append(row)
    if options["again"]:
        key, call = options["again"]
        state.again = key, call
    _begin()
    os.register_at_fork(after_in_child=_begin)
    atexit.register(finish)


def _begin() -> None:
    """A process of its own; counts from the process that forked it start anew."""
    if state.pid == -1:  # a copy that is to be judged
        return
    state.pid = os.getpid()
    state.lock = RLock()
    state.inside, state.faults = set(), []
    write({"process": sys.orig_argv[1:] if len(sys.orig_argv) > 1 else [sys.executable]})
    for gradient in state.gradients.values():
        gradient.begin()
        _announce(gradient)


def write(record: dict[str, Any]) -> None:
    """Add a line to the file of this process."""
    with open(os.path.join(state.folder, f"{state.pid}.jsonl"), "a", encoding="utf-8") as file:
        file.write(json.dumps(record) + "\n")


def finish() -> None:
    """Write the final counts."""
    if state.pid != os.getpid():
        return
    with guarded():
        for gradient in state.gradients.values():
            counts = {"calls": gradient.calls, "untracked": gradient.untracked, "skipped": gradient.skipped}
            write({"counts": gradient.key, **counts})


@contextmanager
def guarded() -> Iterator[None]:
    """Code of ours in the user's program: a fault in it is written down and goes no further."""
    try:
        yield
    except Exception as problem:
        fault = f"{type(problem).__name__}: {problem}"
        if fault not in state.faults and len(state.faults) < 10:
            state.faults.append(fault)
            try:
                write({"fault": fault})
            except OSError:
                state.folder = ""  # nowhere to write: nothing is kept from here on


def watching() -> bool:
    """Whether a call in this thread counts: not in code of ours, nor in a copy that is judged."""
    return bool(state.folder) and state.pid != -1 and get_ident() not in state.inside


def wanted(module: str) -> bool:
    """Whether gradients of a module are watched; those of the libraries themselves only on request."""
    if state.wanted:
        return module == state.wanted or module.startswith(state.wanted + ".")
    return module.partition(".")[0] not in LIBRARIES


@contextmanager
def alone() -> Iterator[None]:
    """Calls in this thread do not count."""
    state.inside.add(get_ident())
    try:
        yield
    finally:
        state.inside.discard(get_ident())


def known(gradient: HandWrittenGradient) -> HandWrittenGradient:
    """The gradient as it is known in this process."""
    with state.lock:
        if gradient.key not in state.gradients:
            state.gradients[gradient.key] = gradient
            _announce(gradient)
        return state.gradients[gradient.key]


def _announce(gradient: HandWrittenGradient) -> None:
    if state.again is not None:
        key, call = state.again
        gradient.next = call if key == gradient.key else 0
    write({"gradient": gradient.facts(), "key": gradient.key})


def due(gradient: HandWrittenGradient) -> bool:
    """Count a call that is `watching`; whether it is one to be kept. This runs at every call, so it does no more."""
    gradient.calls += 1
    return gradient.calls == gradient.next


def keep(gradient: HandWrittenGradient, arguments: Iterable[Any], how: Callable[[int], None]) -> None:
    """Keep a call that is due, by its number, unless it is too large or its point is kept already."""
    with guarded(), state.lock:
        call = gradient.calls
        gradient.next = 2 if call == 1 else 4 * call
        values = list(flat(arguments))
        size = sum(size_of(value) for value in values)
        if size > state.limit:
            skipped(gradient, f"a call with {size / 2**20:.3g} MiB of arguments (the limit is --size)")
            return
        point = tuple(fingerprint(value) for value in values)
        if point in gradient.kept:
            return
        gradient.kept.append(point)
        if len(gradient.kept) == POINTS or state.again is not None:
            gradient.next = 0
        write({"counts": gradient.key, "calls": call})
        with alone():
            how(call)


def keep_copy(gradient: HandWrittenGradient, arguments: Iterable[Any], subject: Callable[[], Any]) -> None:
    """Keep a call that is due as a copy of the process, in which `subject()` is judged."""

    def copied(call: int) -> None:
        try:
            snapshots.take(state, {"key": gradient.key, "call": call}, subject)
        except OSError as problem:
            skipped(gradient, f"the process could not be copied ({problem.strerror})")

    keep(gradient, arguments, copied)


def skipped(gradient: HandWrittenGradient, reason: str) -> None:
    """Write down why a call is not kept."""
    gradient.skipped = reason
    write({"counts": gradient.key, "calls": gradient.calls, "skipped": reason})


def flat(values: Any) -> Iterator[Any]:
    """The arguments of a call without the lists and tuples around them."""
    for value in values:
        if isinstance(value, (list, tuple)):
            yield from flat(value)
        else:
            yield value


def size_of(value: Any) -> int:
    """The bytes of an array or tensor; 0 for anything else."""
    size = getattr(value, "nbytes", 0)
    return size if isinstance(size, int) else 0


def fingerprint(value: Any) -> object:
    """What identifies an argument: the bytes of arrays and tensors, plain values, the identity of other objects."""
    if hasattr(value, "detach"):
        try:
            value = value.detach()
            value = value.numpy() if "bfloat16" not in str(value.dtype) else value.float().numpy()
        except (TypeError, RuntimeError):  # a sparse tensor, say, has no such bytes
            return id(value)
    if hasattr(value, "tobytes") and not isinstance(value, type):
        return hash(value.tobytes())
    return value if isinstance(value, (int, float, str, bool, type(None))) else id(value)


def caller_of(*packages: str) -> str:
    """The place that called into a library, `file:line`: the innermost frame that is neither ours nor the packages'."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        module = str(frame.f_globals.get("__name__", "")).partition(".")[0]
        file = frame.f_code.co_filename
        if not file.startswith(FOLDER) and module not in packages and not file.startswith("<"):
            return f"{file}:{frame.f_lineno}"
        frame = frame.f_back
    return ""


# --- what identifies a Python function ---------------------------------------------------------------------------


def unwrapped(function: Any) -> Any:
    """The function behind partials, bound methods, decorators and callable objects."""
    for _ in range(10):
        inner = getattr(function, MARK, None) or getattr(function, "func", None) or getattr(function, "__func__", None)
        inner = inner or getattr(function, "__wrapped__", None)
        if inner is None and not hasattr(function, "__code__") and not isinstance(function, type):
            inner = vars(type(function)).get("__call__")
            inner = inner if hasattr(inner, "__code__") else None
        if inner is None:
            return function
        function = inner
    return function


def held(function: Any) -> Iterator[Any]:
    """The objects that a function holds: what it is bound to, and what its closure and its partials hold."""
    for _ in range(10):
        function = getattr(function, MARK, function)
        if getattr(function, "__self__", None) is not None:
            yield function.__self__
        for cell in getattr(function, "__closure__", None) or ():
            try:
                yield cell.cell_contents
            except ValueError:  # not filled yet
                continue
        inner = getattr(function, "func", None) or getattr(function, "__func__", None)
        if inner is None:
            return
        function = inner


def described(library: str, role: str, function: Any, *beside: Any) -> HandWrittenGradient:
    """A gradient by the function that computes it; `beside` are functions that belong to it, such as its f."""
    inner = unwrapped(function)
    code = getattr(inner, "__code__", None)
    name = getattr(inner, "__qualname__", None) or type(function).__name__
    types, files = [], []
    for value in [*held(function), *(part for other in beside for part in (other, *held(other)))]:
        if callable(value) and hasattr(unwrapped(value), "__code__"):
            files.append(str(unwrapped(value).__code__.co_filename))
            value = next(filter(of_a_class, held(value)), None)
        if of_a_class(value):
            types.append(type(value).__qualname__)
            files.append(str(getattr(sys.modules.get(type(value).__module__), "__file__", None) or ""))
    of = ", ".join(dict.fromkeys(types))
    return HandWrittenGradient(
        library,
        role,
        f"{name} of {of}" if of and of not in name else str(name),
        str(code.co_filename) if code else "",
        int(code.co_firstlineno) if code else 0,
        filter(None, files),
    )


def of_a_class(value: Any) -> bool:
    """Whether a value is an object of a class that somebody wrote: no number, array, text, function or module."""
    module = type(value).__module__.partition(".")[0]
    return module not in ("builtins", "numpy", "functools", "types", "torch", "jaxlib", "scipy") and not callable(value)


def module_of(function: Any) -> str:
    """The module that a function is from."""
    inner = unwrapped(function)
    return str(getattr(inner, "__module__", None) or type(inner).__module__)


def standing_in(
    function: Callable[..., Any], note: Callable[[tuple[Any, ...], dict[str, Any]], None]
) -> Callable[..., Any]:
    """The same function, with `note` called with its arguments before each call."""

    def watched(*args: Any, **options: Any) -> Any:
        __tracebackhide__ = True
        note(args, options)
        return function(*args, **options)

    update_wrapper(watched, function)
    setattr(watched, MARK, function)
    return watched
