"""Constructors that follow from declarations: of layers from the signature of their function, of optimizers from their
hyperparameters.
"""

from __future__ import annotations

from inspect import Parameter, Signature
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


def constructor(options: Iterable[Parameter], fill: Callable[..., None]) -> Callable[..., None]:
    """An `__init__` with these options, which calls `fill(self, **options)` with defaults filled in.

    TypeError for missing and unknown options, as of any function.

    >>> class Point:
    ...     __init__ = constructor([Parameter("x", Parameter.POSITIONAL_OR_KEYWORD, default=1)], vars_of)
    >>> Point().x, Point(2).x
    (1, 2)
    """
    signature = Signature([Parameter("self", Parameter.POSITIONAL_ONLY), *options])

    def initialize(*args: Any, **kwargs: Any) -> None:
        try:
            bound = signature.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{type(args[0]).__name__}.__init__() {error}") from None
        bound.apply_defaults()
        fill(*bound.args[:1], **dict(list(bound.arguments.items())[1:]))

    initialize.__name__, initialize.__signature__ = "__init__", signature  # type: ignore[attr-defined]
    return initialize


def vars_of(self: Any, **options: Any) -> None:
    """Make every option an attribute of its name."""
    for name, value in options.items():
        setattr(self, name, value)
