"""The table of operations; the row of an operation is the decorator of its function.

`@op(...)` above a function is its row. `install.py` makes the names of `torch`, the methods and the `_` forms from the
rows; the checks of arguments read them too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

F = TypeVar("F", bound="Callable[..., Any]")

FUNCTION, METHOD, LINALG = "function", "method", "linalg"  # `only`
ENTRIES, TRUTHS, SHAPE = "entries", "truths", "shape"  # `inplace`


@dataclass(frozen=True, slots=True)
class Op:
    """One operation: its names, where they are found, and what it takes.

    `only`: FUNCTION or METHOD where it is not both; LINALG where `torch.linalg` alone has the name, and `torch` the
    aliases. `inplace`: what its `_` form changes: the ENTRIES, the entries to TRUTHS (ones and zeros), or the SHAPE;
    empty where it has none. `along`: it works along one axis, and takes a tensor without axes too. `fast`: small steps
    are made of the method, which checks its arguments by itself. `saves`: what PyTorch calls the operands of the node,
    separated by spaces, where they are not the tensors among the arguments in their order.
    """

    name: str
    aliases: tuple[str, ...] = ()
    only: str = ""
    inplace: str = ""
    along: bool = False
    fast: bool = False
    saves: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        """Its name and its aliases."""
        return (self.name, *self.aliases)


def op(aliases: str = "", **columns: Any) -> Callable[[F], F]:
    """The row of the function below; its name is the function's, `aliases` are separated by spaces."""

    def with_row(function: F) -> F:
        name = columns.pop("name", function.__name__)
        function.row = Op(name, tuple(aliases.split()), **columns)  # type: ignore[attr-defined]
        return function

    return with_row


def described(function: Any, name: str, summary: str, **annotations: str) -> Any:
    """A function that was made of a row, with its name, its documentation and the kinds of its arguments."""
    function.__name__ = function.__qualname__ = name
    function.__doc__ = summary
    function.__annotations__.update(annotations)
    return function


def saved_by(function: Any) -> tuple[tuple[str, ...], bool]:
    """What PyTorch calls the operands that the node of an operation saves, and whether `dim` may be several axes."""
    code, kinds = function.__code__, function.__annotations__
    names = code.co_varnames[: code.co_argcount]
    tensors = [name for name in names[1:] if kinds.get(name, "Tensor").startswith(("Tensor", "Operand"))]
    operands = function.row.saves.split() or [*names[:1], *tensors]
    several = kinds.get("dim") in ("Dims", "Sizes", "Spread")
    return tuple(["self" if name == "input" else name for name in operands]), several


def functions_of(*modules: Any) -> dict[str, Any]:
    """The functions of modules that have a row, by all their names."""
    functions = [
        one
        for module in modules
        for value in vars(module).values()
        for one in (value.values() if isinstance(value, dict) else (value,))
        if isinstance(getattr(one, "row", None), Op)
    ]
    return {name: function for function in functions for name in function.row.names}
