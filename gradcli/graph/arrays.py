"""Constant arrays of a program: exact numbers with a shape, identified by a digest; standard library only.

A literal such as `[1/3, 0.1]` keeps its entries exact, so exact evaluation of the program loses nothing.
Large data may be an array of NumPy instead; only its `shape`, `dtype` and bytes are used here.
"""

from __future__ import annotations

import math
from importlib import import_module

from gradcli.graph.types import size_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from fractions import Fraction
    from typing import Any

    from gradcli.graph.types import Shape

    Entry = int | float | Fraction

SHORT = 400
NAMED = {"pi": math.pi, "e": math.e, "inf": math.inf, "-inf": -math.inf, "nan": math.nan}


class ArrayData:
    """Numbers in C order, and their shape; ints and Fractions are exact, floats are doubles.

    `name` is what the code of a recorded function calls the array.

    >>> ArrayData((2, 2), (1, 2, 3, 0.5)).nested()
    [[1, 2], [3, 0.5]]
    """

    __slots__ = ("flat", "name", "shape")

    def __init__(self, shape: Shape, flat: Iterable[Entry], name: str = "") -> None:
        self.shape = tuple(shape)
        self.name = name
        self.flat = tuple(flat)
        if len(self.flat) != size_of(self.shape):
            raise ValueError(f"{len(self.flat)} entries do not fill the shape {self.shape}")

    def floats(self) -> list[float]:
        """The entries in C order, each rounded once to the nearest double."""
        return [nearest_float(entry) for entry in self.flat]

    def nested(self) -> Any:
        """The entries as lists inside lists; a single entry for the shape ()."""
        level: Sequence[Any] = self.flat
        for axis in range(len(self.shape) - 1, 0, -1):
            size = self.shape[axis]
            level = [list(level[i * size : (i + 1) * size]) for i in range(size_of(self.shape[:axis]))]
        return list(level) if self.shape else level[0]

    def __repr__(self) -> str:
        return f"<array data [{','.join(map(str, self.shape))}]>"


def nearest_float(value: Entry | str) -> float:
    """The double nearest to an exact number, or to a constant such as "pi"; a number that is too large is infinite.

    >>> nearest_float(2**53 + 1), nearest_float("-inf"), nearest_float(10**400)
    (9007199254740992.0, -inf, inf)
    """
    if isinstance(value, str):
        return NAMED[value]
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def digest_of(value: Any) -> str:
    """A digest of an array: equal exactly for arrays with the same shape and the same entries.

    An exact 1 and a float 1.0 differ, and so do 0.0 and -0.0. Short content is its own name.
    """
    to_bytes = getattr(value, "tobytes", None)
    if to_bytes is not None:
        return f"{value.dtype}{tuple(value.shape)}{_hashed(to_bytes())}"
    entries = ",".join(entry.hex() if isinstance(entry, float) else str(entry) for entry in value.flat)
    return f"{value.shape}{entries if len(entries) <= SHORT else _hashed(entries.encode())}"


def _hashed(content: bytes) -> str:
    # importing hashlib takes 10 ms, so only for long content
    digest: str = import_module("hashlib").blake2b(content, digest_size=16).hexdigest()
    return digest


def subscript(i: int, shape: Sequence[int]) -> str:
    """The subscript of a flat position: "[1, 2]", or nothing for a scalar."""
    if not shape:
        return ""
    index = []
    for n in reversed(shape):
        index.append(str(i % n))
        i //= n
    return f"[{', '.join(reversed(index))}]"
