"""The ladder of steps of a check goes in, a small text plot comes out: the error of a difference against its step."""

from __future__ import annotations

import math

from gradcli.rendering.document import Column, Grid, Line, Style
from gradcli.rendering.values import number

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

    from gradcli.rendering.document import Block

WIDEST = 32  # cells of a bar
FEWEST_DIGITS = -17.0  # of a relative error: below it a bar is empty


def ladder(evidence: Mapping[str, Any], style: Style) -> Iterator[Block]:
    """A row per step: the difference, its error and a bar as long as the error's logarithm; then the rate in words."""
    steps, slopes = evidence.get("steps", ()), evidence.get("slopes", ())
    reference, name = measured(evidence, slopes)
    if not steps or reference is None:
        return
    errors = [abs(slope - reference) for slope in slopes]
    rows = tuple(
        (f"{step:.1e}", number(slope, style.digits or 12), f"{error:.1e}", bar(error, reference))
        for step, slope, error in zip(steps, slopes, errors, strict=True)
    )
    columns = (
        Column("step", "number"),
        Column("central difference", "number"),
        Column("error", "number"),
        Column("", "text", 1),
    )
    of = f" of {evidence['of']}" if evidence.get("of") else ""
    yield Grid(columns, rows, title=f"Differences{of} against {name} {number(reference, style.digits)}")
    yield Line(told(evidence, errors), "note")


def measured(evidence: Mapping[str, Any], slopes: Sequence[float]) -> tuple[float | None, str]:
    """What errors are measured against: the exact derivative, the best estimate, the claim, else the middle one."""
    known = (("exact", "the exact derivative"), ("estimate", "what they settle at,"), ("claimed", "the claim"))
    for key, name in known:
        value = evidence.get(key)
        if isinstance(value, int | float):
            return float(value), name
    return (float(slopes[len(slopes) // 2]), "the middle one,") if slopes else (None, "")


def bar(error: float, reference: float) -> str:
    """A bar of the logarithm of a relative error: full at 1, empty at 1e-17."""
    if not error > 0:
        return ""
    size = math.log10(error / (abs(reference) or 1.0))
    share = max(0.0, min(1.0, 1.0 - size / FEWEST_DIGITS))
    return "#" * max(1, round(WIDEST * share))


def told(evidence: Mapping[str, Any], errors: Sequence[float]) -> str:
    """What the ladder says, in one sentence."""
    rate = evidence.get("rate")
    claimed = evidence.get("claimed")
    if evidence.get("exact") is None and isinstance(evidence.get("estimate"), int | float):
        told = f"they settle to {evidence.get('bound', 0.0):.0e}"
        if isinstance(claimed, int | float) and math.isfinite(claimed):
            nearest = min(abs(slope - claimed) for slope in evidence["slopes"])
            told += f"; none comes nearer to the claim {claimed:.6g} than {nearest:.2g}"
        return told
    words = []
    if rate is not None:
        words.append(f"the error falls as step**{rate:g} (2 is expected), to {min(errors):.1e}")
    elif not min(errors):
        words.append("a step meets it to the last digit")
    else:
        words.append(f"the error does not fall with the step: it stays near {min(errors):.1e}")
    exact = evidence.get("exact")
    if isinstance(exact, int | float) and isinstance(claimed, int | float) and abs(exact - claimed) > min(errors):
        words.append(f"the claim {claimed:.6g} is {abs(exact - claimed):.1e} away")
    return "; ".join(words)
