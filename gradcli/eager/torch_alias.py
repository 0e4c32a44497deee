"""Lets `import torch` give these tensors while a script runs.

Entries in `sys.modules` alone would not do for `import torch.nn`: the import system would execute each submodule a
second time under its new name. A finder in first place returns the existing modules, so `torch is gradcli.eager` under
every name.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType
from typing import Any

from gradcli.diagnostics import did_you_mean
from gradcli.eager._core import dtypes
from gradcli.eager._core.unsupported import COMPANIONS, INSTEAD, REAL, advice

ALIAS, HOME = "torch", "gradcli.eager"
# the rooms below `torch` that a script may import; everything else in the package is inside matter
PUBLIC = (
    *("accelerator", "amp", "autograd", "backends", "compiler", "cuda", "distributions", "func", "linalg", "mps", "nn"),
    *("optim", "serialization", "special", "testing", "utils", "version", "xpu"),
)
# files of PyTorch's whose names all stand in one module here, which is imported under their names too
SAME = {
    "autograd": ("variable",),
    "distributions": ("bernoulli", "categorical", "distribution", "kl", "normal"),
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
def aliases(dtype: str | None = None) -> Iterator[None]:
    """While it lasts, `import torch` gives these tensors; afterwards everything is as it was before.

    `dtype` is the default format of floats. The message of an ImportError that ends the block names what exists.
    """
    before, default, finder = _forget(), dtypes.get_default_dtype(), Finder()
    sys.meta_path.insert(0, finder)
    if dtype is not None:
        dtypes.set_default_dtype(getattr(dtypes, dtype))
    try:
        yield
    except ImportError as problem:
        problem.msg = explained(problem) or problem.msg
        raise
    finally:
        dtypes.set_default_dtype(default)
        sys.meta_path[:] = [one for one in sys.meta_path if one is not finder]
        _forget()
        sys.modules.update(before)


def _forget() -> dict[str, Any]:
    """Take `torch` and all below it out of the loaded modules."""
    names = [name for name in sys.modules if name == ALIAS or name.startswith(ALIAS + ".")]
    return {name: sys.modules.pop(name) for name in names}
