"""Runs a Python file as `python FILE` would run it, with `torch` standing for these tensors.

It is a real `__main__`, with its folder first on the path. An exception ends in a traceback that shows the file's own
frames only, and in Python's exit code. Entries in `sys.modules` alone would not do for `import torch.nn`: the import
system would execute each submodule a second time under its new name. A finder in first place returns the existing
modules, so `torch is gradcli.eager` under every name.
"""

from __future__ import annotations

import linecache
import os
import re
import sys
import traceback
from contextlib import ExitStack, contextmanager, nullcontext, redirect_stderr, redirect_stdout
from importlib import import_module
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import decode_source, find_spec
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

from gradcli.diagnostics import did_you_mean, error, visible
from gradcli.eager._core import dtypes
from gradcli.eager._core.unsupported import COMPANIONS, INSTEAD, REAL, advice
from gradcli.eager.running.places import filename_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gradcli.eager.running.watch import Watch


ALIAS, HOME = "torch", "gradcli.eager"
# the rooms below `torch` that a script may import; everything else in the package is inside matter
PUBLIC = (
    *("accelerator", "amp", "autograd", "backends", "compiler", "cuda", "distributions", "func", "linalg", "mps", "nn"),
    *("optim", "serialization", "special", "testing", "utils", "version", "xpu"),
)
# files of PyTorch's whose names all stand in one module here, which is imported under their names too
SAME = {
    "autograd": ("variable",),
    "distributions": ("categorical", "distribution", "kl", "normal"),
    "nn.modules": (
        *("activation", "batchnorm", "container", "conv", "dropout", "instancenorm", "linear", "loss", "module"),
        *("normalization", "rnn", "sparse", "transformer", "utils"),
    ),
    "nn.utils": ("clip_grad", "convert_parameters"),
    "optim": ("adadelta", "adagrad", "adam", "adamax", "adamw", "asgd", "nadam", "radam", "rmsprop", "rprop", "sgd"),
    "utils.data": ("dataloader", "dataset", "sampler"),
}


class Finder:
    """A finder and loader for `torch` and `torch.*`, to stand first in `sys.meta_path`."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The spec of a module of ours; None for other names. ModuleNotFoundError names the nearest that exists."""
        if name in COMPANIONS:
            raise ModuleNotFoundError(f"No module named {name!r} in gradcli; {COMPANIONS[name]}", name=name)
        if name != ALIAS and not name.startswith(ALIAS + "."):
            return None
        module = below_torch(name)
        if module is None:
            raise ModuleNotFoundError(unknown(name), name=name)
        loader: Any = _Loader(module)
        return ModuleSpec(name, loader, is_package=hasattr(module, "__path__"))


class _Loader:
    def __init__(self, module: Any) -> None:
        self.module = module
        self.spec: Any = None

    def create_module(self, spec: ModuleSpec) -> Any:
        """The module that is already there."""
        self.spec = self.module.__spec__
        return self.module

    def exec_module(self, module: ModuleType) -> None:
        """Nothing is executed again; the import system has overwritten the spec, which is put back.

        The modules below are entered too. Where one has the name of a function (`autograd.gradcheck`), the package
        has put the function in the module's place, and a second import would put the module back.
        """
        name = module.__spec__.name if module.__spec__ is not None else ALIAS
        module.__spec__ = self.spec
        _enter(name, module)


def _enter(name: str, module: Any) -> None:
    """Enter the loaded modules below a public module, by the names that scripts import them by."""
    for part, inner in _children(module):
        if name == ALIAS and part not in PUBLIC:
            continue
        if sys.modules.setdefault(f"{name}.{part}", inner) is inner and inner is not module:
            _enter(f"{name}.{part}", inner)
        if inner is module:
            vars(module).setdefault(part, inner)


def _children(module: Any) -> list[tuple[str, Any]]:
    """The modules below a module that scripts may import, without loading any."""
    start = module.__name__ + "."
    found: dict[str, Any] = {
        name.removeprefix(start): one for name, one in sys.modules.items() if name.startswith(start)
    }
    found |= {name: one for name, one in vars(module).items() if getattr(one, "__name__", "") == start + name}
    found |= dict.fromkeys(SAME.get(module.__name__.removeprefix(HOME + "."), ()), module)
    return [
        (name, one)
        for name, one in found.items()
        if isinstance(one, ModuleType) and "." not in name and not name.startswith("_")
    ]


def below_torch(name: str) -> Any:
    """The module that a dotted name below `torch` means; None where scripts have none to import."""
    module: Any = import_module(HOME)
    parts = name.split(".")[1:]
    if parts and parts[0] not in PUBLIC:
        return None
    for part in parts:
        home = f"{module.__name__}.{part}"
        if part in SAME.get(module.__name__.removeprefix(HOME + "."), ()):
            continue
        if not part.startswith("_") and hasattr(module, "__path__") and find_spec(home) is not None:
            module = import_module(home)
        else:
            module = getattr(module, part, None)
            if not isinstance(module, ModuleType) or module.__name__ != home:
                return None
    return module


def submodules() -> list[str]:
    """All modules below `torch` that scripts may import, by their dotted names."""
    found, waiting = set(), [f"{ALIAS}.{name}" for name in PUBLIC]
    while waiting:
        name = waiting.pop()
        module = below_torch(name)
        if module is not None:
            found.add(name)
            waiting += [f"{name}.{part}" for part, inner in _children(module) if inner is not module]
    return sorted(found)


def explained(error: ImportError) -> str | None:
    """The message of an import of a name that does not exist, with the nearest one that does.

    None for other errors. Python's own messages have lost what the module said.
    """
    found = re.match(r"cannot import name '(\w+)' from '([\w.]+)'", str(error.msg))
    if found is not None and (found[2] == HOME or found[2].startswith(HOME + ".")):
        room = found[2].removeprefix(HOME)
        known = [name for name in dir(below_torch(ALIAS + room) or import_module(found[2])) if not name.startswith("_")]
        return f"cannot import name {found[1]!r} from {ALIAS + room!r}{advice(room.removeprefix('.'), found[1], known)}"
    found = re.match(rf"No module named '({ALIAS}\.[\w.]+)'; '[\w.]+' is not a package", str(error.msg))
    return None if found is None else unknown(found[1])


def unknown(name: str) -> str:
    """What is said of a module below `torch` that does not exist: what does the same, or the nearest that exists."""
    parts = name.split(".")[1:]
    around = [".".join(parts[:end]) for end in range(len(parts), 0, -1)]
    near = did_you_mean(name, submodules())
    told = next((INSTEAD[one] for one in around if one in INSTEAD), f"did you mean {near}?" if near else REAL)
    return f"No module named {name!r} in gradcli; {told}"


@contextmanager
def aliases() -> Iterator[None]:
    """While it lasts, `import torch` gives these tensors; afterwards everything is as it was before."""
    before = _forget()
    finder: Any = Finder()
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path[:] = [one for one in sys.meta_path if one is not finder]
        _forget()
        sys.modules.update(before)


def _forget() -> dict[str, Any]:
    """Take `torch` and all below it out of the loaded modules."""
    names = [name for name in sys.modules if name == ALIAS or name.startswith(ALIAS + ".")]
    return {name: sys.modules.pop(name) for name in names}


PACKAGE = str(Path(__file__).resolve().parents[2])
DISPATCHED = "handle_torch_function"
DEBUG = "GRADCLI_DEBUG"  # set: tracebacks show the frames of this package too
INTERRUPTED = 130


class Outcome(NamedTuple):
    """What a run left: the exit code, the exception that ended it, and the names of the file."""

    code: int
    error: BaseException | None
    names: dict[str, Any]


class _Source(SourceFileLoader):
    """Has the source already: nothing is written beside the file, and no cached code is taken for it."""

    def __init__(self, path: str, source: bytes) -> None:
        super().__init__("__main__", path)
        self.source = source

    def get_code(self, fullname: str) -> Any:
        return self.source_to_code(self.source, self.get_filename(fullname))


def run_file(
    path: str,
    args: Sequence[str] = (),
    *,
    alias: bool = True,
    dtype: str | None = None,
    watch: Watch | None = None,
    tell: bool = True,
) -> Outcome:
    """Run a Python file as a script; an exception is reported on standard error as Python reports it.

    `alias`: `torch` means these tensors. `dtype`: the default format of floats. `watch` records the run. `tell`:
    print the traceback. The path `-` is standard input. Raises GradcliError where the file cannot be read (GC601) or is
    not a Python file (GC721).
    """
    source = read(path)
    where = filename_of(path)
    module, loader = ModuleType("__main__"), _Source(where, source)
    module.__dict__.update(__loader__=loader, __cached__=None)
    if path == "-":
        _show_lines(source, where)
    else:
        module.__file__ = where
    with ExitStack() as stack:
        folder = "" if path == "-" else os.path.dirname(os.path.realpath(path))
        stack.enter_context(_process(module, folder, [path, *args]))
        if alias:
            stack.enter_context(aliases())
        if dtype is not None:
            stack.enter_context(_default(getattr(dtypes, dtype)))
        try:
            with nullcontext() if watch is None else watch.watching(module.__dict__):
                loader.exec_module(module)
        except SystemExit as end:
            return Outcome(_exit_code(end), end, module.__dict__)
        except BrokenPipeError:  # whoever read the output is gone
            raise
        except BaseException as problem:
            if not isinstance(problem, Exception) and type(problem).__module__.startswith("gradcli."):
                raise  # the process was asked to end
            sys.stdout.flush()
            if tell:
                report(problem)
            return Outcome(INTERRUPTED if isinstance(problem, KeyboardInterrupt) else 1, problem, module.__dict__)
    return Outcome(0, None, module.__dict__)


def read(path: str) -> bytes:
    """The source of a Python file, or standard input for `-`; refuses what is none."""
    shown = visible(path, 200)
    if path == "-":
        if sys.stdin is None:
            raise error("GC601", "cannot read standard input: it is closed")
        return sys.stdin.buffer.read()
    if path.endswith(".grad"):
        raise error("GC721", f"{shown} is a script, not a Python file", help=f"gradcli grad {shown}")
    if os.path.isdir(path):
        raise error("GC601", f"cannot read {shown}: is a directory", help="name one file in it")
    if not path.endswith(".py"):
        raise error("GC721", f"{shown} is not a Python file: its name does not end in .py")
    try:
        return Path(path).read_bytes()
    except OSError as problem:
        raise error("GC601", f"cannot read {shown}: {(problem.strerror or str(problem)).lower()}") from None


def lines(path: str) -> list[str]:
    """The lines of a Python file that ran, for those who show them; none of standard input that is read."""
    return [line.rstrip("\r\n") for line in linecache.getlines(filename_of(path))]


def _show_lines(source: bytes, where: str) -> None:
    """Let tracebacks show lines of a source that is not a file."""
    try:
        text = decode_source(source)
    except (SyntaxError, UnicodeDecodeError):  # the compiler says what is wrong
        return
    linecache.cache[where] = (len(text), None, text.splitlines(keepends=True), where)


@contextmanager
def _process(module: ModuleType, folder: str, argv: list[str]) -> Iterator[None]:
    """What a script finds in `sys`, and takes away with it."""
    before = sys.argv, sys.path[:], sys.modules["__main__"]
    sys.argv, sys.path[:] = argv, [folder, *sys.path[1:]]
    sys.modules["__main__"] = module
    try:
        yield
    finally:
        sys.argv, sys.path[:], sys.modules["__main__"] = before


@contextmanager
def _default(dtype: dtypes.dtype) -> Iterator[None]:
    before = dtypes.get_default_dtype()
    dtypes.set_default_dtype(dtype)
    try:
        yield
    finally:
        dtypes.set_default_dtype(before)


def _exit_code(end: SystemExit) -> int:
    """The code of `sys.exit(...)`, as Python reads it: none is 0, a text is printed and is 1."""
    if end.code is None or isinstance(end.code, int):
        return 0 if end.code is None else end.code & 0xFF
    sys.stdout.flush()
    sys.stderr.write(f"{end.code}\n")
    return 1


def report(problem: BaseException) -> None:
    """Print a traceback without the frames of this package and of the import system."""
    if isinstance(problem, ImportError):
        problem.msg = explained(problem) or problem.msg
    if sys.excepthook is not sys.__excepthook__:
        sys.excepthook(type(problem), problem, problem.__traceback__)
        return
    told = traceback.TracebackException(type(problem), problem, problem.__traceback__, compact=True)
    if not os.environ.get(DEBUG):
        _strip(told)
    sys.stderr.write("".join(told.format()))


def _strip(told: traceback.TracebackException) -> None:
    seen, waiting = set(), [told]
    while waiting:
        one = waiting.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        kept: list[traceback.FrameSummary] = []
        for frame in one.stack:
            if not _ours(frame.filename):
                kept.append(frame)
            elif kept and kept[-1].name == DISPATCHED:  # PyTorch's way to the recorder, with the function it is for
                del kept[-2:]
        one.stack[:] = kept
        waiting += [other for other in (one.__cause__, one.__context__, *(one.exceptions or ())) if other is not None]


def _ours(filename: str) -> bool:
    return filename.startswith((PACKAGE + os.sep, "<frozen importlib", "<gradcli "))


@contextmanager
def hushed() -> Iterator[None]:
    """While it lasts, what is printed goes nowhere, and warnings with it."""
    with open(os.devnull, "w", encoding="utf-8") as nowhere, redirect_stdout(nowhere), redirect_stderr(nowhere):
        yield


def told(problem: BaseException) -> str:
    """An exception on one line, with the name of its class."""
    text = str(problem).partition("\n")[0]
    return f"{type(problem).__name__}: {visible(text, 300)}" if text else type(problem).__name__


def installed() -> Any:
    """The installed PyTorch, as a module. Raises GradcliError (GC713) where there is none."""
    try:
        return import_module("torch")
    except ImportError:
        raise error("GC713", "PyTorch is not installed", help="pip install 'gradcli[peers]'") from None
