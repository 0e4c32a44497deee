"""Namespaces: the functions that every `impl` calls, one module for each backend.

A namespace has NumPy's names (`xp.sin`, `xp.where`, `xp.take_along_axis`), those of `scipy.special`
(`xp.erf`, `xp.digamma`) and a few of our own (`xp.cast`, `xp.place`, `xp.put_add`, linear algebra that
returns NaN for a bad matrix). A library is loaded when its backend is first used, by its own module alone.
"""

from __future__ import annotations

from importlib import import_module

from gradcli.base.diagnostics import did_you_mean, error

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

BACKENDS: Mapping[str, str] = {"math": "math_", "numpy": "numpy_", "cupy": "cupy_", "jax": "jax_"}
EXTRAS: Mapping[str, str] = {"cupy": "cuda", "jax": "jax"}
DTYPES = ("float64", "float32", "complex128")

_namespaces: dict[tuple[str, str], Any] = {}


class Unavailable(Exception):
    """A namespace has no such function, or cannot hold such a value; the evaluator then uses another one."""


class BadIndex(IndexError):
    """A position that is data is not a whole number, or lies outside the axis."""


class NotReal(TypeError):
    """A complex number where an operation needs real ones: complex numbers have no order."""


IEEE_DIFFERS = (ValueError, OverflowError, ZeroDivisionError)  # Python's floats raise where IEEE has NaN or infinity
REFUSED = (BadIndex, NotReal, Unavailable, MemoryError)  # what the evaluator reports with a place in the script


def namespace(name: str, dtype: str = "float64") -> Any:
    """The namespace of a backend for values of one float width; the same object each time.

    Raises GradcliError: GC711 for a backend or GC712 for a dtype that does not exist, GC713 where the library
    of the backend is not installed.

    >>> namespace("math").sin(0.0)
    0.0
    """
    known = _namespaces.get((name, dtype))
    if known is not None:
        return known
    if dtype not in DTYPES:
        raise error("GC712", f"unknown dtype {dtype!r}", help=_proposal(dtype, DTYPES))
    if name not in BACKENDS:
        raise error("GC711", f"unknown backend {name!r}", help=_proposal(name, (*BACKENDS, "auto")))
    try:
        module = import_module(f"{__name__}.{BACKENDS[name]}")
    except ImportError as missing:
        extra = EXTRAS.get(name)
        install = f'pip install "gradcli[{extra}]"' if extra else f"pip install {name}"
        raise error("GC713", f"the backend {name} is not installed ({missing})", help=install) from missing
    result = _namespaces[name, dtype] = module.make(dtype)
    return result


def _proposal(word: str, choices: tuple[str, ...]) -> str:
    meant = did_you_mean(str(word), choices)
    return f"did you mean {meant}?" if meant else f"choose one of {', '.join(choices)}"
