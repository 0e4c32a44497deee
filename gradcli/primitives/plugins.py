"""Operations of other packages, found under the entry point group `gradcli.operations`, and of files (`--import`).

The installed packages are searched only when a name is unknown or all operations are listed, and `importlib.metadata`
is imported only if one of them names the group, so a machine without plug-ins pays next to nothing. A package that
fails to load is recorded as a diagnostic (GC216) and changes nothing else.
"""

from __future__ import annotations

from gradcli.base.diagnostics import Diagnostic, GradcliError, error, visible
from gradcli.graph.primitive import Primitive
from gradcli.primitives import declared

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from importlib.metadata import EntryPoint
    from typing import Any

GROUP = "gradcli.operations"
IMPORTED = "GRADCLI_IMPORTED"  # the files that a process has imported, for those that it starts

imported: dict[str, str] = {}  # files by path, with a digest of their code and of that beside it which they import

_problems: list[Diagnostic] = []


def problems() -> tuple[Diagnostic, ...]:
    """What is wrong with the installed plug-ins, as far as they have been loaded: one diagnostic each."""
    return tuple(_problems)


def entry_points() -> list[EntryPoint]:
    """The entry points of the group, ordered by package and name."""
    if not any_package():
        return []
    from importlib import metadata  # 50 ms

    try:
        return sorted(metadata.entry_points(group=GROUP), key=lambda point: (package_of(point), point.name))
    except Exception as problem:  # an installation that is damaged; which one, it does not say
        _refuse("of an unknown package", f"{type(problem).__name__}: {problem}", "pip check lists broken installations")
        return []


def in_words(problem: BaseException) -> str:
    """The class of an exception and its text, if it has one that can be read."""
    try:
        return f"{type(problem).__name__}: {problem}"
    except Exception:
        return type(problem).__name__


def by_signal(problem: BaseException) -> bool:
    """Whether a signal raised an exception, such as Ctrl-C, and not the module that it comes from."""
    import os
    import signal

    last = problem.__traceback__
    while last is not None and last.tb_next is not None:
        last = last.tb_next
    package = os.path.dirname(os.path.dirname(__file__)) + os.sep
    default = isinstance(problem, KeyboardInterrupt) and signal.getsignal(signal.SIGINT) is signal.default_int_handler
    return default or (last is not None and last.tb_frame.f_code.co_filename.startswith(package))


def any_package() -> bool:
    """Whether a package may declare entry points of the group, from the files that `importlib.metadata` would read.

    True where that is unknown, such as for a zip file or a folder that cannot be read.
    """
    import os
    import sys
    from importlib.machinery import PathFinder

    if any(hasattr(finder, "find_distributions") and finder is not PathFinder for finder in sys.meta_path):
        return True
    try:
        for place in filter(os.path.exists, dict.fromkeys(place or "." for place in sys.path)):
            for name in os.listdir(place):
                if name.lower().endswith(".egg"):
                    return True
                path = os.path.join(place, name, "entry_points.txt")
                if name.lower().endswith((".dist-info", ".egg-info")) and os.path.isfile(path):
                    with open(path, "rb") as file:
                        if GROUP.encode() in file.read():
                            return True
    except OSError:
        return True
    return False


def package_of(point: EntryPoint) -> str:
    """The distribution that declares an entry point, as `pip` names it."""
    return point.dist.name if point.dist is not None else point.value


def load(taken: Mapping[str, Primitive]) -> list[Primitive]:
    """The operations of all installed plug-ins; `taken` are the names of gradcli's own.

    A name that is taken, or that two packages declare, is left out and recorded in `problems`.
    """
    _problems.clear()
    primitives: dict[str, Primitive] = {}
    twice: set[str] = set()
    for point in entry_points():
        package = package_of(point)
        try:
            declared = list(_declared(point.load()))
        except GradcliError as problem:
            _refuse(package, problem.diagnostics[0].message, problem.diagnostics[0].help)
            continue
        except BaseException as problem:  # whatever a module of somebody else raises
            if not isinstance(problem, Exception) and by_signal(problem):
                raise
            _refuse(package, in_words(problem), f"reinstall or uninstall {package}")
            continue
        if not declared:
            _refuse(package, f"{point.value} holds no operation", "declare them with gradcli.operation(...)")
        for primitive in declared:
            name = primitive.name
            owner = primitives.get(name)
            if taken.get(name) not in (None, primitive):
                _refuse(package, f"`{visible(name)}` is an operation of gradcli", "give it another name")
            elif owner is not None and owner is not primitive:
                _refuse(package, f"`{visible(name)}` is declared by {owner.package} too", "uninstall one of them")
                twice.add(name)
            else:
                primitive.package = package
                primitives[name] = primitive
    return [primitive for name, primitive in primitives.items() if name not in twice]


def _declared(loaded: Any) -> Iterable[Primitive]:
    if isinstance(loaded, Primitive):
        return [loaded]
    every = loaded if isinstance(loaded, (list, tuple)) else vars(loaded).values()
    ours = [value for value in every if isinstance(value, Primitive)]
    return [entry for entry in dict.fromkeys(ours) if entry.package is not None]  # not those imported from gradcli


def _refuse(package: str, message: str, help: str | None) -> None:
    _problems.append(Diagnostic("GC216", f"plug-in {visible(package)}: {visible(message, 300)}", None, help=help))


def import_file(path: str) -> None:
    """Run a Python file that declares operations, again only if it has changed; GC216 where it fails, or declares none.

    The processes that this one starts know the file by IMPORTED and run it too, where they call `import_again`.
    """
    import os
    import sys
    from contextlib import redirect_stdout
    from importlib.util import module_from_spec, spec_from_file_location

    place = os.path.abspath(path)
    if imported.get(place, "").startswith(digest_of([place]) if os.path.isfile(place) else " "):
        return
    before, modules = {**declared}, {*sys.modules}
    folder = os.path.dirname(place)
    spec = spec_from_file_location(os.path.basename(place).removesuffix(".py"), place)
    if not os.path.isfile(place) or spec is None or spec.loader is None:
        message = f"cannot import {visible(path, 200)}: no such Python file"
        raise error("GC216", message, help="--import takes a file that ends in .py")
    sys.path.append(folder)
    try:
        with redirect_stdout(sys.stderr):  # results alone go to standard output
            spec.loader.exec_module(module_from_spec(spec))
    except GradcliError:
        raise
    except BaseException as problem:  # whatever the file raises
        if not isinstance(problem, Exception) and by_signal(problem):
            raise
        line = line_in(place, problem)
        message = f"cannot import {visible(path, 200)}{line}: {visible(in_words(problem), 300)}"
        raise error("GC216", message, help="run it with python to see where") from None
    finally:
        sys.path.remove(folder)
    own = [primitive for name, primitive in declared.items() if before.get(name) is not primitive]
    if not own:
        raise error("GC216", f"{visible(path, 200)} declares no operation", help="declare one: gradcli.operation(...)")
    for primitive in own:
        primitive.package = path
    files = [getattr(sys.modules[name], "__file__", None) or "" for name in {*sys.modules} - modules]
    imported[place] = digest_of([place]) + digest_of(sorted(file for file in files if file.startswith(folder + os.sep)))
    os.environ[IMPORTED] = os.pathsep.join(imported)


def as_options() -> list[tuple[str, tuple[str, ...]]]:
    """The imported files as an option of a command line, relative to the current folder."""
    import os

    return [("--import", tuple(os.path.relpath(place) for place in imported))] if imported else []


def import_again() -> None:
    """Run what the process that started this one has imported; what fails here is unknown here."""
    import os
    from contextlib import suppress

    for path in filter(None, os.environ.get(IMPORTED, "").split(os.pathsep)):
        with suppress(GradcliError):
            import_file(path)


def digest_of(files: Iterable[str]) -> str:
    """A digest of the content of some files."""
    from hashlib import sha256

    code = sha256()
    for path in files:
        with open(path, "rb") as file:
            code.update(file.read())
    return code.hexdigest()


def line_in(place: str, problem: BaseException) -> str:
    """`, line 3`: where in a file an exception came from, if it did."""
    if isinstance(problem, SyntaxError) and problem.filename == place:
        return f", line {problem.lineno}"
    lines, step = [], problem.__traceback__
    while step is not None:
        lines += [step.tb_lineno] if step.tb_frame.f_code.co_filename == place else []
        step = step.tb_next
    return f", line {lines[-1]}" if lines else ""


def sources(point: EntryPoint) -> list[str]:
    """The Python files of the package that a plug-in is in."""
    import os
    from importlib.util import find_spec

    try:
        spec = find_spec(point.module.partition(".")[0])
    except Exception:  # a finder of somebody else, or a module that hides what it is: it cannot be imported either
        return []
    places = [] if spec is None else [*(spec.submodule_search_locations or ()), spec.origin or ""]
    files = [
        path
        for place in places
        for path in [os.path.join(top, name) for top, _, names in os.walk(place) for name in names] or [place]
    ]
    return sorted(path for path in files if path.endswith(".py") and os.path.isfile(path))


def fingerprint() -> list[tuple[str, str, str]]:
    """Name, version and a digest of the code of each plug-in and imported file: a cached report depends on them."""
    codes = [
        (package_of(point), point.dist.version if point.dist else "", digest_of(sources(point)))
        for point in entry_points()
    ]
    return [*codes, *((place, "", digest) for place, digest in imported.items())]
