"""The magnitude of a number or an array: its norm, whether it is finite, and a word for it."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def largest_of(value: Any) -> float:
    """The largest entry by size; NaN where there is one."""
    if not hasattr(value, "shape") or not value.shape:
        return float(abs(value))
    return float(abs(value).max()) if value.size else 0.0


def finite(value: Any) -> bool:
    """Whether no entry is NaN or infinite."""
    size = largest_of(value)
    return size - size == 0


def holds_nan(value: Any) -> bool:
    """Whether an entry is NaN."""
    return largest_of(value) != largest_of(value)


def word(value: Any) -> str:
    """The word for a value that is not finite."""
    return "NaN" if holds_nan(value) else "infinite"


def state(value: Any) -> str:
    """A value as a word if it is not finite, else its largest entry."""
    size = largest_of(value)
    if size != size:
        return "NaN"
    if size == 0:
        return "zero"
    return f"{value:.6g}" if isinstance(value, float) else f"largest entry {size:.4g}"
