"""What a function is given as sizes or axes goes in, whole numbers come out: one by one, as a sequence, or by name."""

from __future__ import annotations

from operator import index
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gradcli.eager.tensor import Tensor

Shape = tuple[int, ...]


def sizes(given: tuple[Any, ...], named: Any = None, name: str = "size") -> Shape:
    """Sizes given one by one, as one sequence, or by name. TypeError for none, and for what is no whole number."""
    if not given:
        if named is None:
            raise TypeError(f"missing 1 required positional argument: {name!r} (tuple of ints)")
        given = (named,)
    elif named is not None:
        raise TypeError(f"got multiple values for argument {name!r}")
    if len(given) == 1 and isinstance(given[0], (tuple, list)):
        given = tuple(given[0])
    return tuple([n if n.__class__ is int else _whole(n) for n in given])


def _whole(n: Any) -> int:
    if not hasattr(n, "__index__") or isinstance(n, bool):
        raise TypeError(f"sizes and axes must be whole numbers (tuple of ints), not {type(n).__name__}")
    return index(n)


def grouped(function: Any, name: str) -> Any:
    """The function of a tensor and one sequence of sizes, which a method takes one by one too."""

    def called(input: Tensor, *given: Any, **named: Any) -> Any:
        if len(given) > 1 or (given and not isinstance(given[0], (tuple, list))):
            raise TypeError(f"{function.__name__}(): argument {name!r} (position 2) must be tuple of ints")
        return function(input, *given, **named)

    called.__name__, called.__qualname__, called.__doc__ = function.__name__, function.__qualname__, function.__doc__
    called.__module__ = function.__module__
    return called
