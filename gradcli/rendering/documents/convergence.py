"""Convergence of finite differences: a table of their errors by step, and a log-log plot in the shape of a V."""

from __future__ import annotations

import math

from gradcli.rendering.document import GAP, Column, Grid, Line, Style
from gradcli.rendering.value_text import derivative, number, without_zero

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gradcli.base.results.curves import StepSequence
    from gradcli.rendering.document import Block

HEIGHT = 12  # rows of the plot
PITCH = 4  # columns between two steps
NO_DIFFERENCES = "there are no differences: the function has no finite values on both sides of the point"


def convergence(sequence: StepSequence, style: Style) -> Iterator[Block]:
    """A row per step with the difference and its error, the plot of the errors, and a sentence about them."""
    reference, name = measured(sequence)
    if not sequence.steps or reference is None:
        yield Line(NO_DIFFERENCES, "note")
        return
    errors = [abs(slope - reference) for slope in sequence.slopes]
    rows = tuple(
        (f"{step:.1e}", number(slope, style.digits or 12), f"{error:.1e}")
        for step, slope, error in zip(sequence.steps, sequence.slopes, errors, strict=True)
    )
    columns = (Column("step", "number"), Column("central difference", "number"), Column("error", "number"))
    of = f" of {sequence.of}" if sequence.of else ""
    known = without_zero(derivative(reference, style.digits))
    yield Grid(columns, rows, title=f"Differences{of} against {name} {known}")
    drawn = plot(sequence.steps, errors)
    if drawn:
        yield from (GAP, Line("\n".join(drawn), "code"), GAP)
    yield Line(in_words(sequence, errors), "note")


def measured(sequence: StepSequence) -> tuple[float | None, str]:
    """The reference for errors: the exact derivative, the best estimate, the claim, else the middle difference."""
    if sequence.below is not None:
        return sequence.claimed, "reverse mode's"
    known = (
        (sequence.exact, "the exact derivative"),
        (sequence.estimate, "what they settle at,"),
        (sequence.claimed, "the claim"),
    )
    for value, name in known:
        if value is not None and math.isfinite(value):
            return value, name
    return (sequence.slopes[len(sequence.slopes) // 2], "the middle one,") if sequence.slopes else (None, "")


def plot(steps: Sequence[float], errors: Sequence[float]) -> list[str]:
    """The errors by step, both on logarithmic axes, the largest step at the left; an error of 0 stands on the axis.

    >>> print("\\n".join(plot([0.1, 0.01, 0.001], [1e-2, 1e-4, 1e-3])))
      error
    1.0e-02 | *
            |
            |         *
    1.0e-04 |     *
            +-----------
             1.0e-01 step 1.0e-03
    """
    logs = [math.log10(error) if 0 < error < math.inf else None for error in errors]
    known = [log for log in logs if log is not None]
    if len(known) < 2 or max(known) - min(known) < 1:
        return []
    top, bottom = max(known), min(known)
    height = min(HEIGHT, round(top - bottom) * 2)
    cells = [[" "] * (PITCH * len(steps) + 1) for _ in range(height)]
    for at, log in enumerate(logs):
        row = height - 1 if log is None else round((top - log) / (top - bottom) * (height - 1))
        cells[row][1 + PITCH * at] = "*" if log is not None else "0"
    labels = {0: f"{10**top:.1e}", height - 1: f"{10**bottom:.1e}"}
    lines = ["  error" + (" (0: none)" if None in logs else "")]
    lines += [f"{labels.get(at, ''):>7} |{''.join(row)}".rstrip() for at, row in enumerate(cells)]
    axis = PITCH * (len(steps) - 1) + 3
    first, last = f"{steps[0]:.1e}", f"{steps[-1]:.1e}"
    lines.append(f"{'':7} +{'-' * axis}")
    lines.append(f"{'':9}{first}{'step':^{max(6, axis - len(first) - len(last))}}{last}")
    return lines


def in_words(sequence: StepSequence, errors: Sequence[float]) -> str:
    """The conclusion from the sequence, in one sentence."""
    if sequence.below is not None:
        sides = f"{sequence.below:.6g} from below and {sequence.above:.6g} from above"
        return f"a kink: the slope is {sides}, so there is no derivative"
    claimed = sequence.claimed if sequence.claimed is not None and math.isfinite(sequence.claimed) else None
    if sequence.exact is None and sequence.estimate is not None and math.isfinite(sequence.estimate):
        words = f"they settle to {sequence.bound or 0.0:.0e}"
        if claimed is not None:
            nearest = min(abs(slope - claimed) for slope in sequence.slopes)
            words += f"; none comes nearer to the claim {claimed:.6g} than {nearest:.2g}"
        return words
    parts = []
    if sequence.rate is not None:
        parts.append(f"the error falls as step**{sequence.rate:g} (2 is expected), to {min(errors):.1e}")
    elif not min(errors):
        parts.append("at some step the difference equals it to the last digit")
    else:
        parts.append(f"the error does not fall with the step: it stays near {min(errors):.1e}")
    exact = sequence.exact
    if exact is not None and claimed is not None and abs(exact - claimed) > min(errors):
        parts.append(f"the claim {claimed:.6g} is {abs(exact - claimed):.1e} away")
    return "; ".join(parts)
