"""A function and a point as people give it go in, named arguments come out: which of them move, and what they hold.

A mapping gives arguments by name, a tuple by position, anything else is the one argument. Floats and float arrays move;
whole arrays, truth values, texts and other objects are data and are handed over as they are.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gradcli.checks.callables.libraries import JAX, TORCH, is_function_class, is_tensor, kind_of
from gradcli.diagnostics import did_you_mean, error, visible

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    Floats = NDArray[np.floating[Any]]

COMPLEX = "it holds complex numbers, and only real ones are moved"
PARTS = "pass the real and the imaginary part as arguments of their own: f(re, im) with z = re + 1j*im inside"
POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


class Argument(NamedTuple):
    """One argument: its name, what was given, its numbers if it may move, and whether it is passed by keyword."""

    name: str
    given: Any
    array: Floats | None
    keyword: bool = False

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the numbers; () where there are none."""
        return () if self.array is None else self.array.shape

    @property
    def whole(self) -> bool:
        """A number without decimals: it moves, unless the function takes it for a count."""
        return self.array is not None and not self.array.shape and float(self.array).is_integer()


def arguments_of(f: Any, at: Any, names: Sequence[str] | None, wrt: Sequence[str] | None) -> list[Argument]:
    """The arguments of a call of f at a point, in f's order.

    Raises GradcliError GC732 where the point does not fit the function, or where nothing in it can move.
    """
    known = [str(name) for name in names] if names is not None else parameters(f)
    if isinstance(at, tuple) and not hasattr(at, "_fields"):
        given = _positional(at, known)
    elif hasattr(at, "items"):
        given = {str(name): value for name, value in at.items()}
    else:
        given = {known[0] if known else "x": at}
    keywords = _fitted(f, given, known) if known is not None else set()
    order = [name for name in known or () if name in given] or list(given)
    order += [name for name in given if name not in order]
    found = []
    for name in order:
        value = given[name]
        array = numbers(value)
        if wrt is not None and name not in wrt:
            array = None
        if array is None and isinstance(value, list) and value and numbers(value) is not None:
            value = np.asarray(value)
        found.append(Argument(name, value, array, name in keywords))
    for name in wrt or ():
        if name not in given:
            raise error("GC732", f"`{visible(name)}` is no argument that has a value", help=_meant(name, given))
        if is_complex(given[name]):
            raise error("GC732", f"`{visible(name)}` cannot move: {COMPLEX}", help=PARTS)
        if numbers(given[name]) is None:
            raise error("GC732", f"`{visible(name)}` cannot move: it holds a {type(given[name]).__name__}")
    if not any(one.array is not None and one.array.size for one in found):
        for one in found:
            if is_complex(one.given):
                told = f"no argument could move: `{visible(one.name)}` {COMPLEX.removeprefix('it ')}"
                raise error("GC732", told, help=PARTS)
        raise error(
            "GC732",
            "no argument holds floats that could move",
            help="give the point as floats: --at x=2.0, or at={'x': 2.0}",
        )
    return found


def is_complex(value: Any) -> bool:
    """Whether a value holds complex numbers."""
    if is_tensor(value):
        return "complex" in str(getattr(value, "dtype", ""))
    try:
        return bool(np.asarray(value).dtype.kind == "c")
    except (ValueError, TypeError):
        return False


def parameters(f: Any) -> list[str] | None:
    """The names of the arguments that f takes; None where it does not tell, or takes any number."""
    target = f
    module = not isinstance(f, type) and kind_of(f) == TORCH and hasattr(f, "forward")
    if is_function_class(f) or module:
        target = f.forward
    try:
        found = list(inspect.signature(target).parameters.values())
    except (TypeError, ValueError):
        return None
    if any(one.kind is inspect.Parameter.VAR_POSITIONAL for one in found):
        return None
    named = [one.name for one in found if one.kind is not inspect.Parameter.VAR_KEYWORD]
    if is_function_class(f) and not _sets_up(f):
        named = named[1:]  # ctx
    return named


def numbers(value: Any) -> Floats | None:
    """The floats of a value, None where it is data: whole arrays, truth values, texts, objects."""
    if isinstance(value, bool) or value is None or isinstance(value, (str, bytes, complex)):
        return None
    if isinstance(value, (int, float)):
        return np.asarray(float(value))
    if is_tensor(value):
        value = value.detach()
        value = (value.cpu() if hasattr(value, "cpu") else value).numpy()
    try:
        array = np.asarray(value)
    except (ValueError, TypeError):
        return None
    if isinstance(value, (list, tuple)) and array.dtype.kind == "i":
        array = array.astype(np.float64)
    if array.dtype.kind != "f" or array.dtype.itemsize < 2:
        return None
    if array.dtype in (np.float32, np.float64) and kind_of(value) != JAX:  # there float32 is nobody's choice
        return array
    return array.astype(np.float64)


def demoted(arguments: Sequence[Argument]) -> list[Argument] | None:
    """The arguments with whole numbers as data, for a function that refuses floats there; None where nothing changes.

    Those that were given as integers first; else all whole numbers but the first, so that something still moves.
    """
    whole = [one.name for one in arguments if one.whole]
    counts = [one.name for one in arguments if one.whole and isinstance(one.given, int)] or whole
    if len(counts) == sum(1 for one in arguments if one.array is not None):
        counts = counts[1:]
    if not counts:
        return None
    return [one._replace(given=int(one.given), array=None) if one.name in counts else one for one in arguments]


# --- inner ----------------------------------------------------------------------------------------------------


def _positional(at: tuple[Any, ...], known: list[str] | None) -> dict[str, Any]:
    names = known if known is not None else [f"x{i}" for i in range(len(at))]
    if len(at) > len(names):
        raise error("GC732", f"the function takes {len(names)} arguments, the point has {len(at)} values")
    return dict(zip(names, at, strict=False))


def _fitted(f: Any, given: Mapping[str, Any], known: Sequence[str]) -> set[str]:
    """The names that have to be passed by keyword; GC732 where a name is unknown or an argument has no value."""
    try:
        told = inspect.signature(f.forward if is_function_class(f) else f).parameters
    except (TypeError, ValueError):
        return set()
    free = any(one.kind is inspect.Parameter.VAR_KEYWORD for one in told.values())
    for name in given:
        if name not in known and not free:
            raise error("GC732", f"the function has no argument `{visible(name)}`", help=_meant(name, known))
    skipped = False
    keywords = {name for name in given if name not in known}
    for name in known:
        one = told.get(name)
        if name in given:
            if one is not None and (one.kind not in POSITIONAL or skipped):
                keywords.add(name)
            continue
        if one is not None and one.default is inspect.Parameter.empty and one.kind in (*POSITIONAL, one.KEYWORD_ONLY):
            raise error(
                "GC732",
                f"the argument `{name}` has no value",
                help=f"give it one: --at {name}=2.0, or at={{'{name}': 2.0}}",
            )
        skipped = True
    return keywords


def _meant(name: str, known: Any) -> str | None:
    guess = did_you_mean(name, known)
    return f"did you mean `{guess}`?" if guess else None


def _sets_up(f: Any) -> bool:
    """Whether a Function keeps its context apart, so that `forward` does not take one."""
    base = next((one for one in f.__mro__[1:] if one.__name__ == "Function"), None)
    return getattr(f, "setup_context", None) is not getattr(base, "setup_context", None)
