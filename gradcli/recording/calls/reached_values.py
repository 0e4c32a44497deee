"""Finds the values that functions read and hold: in globals, closures, attributes, containers, and what these hold."""

from __future__ import annotations

import gc
import sys
from types import FunctionType, ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.recording.calls.failures import is_users
from gradcli.recording.calls.gradient_libraries import attribute, is_a, names_in, read_by

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

MOST = 1_000  # values
PLAIN = (str, bytes, int, float, complex, type(None), np.ndarray, np.generic, ModuleType)  # of which nothing is asked


def reached_by(functions: Sequence[Any]) -> list[Any]:
    """The functions and what they reach, the nearest values first; not what the code of other packages reads."""
    homes = {root_of(attribute(f, "__module__")) for f in functions}
    values, known = [*functions], {*map(id, functions)}
    for k, value in enumerate(values):
        if k < len(functions) or is_of_users(value, homes):
            parts = {id(part): part for part in held_by(value) if not is_a(part, PLAIN) and id(part) not in known}
            values += [*parts.values()][: MOST - len(values)]
            known.update(parts)
    return values


def held_by(value: Any) -> Iterator[Any]:
    """What a value holds, as Python's collector of garbage sees it; of a function what its code reads."""
    if not is_a(value, FunctionType):
        yield from gc.get_referents(value)
        return
    yield from (part for _, part in read_by(value))
    yield from (*(value.__defaults__ or ()), *(value.__kwdefaults__ or {}).values(), *vars(value).values())
    names = names_in(value.__code__)
    modules = [part for _, part in read_by(value) if is_a(part, ModuleType)]
    modules += [sys.modules[name] for name in names if name in sys.modules]  # imported inside
    for module in modules:
        parts = [vars(module)[name] for name in names if name in vars(module)]
        modules += [part for part in parts if is_a(part, ModuleType) and part not in modules]
        yield from parts


def is_of_users(value: Any, homes: set[str]) -> bool:
    """Whether a function or class is from one of these packages, or from none that is installed; True of all else."""
    if not is_a(value, (FunctionType, type)):
        return True
    home = str(value.__globals__.get("__name__") if is_a(value, FunctionType) else value.__module__)
    file = attribute(sys.modules.get(home), "__file__")  # None of a notebook and of what is built in
    return root_of(home) in homes or (is_users(file) if file else home not in sys.builtin_module_names)


def root_of(home: Any) -> str:
    """The package that a module is part of."""
    return str(home).partition(".")[0]
