"""What `gradcli why` found, as documents: each reason with its line, fix and patch, gradients, steps of training."""

from __future__ import annotations

from gradcli.base.results.findings import GradientPath
from gradcli.rendering.document import GAP, Column, Document, Facts, Grid, Line, Style, document
from gradcli.rendering.machine import opening
from gradcli.rendering.value_text import jsonable, number

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any, TypeVar

    from gradcli.base.results.findings import Explanation, Finding, Looked, Patch
    from gradcli.base.results.training_steps import TrainingSteps
    from gradcli.rendering.document import Block

    T = TypeVar("T")

WIDEST = 12  # gradients, steps and parameters that are listed
PAGE = Style()


def explanation(result: Explanation, style: Style, steps: TrainingSteps | None = None) -> Document:
    """`why`: the findings, or a line that there are none; what was looked at."""
    blocks: list[Block] = [Line(f"on {result.on}", "note")] if result.on else []
    for finding in result.findings:
        if blocks:
            blocks.append(GAP)
        blocks += reason(finding, style)
    if not result.findings:
        blocks.append(Line("nothing to explain", "good"))
    listed = list(result.gradients.items())
    if listed and (result.findings or len(listed) == 1):
        rows = tuple((name, phrase) for name, phrase in listed[:WIDEST])
        blocks.append(Grid((Column("tensor", "code"), Column("gradient")), rows))
        if len(listed) > WIDEST:
            blocks.append(Line(f"and {len(listed) - WIDEST} more", "note"))
    if steps is not None:
        blocks += tables(steps, style)
    if result.looked is not None:
        blocks += [GAP, Line(looked_at(result.looked), "note")]
    return document(*blocks)


def looked_at(looked: Looked) -> str:
    """What of a run was looked at, in one line."""
    parts = [
        counted(looked.operations, "operation"),
        counted(looked.tensors, "tensor with a name", "tensors with names"),
    ]
    parts.append(counted(looked.backwards, "backward"))
    if looked.optimizers:
        kinds = ", ".join(dict.fromkeys(looked.optimizers))
        parts.append(f"{counted(looked.steps, 'step')} of {counted(len(looked.optimizers), 'optimizer')} ({kinds})")
    else:
        parts.append("no optimizer")
    return f"looked at {', '.join(parts)}"


def counted(count: int, singular: str, plural: str = "") -> str:
    """A number of things."""
    return f"{count:,} {singular if count == 1 else plural or f'{singular}s'}"


def reason(finding: Finding, style: Style) -> Iterator[Block]:
    """A reason, its line, a fix, and the numbers."""
    yield Line(headline(finding), "title")
    file = () if finding.file is None else (("file", finding.file, "text"),)
    line = () if finding.line is None else (("line", str(finding.line), "text"),)
    yield Facts((("reason", finding.reason, "text"), *file, *line, ("fix", finding.cure, "text")))
    for patch in finding.patches:
        if patch.diff:
            yield Facts((("patch", "tried: " + patch.tried, "good" if patch.helps else "bad"),))
            yield from (Line(each, "code") for each in patch.diff)
    if isinstance(finding.evidence, GradientPath):
        columns = (Column("node"), Column("line", "number"), Column("arrived", "number"), Column("sent", "number"))
        digits = style.digits or 4
        rows = tuple(
            (row.node, str(row.line or ""), number(row.arrived, digits), number(row.sent, digits))
            for row in finding.evidence.norms
        )
        yield Grid(columns, rows, title="Norm of the gradient on its way from the loss")


def headline(finding: Finding) -> str:
    """The finding as a sentence; names are not capitalised."""
    own = finding.subject is not None and finding.message.startswith(finding.subject)
    return finding.message if own else finding.message[:1].upper() + finding.message[1:]


# --- steps of training ----------------------------------------------------------------------------------------


def tables(steps: TrainingSteps, style: Style) -> Iterator[Block]:
    """The steps of a run and its parameters, at most a dozen of each."""
    digits = style.digits or 4
    titles = ("step", "line", "loss", "gradient", "update", "zeros", "NaN", "dead units")
    rows = tuple(
        (
            str(row.number),
            str(row.line or ""),
            known(row.loss, digits),
            known(row.norm, digits),
            known(row.ratio, digits),
            share(row.zeros),
            str(row.spoilt),
            share(row.dead),
        )
        for row in spread(steps.steps)
    )
    note = "update: how far the parameter moved that moved most, beside its norm"
    yield Grid(tuple(Column(title, "number") for title in titles), rows, title="Steps", note=note)
    columns = (Column("parameter", "code"), *(Column(t, "number") for t in ("first", "last", "update", "zeros", "NaN")))
    layers = tuple(
        (
            row.name,
            known(row.first, digits),
            known(row.last, digits),
            known(row.ratio, digits),
            share(row.zeros),
            str(row.spoilt),
        )
        for row in steps.layers[:WIDEST]
    )
    note = "norms of the first and the last gradient; the median of how far it moved beside its norm"
    yield Grid(columns, layers, title="Parameters", note=note)
    if len(steps.layers) > WIDEST:
        yield Line(f"and {len(steps.layers) - WIDEST} more", "note")


def spread(rows: Sequence[T]) -> Sequence[T]:
    """The first row, the last, and some between them."""
    if len(rows) <= WIDEST:
        return rows
    every = (len(rows) - 1) / (WIDEST - 1)
    return [rows[round(at * every)] for at in range(WIDEST)]


def known(value: float, digits: int) -> str:
    """A number, or nothing where it is not known."""
    return "" if value != value else number(value, digits)


def share(value: float) -> str:
    """A share as a percentage."""
    return "" if value != value else f"{100 * value:.3g}%"


# --- for programs ---------------------------------------------------------------------------------------------


def payload(result: Explanation, steps: TrainingSteps | None = None) -> dict[str, Any]:
    """The findings for programs."""
    looked = {} if result.looked is None else {"looked_at": {**result.looked._asdict()}}
    table = {} if steps is None else {"steps": rows_of(steps.steps), "parameters": rows_of(steps.layers)}
    return {
        **opening("why"),
        "file": result.file,
        **({"on": result.on} if result.on else {}),
        "findings": [
            {
                "reason": finding.reason,
                "tensor": finding.subject,
                "line": finding.line,
                "message": finding.message,
                "cure": finding.cure,
                "evidence": jsonable(finding.numbers()),
                **({} if finding.file is None else {"file": finding.file}),
                **patched(finding.patches),
            }
            for finding in result.findings
        ],
        "gradients": dict(result.gradients),
        **table,
        **looked,
    }


def patched(patches: Sequence[Patch]) -> dict[str, Any]:
    """The patch of a finding that was tried."""
    shown = next((patch for patch in patches if patch.diff), None)
    if shown is None:
        return {}
    return {"patch": "\n".join(shown.diff) + "\n", "tried": shown.tried, "helps": shown.helps}


def rows_of(rows: Sequence[Any]) -> list[dict[str, Any]]:
    """Records as rows of plain data."""
    return [jsonable(row._asdict()) for row in rows]


def tidy(result: Explanation) -> Grid:
    """A row per finding, for CSV."""
    columns = tuple(map(Column, ("reason", "tensor", "line", "message", "cure")))
    rows = tuple(
        (
            finding.reason,
            finding.subject or "",
            "" if finding.line is None else str(finding.line),
            headline(finding),
            finding.cure,
        )
        for finding in result.findings
    )
    return Grid(columns, rows)
