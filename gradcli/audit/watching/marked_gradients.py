"""`@gradcli.gradient_of(f)`: marks a hand-written gradient in a program as that of the function f."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    Function = TypeVar("Function", bound=Callable[..., Any])


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
        return watched(f, derivative) if os.environ.get("GRADCLI_AUDIT") else derivative

    return mark


def watched(f: Callable[..., Any], derivative: Any) -> Any:
    """The derivative, which counts its calls."""
    from gradcli.audit.watching import recorder

    gradients: list[recorder.Gradient] = []  # once it was called

    def note(args: tuple[Any, ...], options: dict[str, Any]) -> None:
        if not recorder.watching():
            return
        if not gradients:
            with recorder.guarded():
                gradients.append(first_call(f, derivative))
        if gradients and recorder.wanted(recorder.module_of(derivative)) and recorder.due(gradients[0]):
            values = [*args, *options.values()]
            recorder.keep_copy(gradients[0], values, lambda: subject(f, derivative, args, options))

    return recorder.standing_in(derivative, note)


def first_call(f: Callable[..., Any], derivative: Any) -> Any:
    """What is known of a derivative that is called for the first time."""
    from gradcli.audit.watching import recorder

    gradient = recorder.described("Python", "gradient_of", derivative, f)
    gradient.name = f"{recorder.module_of(derivative)}.{gradient.name}"
    gradient.caller = recorder.caller_of()
    return recorder.known(gradient)


def subject(
    f: Callable[..., Any], derivative: Any, args: tuple[Any, ...], options: dict[str, Any]
) -> tuple[Any, dict[str, Any], Any]:
    """A function and its derivative at the arguments of one call."""
    from inspect import signature

    names = list(signature(f).bind(*args, **options).arguments)
    at = {**dict(zip(names, args, strict=False)), **options}
    return f, {"jac": derivative}, at
