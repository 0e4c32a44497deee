"""A named tuple and the name of an operation go in, the type that PyTorch returns comes out; computes nothing.

Such a result prints each of its fields on a line of its own.
"""

from __future__ import annotations

from typing import Any, TypeVar

T = TypeVar("T")
HOME = "torch.return_types"
_made: dict[Any, Any] = {}


def shown(result: Any) -> str:
    """A result as PyTorch prints it."""
    fields = ",\n".join(f"{name}={value!r}" for name, value in zip(result._fields, result, strict=True))
    return f"{HOME}.{type(result).__name__}(\n{fields})"


def named(base: type[T], name: str) -> type[T]:
    """The type of the results of one operation: a named tuple that has the name of the operation.

    >>> from collections import namedtuple
    >>> named(namedtuple("Found", "values indices"), "max")(values=3, indices=0)
    torch.return_types.max(
    values=3,
    indices=0)
    """
    found = _made.get((base, name))
    if found is None:
        found = _made[base, name] = type(name, (base,), {"__slots__": (), "__module__": HOME, "__repr__": shown})
    return found


def of_node(base: type[T], node: str) -> type[T]:
    """The type for the operation of a node: `SortBackward0` gives that of `sort`."""
    return named(base, node.partition("Backward")[0].lower())
