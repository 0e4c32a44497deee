"""Calls the derivatives of a file of pairs where no command does: by the doctests of their modules, else by defaults.

It is the command of an audit of pairs that has none. Each module is imported, and its derivatives are called, in a
process of its own, which may crash, hang, print or leave processes behind, in an empty folder. A module that did no
harm there is then imported once for all that follow, which share what it brings in. An object is made with the defaults
of its class; parameters without a default get numbers, then vectors and matrices. Only calls that function and
derivative accept count.
"""

from __future__ import annotations

import doctest
import importlib
import inspect
import os
import re
import signal
import sys
import time
import warnings
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from copy import copy
from functools import partial
from inspect import getattr_static
from io import StringIO
from itertools import chain, islice, product, tee
from types import FunctionType, MethodType
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.audit import judging  # noqa: F401  (loaded once here, and not in each copy of the process)
from gradcli.audit.conventions import DerivativePart, PairedCall, agreement, are_zero, readings
from gradcli.audit.watching import recorder
from gradcli.audit.watching.recorder import MARK
from gradcli.checks.callables import black_box, recorded  # noqa: F401
from gradcli.recording.calls.failures import describe

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Row = dict[str, Any]

IMPORT, CALL, PAIR, DOCTESTS, MODULE = 60.0, 3.0, 1.0, 20.0, 300.0  # seconds
DONE, REPORTED = 71, 70  # exit codes of a process that did its work, and that has written down what went wrong
POINTS = 2  # at which a derivative is called
MOST_CLASSES, MOST_OBJECTS = 4, 4  # that are made: of the derivative's own class, and of those that inherit it
# parameters that are whole numbers, which are 2, and the shapes of the first and of all other parameters, in this order
WHOLE = re.compile(r"[nmklij]|order|deg|degree|n?dim|size|num|index|idx|(n|num)_\w+|\w+_(order|degree|index|dim)")
SHAPES: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...] = (
    ((), ()), ((4,), ()), ((4,), (4,)), ((2,), ()), ((3,), ()), ((3,), (3,)), ((1,), ()),
    ((4, 2), (2,)), ((4, 2), (4,)), ((4, 2), (4, 2)), ((3, 3), (3,)),
)  # fmt: skip


# what was made of each class, as an iterator that is copied before it is used
OBJECTS: dict[tuple[Any, bool], Any] = {}


class Late(BaseException):
    """A call took too long."""


def main() -> None:
    """Call the derivatives of all modules."""
    sys.path[:] = [os.path.abspath(folder) for folder in [*sys.argv[1:], *sys.path]]
    sys.dont_write_bytecode = True
    folder = os.path.join(os.environ["GRADCLI_AUDIT"], "home")
    os.mkdir(folder)
    os.chdir(folder)
    homes = ("HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "MPLCONFIGDIR", "NUMBA_CACHE_DIR")
    os.environ.update(dict.fromkeys(homes, folder), MPLBACKEND="Agg")
    signal.signal(signal.SIGALRM, late)
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    for stream in (1, 2):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
    packages = [name.partition(".")[0] for name in recorder.state.pairs]
    with recorder.guarded(), redirect_stdout(StringIO()), redirect_stderr(StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in dict.fromkeys([*packages, *recorder.state.pairs]):
            if apart(name, partial(called, name, recorder.state.pairs.get(name, []))):
                with suppress(Exception, Late):
                    imported(name)


def late(number: int, frame: Any) -> None:
    """Answer the alarm of `within`."""
    raise Late


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Raise Late in what takes longer."""
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def apart(name: str, work: Callable[[], object]) -> bool:
    """Whether some work succeeds in a process of its own, and leaves none behind; what goes wrong is written down."""
    process = os.fork()
    if process == 0:
        code = REPORTED
        os.setpgid(0, 0)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        try:
            work()
            code = DONE
        except Late:
            missed(name, f"its import takes more than {IMPORT:g} s")
        except BaseException as problem:
            missed(name, f"its import fails: {describe(problem) if isinstance(problem, Exception) else repr(problem)}")
        finally:
            recorder.finish()
            os._exit(code)
    with suppress(OSError):  # it has ended
        os.setpgid(process, process)
    ends = time.monotonic() + MODULE
    try:
        while not (done := os.waitpid(process, os.WNOHANG))[0] and time.monotonic() < ends:
            time.sleep(0.01)
    finally:  # also where this process was told to end
        left = True
        try:
            os.killpg(process, signal.SIGKILL)
        except ProcessLookupError:
            left = False
    if not done[0]:
        done = os.waitpid(process, 0)
        missed(name, f"it did not end within {MODULE:g} s and was stopped")
    elif os.WIFSIGNALED(done[1]):
        missed(name, f"it crashed with signal {os.WTERMSIG(done[1])}")
    elif os.WEXITSTATUS(done[1]) not in (DONE, REPORTED):
        missed(name, f"it ended the process with exit code {os.WEXITSTATUS(done[1])}")
    return not left and os.waitstatus_to_exitcode(done[1]) == DONE


def missed(name: str, reason: str) -> None:
    """Write down why a module was left out, or what it did."""
    recorder.write({"missed": f"{name}: {reason}"})


def imported(name: str) -> Any:
    """A module; what it prints is written down."""
    process = os.getpid()
    try:
        with redirect_stdout(StringIO()) as said, within(IMPORT):
            module = importlib.import_module(name)  # allowed: to run its code is what an audit is for
    finally:
        if os.getpid() != process:
            os._exit(0)  # the module has forked
    if said.getvalue().strip():
        missed(name, f"its import prints {said.getvalue().strip().splitlines()[0][:80]!r}")
    return module


def called(name: str, rows: list[Row]) -> None:
    """Call the derivatives of one module."""
    module = imported(name)
    names = {part for row in rows for x in ("derivative", "value") for part in row[x].partition(":")[2].split(".")}
    with suppress(Exception, Late, SystemExit), within(DOCTESTS):
        runner = doctest.DocTestRunner(verbose=False, optionflags=doctest.ELLIPSIS)
        for test in doctest.DocTestFinder(exclude_empty=True).find(module):
            if any(name in example.source for example in test.examples for name in names):
                runner.run(test, out=lambda text: None)
    seen = {gradient.pair["derivative"] for gradient in recorder.state.gradients.values() if gradient.pair}
    for row in chain.from_iterable(recorder.state.pairs.values()):
        row["invented"] = True  # also of modules whose derivatives are called inside of these
    for row in rows:
        if row["derivative"] not in seen:
            by_defaults(module, row)


# --- calls by defaults ----------------------------------------------------------------------------------------------


def by_defaults(module: Any, row: Row) -> None:
    """Call one derivative at a few points, with the first kind of arguments by which all its parts are read.

    Where none is, with the kind by which most of them are, of those that it and its function accept. An object for
    which both are 0 says nothing of any arguments: the next one is taken.
    """
    path = row["derivative"].partition(":")[2].split(".")
    owner: Any = module
    for part in path[:-1]:
        owner = getattr(owner, part, None)
    content = getattr_static(owner, path[-1], None)
    is_class = isinstance(owner, type)
    is_method = is_class and not isinstance(content, (staticmethod, classmethod))
    ends = time.process_time() + PAIR
    accepted: list[Callable[[], object]] = []
    most = agreement([])
    if (owner, is_method) not in OBJECTS:
        (OBJECTS[owner, is_method],) = tee(islice(holders(owner, is_method), MOST_OBJECTS), 1)
    useless = None
    for holder, shapes in ((holder, shapes) for holder in copy(OBJECTS[owner, is_method]) for shapes in SHAPES):
        if holder is useless:
            continue
        best, says_nothing, calls = agreement([]), False, list[Any]()
        for seed in range(POINTS):
            with suppress(Exception, Late, SystemExit), within(CALL):
                rows, call = tried(holder, path[-1], row, shapes, seed)
                best = max(best, agreement(rows))
                says_nothing = are_zero(rows)
                calls.append(call)
        if best > most or not accepted:
            most, accepted = best, calls
        if best[0] or time.process_time() > ends:
            break
        useless = holder if says_nothing else None
    for call in accepted:
        with suppress(Exception, Late, SystemExit), within(CALL):
            call()


def holders(owner: Any, is_method: bool) -> Iterator[Any]:
    """What the derivative is an attribute of: a module, a class, or objects of it."""
    if not is_method:
        yield owner
        return
    for kind in [owner, *below(owner)][:MOST_CLASSES]:
        makers = [x for x in (kind.__init__, kind.__new__) if isinstance(x, FunctionType)] or [kind]
        for maker, shapes in product(makers, SHAPES):
            args: list[Any] = [None]
            with suppress(Exception, Late, SystemExit), within(CALL):
                args, options = samples(maker, shapes, POINTS, kind)  # other numbers than those of calls
                yield kind(*args, **options)
                if not args and not options:
                    break


def below(owner: type) -> list[type]:
    """The classes that inherit from one, which may be abstract."""
    children: list[type] = type.__subclasses__(owner)
    return [kind for child in children for kind in (child, *below(child))]


def tried(
    holder: Any, name: str, row: Row, shapes: Any, seed: int
) -> tuple[list[list[DerivativePart]], Callable[[], object]]:
    """The readings of a derivative in a call that it and its function accept, and that call; else it raises."""
    derivative = getattr(holder, name)
    args, options = samples(derivative, shapes, seed)
    if row["flag"]:
        options[row["flag"]] = True
    plain = getattr(derivative, MARK, derivative)
    own = isinstance(derivative, MethodType)
    function = MethodType(plain, holder) if own and plain is not derivative else plain
    place = row["value"].rpartition(":")[2].rpartition(".")[2]
    value = function if row["value"] == row["derivative"] else getattr(holder, place)
    with recorder.alone(), np.errstate(all="ignore"):
        call = PairedCall(row, value, function, holder if own else None, args, options)
        results = [*call.outputs({}), *call.parts({})]
        if len(results) < 2 or not all(np.isfinite(array).any() for array in results):
            raise ValueError("no numbers")
        return readings(call), partial(derivative, *args, **options)


def samples(function: Any, shapes: Any, seed: int, owner: type | None = None) -> tuple[list[Any], Row]:
    """Arguments for parameters without a default, of a call also for 0.0: numbers in (0, 1), or arrays of such.

    Where an object of a class `owner` is to be made, the function is that class or what makes it.
    """
    args: list[Any] = []
    options: Row = {}
    draw = np.random.default_rng(seed)
    for x in [*inspect.signature(function).parameters.values()][owner is not None and function is not owner :]:
        zero = isinstance(x.default, float) and x.default == 0 and owner is None
        if (x.default is not x.empty and not zero) or x.kind is x.VAR_KEYWORD:
            continue
        for _ in range(3 if x.kind is x.VAR_POSITIONAL else 1):
            whole = WHOLE.fullmatch(x.name) or x.annotation in (int, "int")
            value: Any = 2 if whole else draw.uniform(0.15, 0.85, () if zero else shapes[bool(args)])
            value = float(value) if np.shape(value) == () and not whole else value
            if x.kind is x.KEYWORD_ONLY or zero:
                options[x.name] = value
            else:
                args.append(value)
    return args, options


if __name__ == "__main__":
    main()
