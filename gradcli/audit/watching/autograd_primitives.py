"""Watches primitives of autograd (`autograd.extend.primitive`, `defvjp`) where a gradient is taken through them."""

from __future__ import annotations

from gradcli.audit.watching import recorder
from gradcli.audit.watching.recorder import described, held, module_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any


def watch(module: ModuleType) -> None:
    """Replace what makes the node of a primitive: it is made where a gradient is wanted, and only there."""
    node = module.VJPNode
    begin = node.__init__

    def watched(
        self: Any, value: Any, fun: Any, args: tuple[Any, ...], options: dict[str, Any], argnums: Any, parents: Any
    ) -> None:
        __tracebackhide__ = True
        raw = getattr(fun, "fun", fun)
        if recorder.watching() and recorder.wanted(module_of(raw)):
            with recorder.guarded():
                count(module, fun, raw, args, options, tuple(argnums))
        begin(self, value, fun, args, options, argnums, parents)

    node.__init__ = watched


def count(
    module: ModuleType, fun: Any, raw: Any, args: tuple[Any, ...], options: dict[str, Any], argnums: tuple[int, ...]
) -> None:
    """Count a call of a primitive; calls inside a second derivative, whose arguments are boxes, are not counted."""
    if any(type(arg).__module__.startswith("autograd.") for arg in args):
        return
    gradient = recorder.state.rules.get(fun)
    if gradient is None:
        gradient = described("autograd", "vjp", raw)
        gradient.name = f"{module_of(raw)}.{gradient.name}"
        tables = [table for table in held(module.primitive_vjps.get(fun)) if isinstance(table, dict)]
        makers = [maker for table in tables for maker in table.values()]
        if makers:
            place = described("autograd", "vjp", makers[0])
            gradient.file, gradient.line = place.file, place.line
            gradient.files += place.files
        gradient.caller = recorder.caller_of("autograd")
        gradient = recorder.state.rules[fun] = recorder.known(gradient)
    if recorder.due(gradient):
        recorder.keep_copy(gradient, args, lambda: subject(fun, args, options, argnums))


def subject(
    fun: Any, args: tuple[Any, ...], options: dict[str, Any], argnums: tuple[int, ...]
) -> tuple[Any, dict[str, Any], Any]:
    """A primitive as the function of the arguments that a gradient was wanted for."""
    from autograd import make_vjp

    def filled(moved: tuple[Any, ...]) -> list[Any]:
        filled_args = [*args]
        for i, value in zip(argnums, moved, strict=True):
            filled_args[i] = value
        return filled_args

    def value(*moved: Any) -> Any:
        return fun(*filled(moved), **options)

    def pullback(*moved: Any) -> Any:
        *moved_too, weights = moved
        arguments = filled(tuple(moved_too))
        return tuple(make_vjp(fun, i)(*arguments, **options)[0](weights) for i in argnums)

    names = [f"x{i}" for i in argnums]
    return value, {"vjp": pullback, "names": names}, tuple(args[i] for i in argnums)
