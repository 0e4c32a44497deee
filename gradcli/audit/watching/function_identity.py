"""Identifies a Python function: its name, the line it stands in, and the objects that it holds."""

from __future__ import annotations

import sys

from gradcli.audit.watching.recorder import Gradient

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

MARK = "__gradcli_watched__"  # on functions that stand in for others: the function itself


def unwrapped(function: Any) -> Any:
    """The function behind partials, bound methods, decorators and callable objects."""
    for _ in range(10):
        inner = getattr(function, MARK, None) or getattr(function, "func", None) or getattr(function, "__func__", None)
        inner = inner or getattr(function, "__wrapped__", None)
        if inner is None and not hasattr(function, "__code__") and not isinstance(function, type):
            inner = vars(type(function)).get("__call__")
            inner = inner if hasattr(inner, "__code__") else None
        if inner is None:
            return function
        function = inner
    return function


def held(function: Any) -> Iterator[Any]:
    """The objects that a function holds: what it is bound to, and what its closure and its partials hold."""
    for _ in range(10):
        function = getattr(function, MARK, function)
        if getattr(function, "__self__", None) is not None:
            yield function.__self__
        for cell in getattr(function, "__closure__", None) or ():
            try:
                yield cell.cell_contents
            except ValueError:  # not filled yet
                continue
        inner = getattr(function, "func", None) or getattr(function, "__func__", None)
        if inner is None:
            return
        function = inner


def described(library: str, role: str, function: Any, *beside: Any) -> Gradient:
    """A gradient by the function that computes it; `beside` are functions that belong to it, such as its f."""
    inner = unwrapped(function)
    code = getattr(inner, "__code__", None)
    name = getattr(inner, "__qualname__", None) or type(function).__name__
    types, files = [], []
    for one in [*held(function), *(part for other in beside for part in (other, *held(other)))]:
        if callable(one) and hasattr(unwrapped(one), "__code__"):
            files.append(str(unwrapped(one).__code__.co_filename))
            one = next((part for part in held(one) if of_a_class(part)), None)
        if of_a_class(one):
            types.append(type(one).__qualname__)
            files.append(str(getattr(sys.modules.get(type(one).__module__), "__file__", None) or ""))
    of = ", ".join(dict.fromkeys(types))
    return Gradient(
        library,
        role,
        f"{name} of {of}" if of and of not in name else str(name),
        str(code.co_filename) if code else "",
        int(code.co_firstlineno) if code else 0,
        [one for one in files if one],
    )


def of_a_class(value: Any) -> bool:
    """Whether a value is an object of a class that somebody wrote: no number, array, text, function or module."""
    module = type(value).__module__.partition(".")[0]
    return module not in ("builtins", "numpy", "functools", "types", "torch", "jaxlib", "scipy") and not callable(value)


def module_of(function: Any) -> str:
    """The module that a function is from."""
    inner = unwrapped(function)
    return str(getattr(inner, "__module__", None) or type(inner).__module__)


def standing_in(
    function: Callable[..., Any], note: Callable[[tuple[Any, ...], dict[str, Any]], None]
) -> Callable[..., Any]:
    """The same function, with `note` called with its arguments before each call."""
    from functools import update_wrapper

    def watched(*args: Any, **options: Any) -> Any:
        __tracebackhide__ = True
        note(args, options)
        return function(*args, **options)

    update_wrapper(watched, function)
    setattr(watched, MARK, function)
    return watched
