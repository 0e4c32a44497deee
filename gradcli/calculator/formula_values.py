"""The entries of a formula's value at a point, to compare with numbers that another way of computing gave."""

from __future__ import annotations

from gradcli.base.diagnostics import GradcliError
from gradcli.calculator.questions import prepare, value_question

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from gradcli.language.limits import Limits

CLOSE, TINY = 1e-6, 1e-12  # relative to the largest entry, and what may be a rounding error of 0


def entries_at(text: str, place: Mapping[str, Any], limits: Limits | None = None) -> list[float] | None:
    """The entries of the value of a formula at a point; None where it has none."""
    try:
        question = value_question(prepare(text, place, (), limits))
        (value,) = question.run(question.values(place), "auto", "float64")
    except (GradcliError, ValueError, TypeError):
        return None
    return flat(value)


def entry_pairs(
    text: str, place: Mapping[str, Any], value: Any, limits: Limits | None = None
) -> list[tuple[float, float]] | None:
    """Pairs of entries of a formula at a point, which may broadcast, and of a value; None if they do not fit."""
    entries, wanted = entries_at(text, place, limits), flat(value)
    if entries is not None and len(entries) == 1:
        entries *= len(wanted)
    return list(zip(entries, wanted, strict=True)) if entries is not None and len(entries) == len(wanted) else None


def flat(value: Any) -> list[float]:
    """The entries of a result as floats."""
    return [float(value)] if isinstance(value, (int, float)) else [float(x) for x in value.reshape(-1)]
