"""Operations of other packages, found under the entry point group `gradcli.operations`.

The installed packages are searched only when a name is unknown or all operations are listed, and `importlib.metadata`
is imported only if one of them names the group, so a machine without plug-ins pays next to nothing. A package that
fails to load is recorded as a diagnostic (GC216) and changes nothing else.
"""

from __future__ import annotations

from gradcli.diagnostics import Diagnostic, GradcliError, visible
from gradcli.graph.primitive import Primitive

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from importlib.metadata import EntryPoint
    from typing import Any

GROUP = "gradcli.operations"

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
            if name in taken:
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
    """Package, version and a digest of the code of each plug-in: a cached report depends on them."""
    from hashlib import sha256

    digests = []
    for point in entry_points():
        code = sha256()
        for path in sources(point):
            with open(path, "rb") as file:
                code.update(file.read())
        digests.append((package_of(point), point.dist.version if point.dist else "", code.hexdigest()))
    return digests
