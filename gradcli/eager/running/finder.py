"""The name of a module goes in; for `torch` and what lies below it, a module of gradcli.eager comes out.

Entries in `sys.modules` alone would not do: the import system would execute each submodule a second time under its
new name. A finder that stands first hands out the modules that exist, so `torch is gradcli.eager`, however it is spelt.
"""

from __future__ import annotations

import re
import sys
from contextlib import contextmanager
from importlib import import_module
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from gradcli.diagnostics import did_you_mean
from gradcli.eager.unsupported import COMPANIONS, INSTEAD, advice

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from types import ModuleType

ALIAS, HOME = "torch", "gradcli.eager"
# the rooms below `torch` that a script may import; everything else in the package is inside matter
PUBLIC = ("autograd", "func", "linalg", "nn", "optim", "special", "utils")


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
        if not exists(name):
            told = instead(name) or hint(name, submodules())
            raise ModuleNotFoundError(f"No module named {name!r} in gradcli{told}", name=name)
        home = HOME + name.removeprefix(ALIAS)
        loader: Any = _Loader(home)
        return ModuleSpec(name, loader, is_package=hasattr(import_module(home), "__path__"))


class _Loader:
    def __init__(self, home: str) -> None:
        self.home = home
        self.spec: Any = None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """The module that is already there."""
        module = import_module(self.home)
        self.spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Nothing is executed again; the import system has overwritten the spec, which is put back."""
        module.__spec__ = self.spec


def exists(name: str) -> bool:
    """Whether a dotted name below `torch` is a module that scripts may import."""
    parts = name.split(".")[1:]
    if not parts:
        return True
    if parts[0] not in PUBLIC or any(part.startswith("_") for part in parts):
        return False
    for at in range(len(parts)):
        home = ".".join((HOME, *parts[: at + 1]))
        if (at and not hasattr(import_module(home.rpartition(".")[0]), "__path__")) or find_spec(home) is None:
            return False
    return True


def submodules() -> list[str]:
    """All modules below `torch` that scripts may import, by their dotted names."""
    found, waiting = [], [f"{ALIAS}.{name}" for name in PUBLIC]
    while waiting:
        name = waiting.pop()
        if not exists(name):
            continue
        found.append(name)
        module = import_module(HOME + name.removeprefix(ALIAS))
        for below in vars(module):
            nested = sys.modules.get(f"{module.__name__}.{below}")
            if hasattr(module, "__path__") and nested is not None:
                waiting.append(f"{name}.{below}")
    return sorted(found)


def instead(name: str) -> str:
    """`; ...` with what does the same as a module that does not exist, or as the one around it; else nothing."""
    parts = name.split(".")[1:]
    for end in range(len(parts), 0, -1):
        dotted = ".".join(parts[:end])
        if dotted in INSTEAD:
            return f"; {INSTEAD[dotted]}"
    return ""


def hint(name: str, known: Sequence[str]) -> str:
    """`; the nearest that exists is ...`, or nothing where nothing is near."""
    near = did_you_mean(name, known)
    return f"; the nearest that exists is {near}" if near else ""


def explained(error: ImportError) -> str | None:
    """The message of `from torch import NAME` for a name that does not exist, with the nearest one that does.

    None for other errors. Python's own message has lost what the module said.
    """
    found = re.match(r"cannot import name '(\w+)' from '([\w.]+)'", str(error.msg))
    if found is None or not (found[2] == HOME or found[2].startswith(HOME + ".")):
        return None
    known = [name for name in dir(import_module(found[2])) if not name.startswith("_")]
    room = found[2].removeprefix(HOME)
    return f"cannot import name {found[1]!r} from {ALIAS + room!r}{advice(room.removeprefix('.'), found[1], known)}"


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
