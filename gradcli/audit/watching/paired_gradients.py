"""Watches derivatives whose function is known: marked with `@gradcli.gradient_of(f)`, or named in a file of pairs."""

from __future__ import annotations

import os
from inspect import getattr_static, signature
from types import MethodType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any, TypeVar

    from gradcli.audit.watching.recorder import HandWrittenGradient

    Function = TypeVar("Function", bound=Callable[..., Any])
    Arguments = dict[str, Any]


def gradient_of(f: Callable[..., Any]) -> Callable[[Function], Function]:
    """Mark a function as the gradient of `f`, or as its Jacobian, for `gradcli audit`. It is called with f's arguments.

    Outside of an audit the function is returned as it is.

    >>> def square(x):
    ...     return x**2
    >>> @gradient_of(square)
    ... def slope(x):
    ...     return 2*x
    >>> slope(3.0), slope.__gradient_of__ is square
    (6.0, True)
    """

    def mark(derivative: Function) -> Function:
        derivative.__gradient_of__ = f  # type: ignore[attr-defined]
        return marked(f, derivative) if os.environ.get("GRADCLI_AUDIT") else derivative

    return mark


def marked(f: Callable[..., Any], derivative: Any) -> Any:
    """A marked derivative, which counts its calls."""
    from gradcli.audit.watching import recorder

    def first() -> HandWrittenGradient | None:
        if not recorder.wanted(recorder.module_of(derivative)):
            return None
        gradient = recorder.described("Python", "gradient_of", derivative, f)
        gradient.name = f"{recorder.module_of(derivative)}.{gradient.name}"
        gradient.caller = recorder.caller_of()
        return recorder.known(gradient)

    def subject(args: tuple[Any, ...], options: Arguments) -> Any:
        names = list(signature(f).bind(*args, **options).arguments)
        return f, {"jac": derivative}, {**dict(zip(names, args, strict=False)), **options}

    return counting(derivative, first, subject)


def counting(
    derivative: Any,
    first: Callable[[], HandWrittenGradient | None],
    subject: Callable[[tuple[Any, ...], Arguments], Any],
    applies: Callable[[tuple[Any, ...], Arguments], bool] = lambda args, options: True,
) -> Any:
    """A derivative that counts the calls that it `applies` to.

    `first` describes it at the first one, `subject` is what is judged of one.
    """
    from gradcli.audit.watching import recorder

    gradients: list[HandWrittenGradient | None] = []  # once it was called

    def note(args: tuple[Any, ...], options: Arguments) -> None:
        if not recorder.watching() or not applies(args, options):
            return
        if not gradients:
            with recorder.guarded():
                gradients.append(first())
        gradient = gradients[0] if gradients else None
        if gradient is not None and recorder.due(gradient):
            recorder.keep_copy(gradient, [*args, *options.values()], lambda: subject(args, options))

    return recorder.standing_in(derivative, note)


# --- pairs of a file ----------------------------------------------------------------------------------------------


def watch(module: ModuleType) -> None:
    """Replace the derivatives that the file of pairs names in a module by functions that count their calls."""
    from gradcli.audit.watching import recorder

    for row in recorder.state.pairs[module.__name__]:
        with recorder.guarded():
            *path, name = row["derivative"].partition(":")[2].split(".")
            owner: Any = module
            for part in path:
                owner = getattr(owner, part)
            replace(owner, name, row)


def replace(owner: Any, name: str, row: Arguments) -> None:
    """Replace one derivative in its class or module, and in the tables of the module."""
    content = getattr_static(owner, name)
    kind = type(content) if isinstance(content, (staticmethod, classmethod)) else None
    plain = content.__func__ if kind is not None else content
    if not callable(plain):
        return
    counted = watched(owner, name, plain, kind is None and isinstance(owner, type), row)
    if hasattr(plain, "py_func") and type(plain).__module__.startswith("numba."):
        counted = compiled(plain, counted)
    setattr(owner, name, counted if kind is None else kind(counted))
    for table in () if isinstance(owner, type) else vars(owner).values():
        if type(table) is dict:
            table.update({key: counted for key, entry in table.items() if entry is plain})


def compiled(function: Any, counted: Any) -> Any:
    """What stands for a function that Numba compiled: code that Numba compiles calls the function itself."""
    from numba.extending import typeof_impl

    from gradcli.audit.watching.recorder import MARK

    class StandIn:
        def __call__(self, *args: Any, **options: Any) -> Any:
            return counted(*args, **options)

        def __getattr__(self, attribute: str) -> Any:
            return getattr(counted if attribute == MARK else function, attribute)

    typeof_impl.register(StandIn)(lambda value, context: typeof_impl(function, context))
    return StandIn()


def watched(owner: Any, name: str, derivative: Any, is_method: bool, row: Arguments) -> Any:
    """A derivative of a pair, which counts its calls; a method, where no subclass of the object has its own pair."""
    from gradcli.audit.watching import recorder

    owners = recorder.state.owners.setdefault(name, set())
    owners.add(owner)

    def first() -> HandWrittenGradient:
        code = getattr(recorder.unwrapped(getattr(derivative, "py_func", derivative)), "__code__", None)
        file, _, line = row["place"].rpartition(":")
        file, line = (code.co_filename, code.co_firstlineno) if code else (file, int(line or 0))
        function = row["value"].rpartition(":")[2].rpartition(".")[2]
        role = f"{'-' * (row['sign'] < 0)}{function}" if row["value"] != row["derivative"] else row["rule"]
        gradient = recorder.HandWrittenGradient(
            "pair", f"of {role}", row["derivative"].replace(":", "."), file, line, ()
        )
        gradient.pair = row
        return recorder.known(gradient)

    def subject(args: tuple[Any, ...], options: Arguments) -> Any:
        from gradcli.audit.conventions import PairedCall

        holder, function = (args[0], MethodType(derivative, args[0])) if is_method else (owner, derivative)
        own = row["value"] == row["derivative"]
        value = function if own else getattr(holder, row["value"].rpartition(":")[2].rpartition(".")[2])
        return PairedCall(row, value, function, holder if is_method else None, args[is_method:], options)

    names = [*signature(derivative).parameters] if row["flag"] else []
    place = names.index(row["flag"]) if row["flag"] in names else -1

    def applies(args: tuple[Any, ...], options: Arguments) -> bool:
        if row["flag"] and not options.get(row["flag"], 0 <= place < len(args) and args[place]):
            return False  # it returns no derivative
        return not is_method or owner is next((kind for kind in type(args[0]).__mro__ if kind in owners), owner)

    return counting(derivative, first, subject, applies)
