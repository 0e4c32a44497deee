"""Lets `import torch` give these tensors while a script runs.

All modules below `torch` that a script may import are in `sys.modules` under the names of PyTorch, so that none runs
a second time and `torch is gradcli.eager` under every name. A finder in first place explains every other name.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from types import ModuleType
from typing import Any

from gradcli.eager._core import dtypes
from gradcli.eager._core.unsupported import COMPANIONS, advice, no_module

ALIAS, HOME = "torch", "gradcli.eager"
# the rooms below `torch` that a script may import; everything else in the package is inside matter
PUBLIC = ("accelerator", "autograd", "cuda", "func", "linalg", "nn", "optim", "special", "testing", "utils")
# files of PyTorch's whose names all stand in one module here, which is imported under their names too
SAME = {
    "autograd": ("variable",),
    "nn.modules": (
        *("activation", "batchnorm", "container", "conv", "dropout", "instancenorm", "linear", "loss", "module"),
        *("normalization", "sparse", "utils"),
    ),
    "nn.utils": ("clip_grad", "convert_parameters"),
    "optim": ("adadelta", "adagrad", "adam", "adamw", "rmsprop", "sgd"),
    "utils.data": ("dataloader", "dataset"),
}


class TorchFinder:
    """A finder for `torch.*`, to stand first in `sys.meta_path`: it refuses modules that do not exist."""

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> None:
        """ModuleNotFoundError for a name below `torch`, or of a package that is built on PyTorch; None for others."""
        if name in COMPANIONS:
            raise ModuleNotFoundError(f"No module named {name!r} in gradcli; {COMPANIONS[name]}", name=name)
        if name.startswith(ALIAS + "."):
            raise ModuleNotFoundError(no_module(name, sorted(modules())), name=name)


def modules() -> dict[str, Any]:
    """`torch` and all modules below it that scripts may import, by their dotted names."""
    home = import_module(HOME)
    rooms: dict[str, Any] = {name: getattr(home, name) for name in PUBLIC}
    for name, module in sys.modules.items():
        below = name.removeprefix(HOME + ".")
        if below != name and below.partition(".")[0] in PUBLIC and "._" not in below:
            rooms[below] = module
    for name, files in SAME.items():
        rooms |= {f"{name}.{file}": rooms[name] for file in files}
        for file in files:
            vars(rooms[name]).setdefault(file, rooms[name])
    return {ALIAS: home, **{f"{ALIAS}.{name}": module for name, module in rooms.items()}}


def explained(error: ImportError) -> str | None:
    """The message of an import of a name that does not exist, with the nearest one that does.

    None for other errors. Python's own messages have lost what the module said.
    """
    match = re.match(r"cannot import name '(\w+)' from '([\w.]+)'", str(error.msg))
    if match is not None and (match[2] == HOME or match[2].startswith(HOME + ".")):
        room = match[2].removeprefix(HOME)
        known = [name for name in dir(modules()[ALIAS + room]) if not name.startswith("_")]
        return f"cannot import name {match[1]!r} from {ALIAS + room!r}{advice(room.removeprefix('.'), match[1], known)}"
    match = re.match(rf"No module named '({ALIAS}\.[\w.]+)'; '[\w.]+' is not a package", str(error.msg))
    return None if match is None else no_module(match[1], sorted(modules()))


@contextmanager
def aliases(dtype: str | None = None) -> Iterator[None]:
    """A context in which `import torch` gives these tensors; afterwards everything is as it was before.

    `dtype` is the default format of floats. The message of an ImportError that ends the block names what exists.
    """
    before, default, finder = _forget(), dtypes.get_default_dtype(), TorchFinder()
    sys.modules.update(modules())
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
        sys.meta_path[:] = [other for other in sys.meta_path if other is not finder]
        _forget()
        sys.modules.update(before)


def _forget() -> dict[str, Any]:
    """Take `torch` and all below it out of the loaded modules."""
    names = [name for name in sys.modules if name == ALIAS or name.startswith(ALIAS + ".")]
    return {name: sys.modules.pop(name) for name in names}
