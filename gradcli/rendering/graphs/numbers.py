"""Values as text for pictures: short for a box, longer for its facts."""

from __future__ import annotations

from gradcli.base.results.graph_vertices import Extent
from gradcli.rendering.value_text import inline, nested, number, shape_of, size_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

CELL = 4  # entries of an array that a box shows one by one
ENTRIES = 60  # that facts show
WIDE, WIDE_ARRAY = 9, 22  # characters of a number and of an array that are not cut down
DIGITS, DIGITS_EACH = 6, 3  # significant, of a number and of an entry, where there are too many


def brief(value: Any, digits: int | None) -> str:
    """A number to six digits, a small array to three, a large one by its shape and its smallest and largest entry.

    >>> import numpy as np
    >>> brief(0.11515927053158781, None), brief(np.full((3, 3), 2.0), None)
    ('0.115159', '3x3 of 2')
    >>> brief(np.arange(12.0).reshape(3, 4), None)
    '3x4, 0 to 11'
    """
    if isinstance(value, Extent) or size_of(value) > CELL:
        return extent_text(extent_of(value), digits or DIGITS_EACH)
    if not shape_of(value):
        text = number(value, digits)
        return text if len(text) <= WIDE else number(value, min(digits or DIGITS, DIGITS))
    text = nested(value, digits)
    wide = len(text) > WIDE_ARRAY or any(len(entry) > WIDE for entry in text.strip("[]").split(", "))
    return nested(value, min(digits or DIGITS_EACH, DIGITS_EACH)) if wide else text


def detailed(value: Any, digits: int | None, entries: int = ENTRIES) -> str:
    """A value in detail: all digits, and all entries if they are few."""
    if not isinstance(value, Extent) and size_of(value) <= entries:
        return str(inline(value, digits, entries))
    extent = extent_of(value)
    text = f"array {extent_text(extent, digits or DIGITS)}"
    return f"{text}, norm {number(extent.norm, digits or DIGITS)}" if extent.norm == extent.norm else text


def extent_text(extent: Extent, digits: int) -> str:
    """`3x4, -1.22 to 0.9`; `3x3 of 2` where all entries are equal."""
    shape = "x".join(map(str, extent.shape))
    low, high = number(extent.low, digits), number(extent.high, digits)
    entries = 1
    for length in extent.shape:
        entries *= length
    if extent.rest == entries:
        return f"{shape}, none finite" if entries else f"{shape}, empty"
    text = f"{shape} of {low}" if extent.low == extent.high and not extent.rest else f"{shape}, {low} to {high}"
    return f"{text}, {extent.rest} not finite" if extent.rest else text


def extent_of(value: Any) -> Extent:
    """The extent of an array, of a complex one that of its magnitudes; an extent as it is."""
    if isinstance(value, Extent):
        return value
    sizes = abs(value) if value.dtype.kind == "c" else value + 0
    finite = sizes[(sizes == sizes) & (abs(sizes) != float("inf"))].astype("float64")
    if not finite.size:
        return Extent(value.shape, float("nan"), float("nan"), float("nan"), value.size)
    norm = float((finite**2).sum()) ** 0.5
    low, high = float(finite.min()) + 0.0, float(finite.max()) + 0.0  # no -0
    return Extent(value.shape, low, high, norm, value.size - finite.size)


def norm_of(value: Any) -> float | None:
    """The norm of a value or an extent; None without a value, and if it is not finite."""
    if value is None:
        return None
    if isinstance(value, Extent):
        norm = value.norm
    elif shape_of(value):
        norm = extent_of(value).norm if value.size else 0.0
    else:
        norm = float(abs(value))
    return norm if norm - norm == 0 else None
