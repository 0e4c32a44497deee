"""The ladder of steps of a check goes in, a small text plot comes out: the error of a difference against its step."""

from __future__ import annotations

import math

from gradcli.rendering.document import Column, Grid, Line, Style
from gradcli.rendering.values import number

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gradcli.execution.step_sequence import StepSequence
    from gradcli.rendering.document import Block

WIDEST = 32  # cells of a bar
FEWEST_DIGITS = -17.0  # of a relative error: below it a bar is empty


def ladder(found: StepSequence, style: Style) -> Iterator[Block]:
    """A row per step: the difference, its error and a bar as long as the error's logarithm; then the rate in words."""
    reference, name = measured(found)
    if not found.steps or reference is None:
        return
    errors = [abs(slope - reference) for slope in found.slopes]
    rows = tuple(
        (f"{step:.1e}", number(slope, style.digits or 12), f"{error:.1e}", bar(error, reference))
        for step, slope, error in zip(found.steps, found.slopes, errors, strict=True)
    )
    columns = (
        Column("step", "number"),
        Column("central difference", "number"),
        Column("error", "number"),
        Column("", "text", 1),
    )
    of = f" of {found.of}" if found.of else ""
    yield Grid(columns, rows, title=f"Differences{of} against {name} {number(reference, style.digits)}")
    yield Line(told(found, errors), "note")


def measured(found: StepSequence) -> tuple[float | None, str]:
    """What errors are measured against: the exact derivative, the best estimate, the claim, else the middle one."""
    known = (
        (found.exact, "the exact derivative"),
        (found.estimate, "what they settle at,"),
        (found.claimed, "the claim"),
    )
    for value, name in known:
        if value is not None and math.isfinite(value):
            return value, name
    return (found.slopes[len(found.slopes) // 2], "the middle one,") if found.slopes else (None, "")


def bar(error: float, reference: float) -> str:
    """A bar of the logarithm of a relative error: full at 1, empty at 1e-17."""
    if not error > 0:
        return ""
    size = math.log10(error / (abs(reference) or 1.0))
    share = max(0.0, min(1.0, 1.0 - size / FEWEST_DIGITS))
    return "#" * max(1, round(WIDEST * share))


def told(found: StepSequence, errors: Sequence[float]) -> str:
    """What the ladder says, in one sentence."""
    claimed = found.claimed if found.claimed is not None and math.isfinite(found.claimed) else None
    if found.exact is None and found.estimate is not None and math.isfinite(found.estimate):
        told = f"they settle to {found.bound or 0.0:.0e}"
        if claimed is not None:
            nearest = min(abs(slope - claimed) for slope in found.slopes)
            told += f"; none comes nearer to the claim {claimed:.6g} than {nearest:.2g}"
        return told
    words = []
    if found.rate is not None:
        words.append(f"the error falls as step**{found.rate:g} (2 is expected), to {min(errors):.1e}")
    elif not min(errors):
        words.append("a step meets it to the last digit")
    else:
        words.append(f"the error does not fall with the step: it stays near {min(errors):.1e}")
    exact = found.exact
    if exact is not None and claimed is not None and abs(exact - claimed) > min(errors):
        words.append(f"the claim {claimed:.6g} is {abs(exact - claimed):.1e} away")
    return "; ".join(words)
