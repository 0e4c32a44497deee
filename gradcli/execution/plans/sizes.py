"""An array goes in, how large its entries are comes out, in few passes over it; what they mean is not known here."""

from __future__ import annotations

from math import sqrt
from typing import Any

import numpy as np

PIECE = 1 << 13  # entries of one sum of squares: of more, a library may share the sum out among threads of its own
ABOVE = 1 + 1e-6  # by more than roundings make the root of a sum of squares too small


def in_order(x: Any) -> Any:
    """The turns of an operand from the first in memory on: of turns that stand backward NumPy takes one by one."""
    return x[::-1] if x.ndim and x.strides[0] < 0 else x


def about(x: Any) -> float:
    """At least the size of the largest entry, if that is not far below 1; nan where an entry is."""
    flat, total = in_order(x).reshape(-1), 0.0
    for at in range(0, flat.size, PIECE):
        piece = flat[at : at + PIECE]
        total += float(piece.dot(piece))
    return ABOVE * sqrt(total)


def largest(x: Any) -> float:
    """The size of the largest entry; nan where an entry is."""
    x = in_order(x)
    return max(float(x.max()), -float(x.min()))


def within(x: Any, size: float) -> bool:
    """Whether no entry is larger than `size`, which is at least 1, and none is nan."""
    return about(x) <= size or largest(x) <= size


def smallest(x: Any, nonzero: bool = False) -> float:
    """The size of the smallest entry, or of the smallest that is not 0."""
    sizes = np.abs(in_order(x))
    if nonzero:
        sizes = sizes[sizes > 0]
    return float(sizes.min(initial=np.inf))
