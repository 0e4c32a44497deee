"""What a hand-written derivative returned goes in, one array per argument comes out, or why it does not fit.

A dict gives gradients by name, a tuple in the order of the arguments, one array is for the only argument, or for the
first, as SciPy has it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.checks.callables.failures import Failed
from gradcli.diagnostics import did_you_mean, visible

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from gradcli.checks.callables.arguments import Argument
    from gradcli.checks.callables.libraries import Library

    Floats = NDArray[np.floating[Any]]


class Form:
    """How a derivative hands over its parts: which arguments it covers, what is odd about it.

    It is read off the first result; later results have to be alike.
    """

    def __init__(self, role: str, library: Library, arguments: Sequence[Argument], outer: tuple[int, ...] = ()) -> None:
        self.role = role
        self.library = library
        self.arguments = list(arguments)
        self.outer = outer  # the shape of f's value, for a Jacobian
        self.notes: list[str] = []
        self.dtype: str | None = None

    @property
    def moving(self) -> list[Argument]:
        """The arguments that may move."""
        return [one for one in self.arguments if one.array is not None]

    def covered(self, value: Any) -> list[str]:
        """The names of the arguments whose gradients a first result holds; notes what is odd about it."""
        names = [one.name for one in self.moving]
        if hasattr(value, "items"):
            for name in value:
                if name not in names:
                    raise Failed(
                        self.role,
                        f"{self.role} gives a gradient for `{visible(str(name))}`, which does not move",
                        help=_meant(str(name), names),
                    )
            found = [name for name in names if name in value and value[name] is not None]
            self._missing([name for name in names if name not in found])
            return found
        parts = self._parts(value)
        if parts is not None:
            return [one.name for one, part in parts if part is not None and one.array is not None]
        if len(names) > 1 and not self._stacked(value):
            shape = np.shape(self.library.read(self.role, value))
            first = self.moving[0]
            if shape != self._shape(first):
                raise Failed(
                    self.role,
                    f"{self.role} returns one array of shape {list(shape)} for {len(names)} arguments",
                    help="return a tuple or a dict with a gradient for each argument",
                )
            self._missing(names[1:])
            return names[:1]
        return names

    def read(self, value: Any, names: Sequence[str]) -> list[Floats]:
        """The gradient of each of these arguments, in float64 and in its argument's shape (after f's, of a Jacobian).

        Raises Failed where a part is missing, is no array of numbers, or has another shape.
        """
        wanted = [one for one in self.arguments if one.name in names]
        if value is None:
            raise Failed(self.role, f"{self.role} returns None", help="does it end without `return`?")
        parts = self._parts(value)
        if hasattr(value, "items"):
            found = {str(name): part for name, part in value.items()}
        elif parts is not None:
            found = {one.name: part for one, part in parts}
        elif len(wanted) > 1:
            found = dict(zip(names, self.library.read(self.role, value), strict=False))
        else:
            found = {wanted[0].name: value}
        return [self._array(one, found.get(one.name)) for one in wanted]

    # --- inner ----------------------------------------------------------------------------------------------

    def _shape(self, one: Argument) -> tuple[int, ...]:
        return (*self.outer, *one.shape)

    def _array(self, one: Argument, part: Any) -> Floats:
        what = f"{self.role} for `{one.name}`" if len(self.arguments) > 1 else self.role
        array = self.library.read(what, part)
        wanted = self._shape(one)
        if self.dtype is None or array.dtype.name == "float32":
            self.dtype = array.dtype.name
        if array.dtype.kind != "f":
            self._note(f"{what} returns {array.dtype}: is it rounded to whole numbers?")
        if isinstance(part, (list, tuple)):
            self._note(f"{what} returns a {type(part).__name__}, read as an array")
        if array.shape != wanted:
            if array.size == 1 and (not wanted or set(wanted) == {1}):
                array = array.reshape(wanted)
            elif array.size and array.shape == (1, *wanted):
                array = array[0]
                self._note(f"{what} has an axis of length 1 too many: {[1, *wanted]}")
            else:
                told = f"{what} has shape {list(array.shape)}, but "
                told += f"the Jacobian has {list(wanted)}" if self.outer else f"`{one.name}` has {list(wanted)}"
                raise Failed(self.role, told, help=_mend(array, wanted, one.name))
        return array.astype(np.float64)

    def _parts(self, value: Any) -> list[tuple[Argument, Any]] | None:
        """The arguments with the parts of a tuple; None where the value is one array."""
        if not isinstance(value, (tuple, list)):
            return None
        moving = self.moving
        shape = self._shape(moving[0])
        if len(moving) == 1 and len(value) != 1 and shape and shape[0] == len(value):
            if all(one is not None and np.ndim(one) == len(shape) - 1 for one in value):
                return None  # the gradient itself, as a list of numbers
        if len(value) == len(moving) and (len(moving) > 1 or isinstance(value, tuple) or np.ndim(value[0]) > 0):
            return list(zip(moving, value, strict=True))
        if len(value) == len(self.arguments) and isinstance(value, tuple):
            return list(zip(self.arguments, value, strict=True))
        if isinstance(value, list):
            return None
        raise Failed(
            self.role,
            f"{self.role} returns {len(value)} parts for {len(moving)} argument{'s' if len(moving) > 1 else ''} "
            f"({', '.join(one.name for one in moving)})",
            help="return a gradient for each argument that moves, or a dict by name",
        )

    def _stacked(self, value: Any) -> bool:
        """Whether one array holds the partials of several numbers."""
        scalars = all(not one.shape for one in self.moving)
        return scalars and not self.outer and np.shape(self.library.read(self.role, value)) == (len(self.moving),)

    def _missing(self, names: Sequence[str]) -> None:
        if names:
            self._note(f"{self.role} gives nothing for {', '.join(names)}: not checked")

    def _note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)


def _mend(array: Floats, wanted: tuple[int, ...], name: str) -> str:
    if array.shape == wanted[::-1] and len(wanted) > 1:
        return "it is transposed"
    if array.size == int(np.prod(wanted)):
        return f"reshape it: subtracting it from {name} would broadcast"
    if len(array.shape) > len(wanted):
        return "is a sum over an axis missing?"
    return "was it summed over an axis too many?"


def _meant(name: str, known: Sequence[str]) -> str | None:
    guess = did_you_mean(name, known)
    return f"did you mean `{guess}`?" if guess else None
