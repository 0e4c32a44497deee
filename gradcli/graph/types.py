"""The type of a value: its kind and its shape, with NumPy's shape arithmetic.

A shape is a tuple of sizes. A kind is `float`, `bool` or `int`; the width of a float (float64, float32,
complex128) is chosen when a program is evaluated, so it is not part of a type.
"""

from __future__ import annotations

from gradcli.base.records import NamedTuple

Shape = tuple[int, ...]

LETTERS = {"float64": "f64", "float32": "f32", "complex128": "c128"}


class Type(NamedTuple):
    """The kind and the shape of a value: `Type("float", (3,))` prints as `f64[3]`."""

    kind: str
    shape: Shape

    @property
    def size(self) -> int:
        return size_of(self.shape)

    @property
    def rank(self) -> int:
        return len(self.shape)

    def text(self, dtype: str = "float64") -> str:
        """The type as people read it, with the float width of `dtype`."""
        head = LETTERS[dtype] if self.kind == "float" else self.kind
        return f"{head}[{','.join(map(str, self.shape))}]" if self.shape else head

    def __str__(self) -> str:
        return self.text()


FLOAT = Type("float", ())  # the type of most nodes of a scalar program, made once


def size_of(shape: Shape) -> int:
    """The number of entries of an array of this shape."""
    size = 1
    for n in shape:
        size *= n
    return size


def broadcast_shapes(*shapes: Shape) -> Shape | None:
    """The common shape by NumPy's rule, or None where the shapes do not fit."""
    result: list[int] = []
    for position in range(1, max(map(len, shapes), default=0) + 1):
        size = 1
        for shape in shapes:
            if position > len(shape) or shape[-position] in (1, size):
                continue
            if size != 1:
                return None
            size = shape[-position]
        result.append(size)
    return tuple(reversed(result))
