"""Documents for `trace --plan`: the order of work, the memory, and the effect of each pass of the planner."""

from __future__ import annotations

from itertools import groupby

from gradcli.base.results.plan_reports import PlanLoop
from gradcli.rendering.document import Column, Document, Facts, Grid, Line, Style, document
from gradcli.rendering.documents.calculus import head

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gradcli.base.results.plan_reports import PlanReport, PlanStep

REPEATED = 3  # times in a row that a name is written out
MOST_OPERANDS = 20  # in a line
ORDER = "Order of work"
MEMORY = "Memory while it runs"
PASSES = "Passes"
BYTES = "Bytes are those of all rows. Inside a loop a result that is read nowhere else takes those of a block."


def report(result: PlanReport, style: Style) -> Document:
    """`trace --plan`."""
    facts = [
        ("runs as", result.runs, "title"),
        ("reason", result.reason, "text"),
        ("a single call", result.once, "text"),
        ("threads", str(result.threads), "text"),
    ]
    blocks = [*head(result.expression, {}, style), Facts(tuple(facts))]
    grids = [order(result)] if result.order else []
    grids.append(memory(result))
    if result.passes:
        rows = tuple((entry.name, entry.what) for entry in result.passes)
        grids.append(Grid((Column("pass"), Column("what it did")), rows, title=PASSES))
    looped = any(isinstance(row, PlanLoop) for row in result.order)
    return document(*blocks, *grids, *([Line(BYTES, "note")] if looped else []))


def order(result: PlanReport) -> Grid:
    """A row per step and per loop."""
    columns = (
        Column("step"),
        Column("operation"),
        Column("reads", "code", 2),
        Column("result", "text"),
        Column("operations", "number", 3),
        Column("bytes", "number", 1),
        Column("memory"),
    )
    return Grid(columns, tuple(_order_rows(result)), title=ORDER)


def _order_rows(result: PlanReport) -> Iterator[tuple[str, ...]]:
    for row in result.order:
        if isinstance(row, PlanLoop):
            threads = "1 thread" if row.threads == 1 else f"{row.threads} threads"
            yield (row.place, f"loop in blocks of {row.block:,}", "", f"{row.count:,} rows", "", "", threads)
            for step in row.steps:
                yield _step(step, "  ")
        else:
            yield _step(row, "")


def _step(step: PlanStep, indent: str) -> tuple[str, ...]:
    count = "" if step.operations is None else f"{step.operations:,}"
    return (
        indent + step.place,
        step.operation,
        _operands(step.reads),
        step.type,
        count,
        f"{step.nbytes:,}" if step.nbytes else "",
        f"that of {step.memory.removeprefix('again ')}" if step.memory.startswith("again ") else step.memory,
    )


def _operands(names: Sequence[str]) -> str:
    """The operands of a step on one line: repeated names are counted, and of very many only the first are shown."""
    runs = [(name, len(list(same))) for name, same in groupby(names)]
    shown = [f"{name} ({count:,} times)" if count > REPEATED else ", ".join([name] * count) for name, count in runs]
    more = [f"... ({len(names):,} in all)"] if len(shown) > MOST_OPERANDS else []
    return ", ".join(shown[: MOST_OPERANDS - len(more)] + more)


def memory(result: PlanReport) -> Grid:
    """Bytes by purpose, and their sum."""
    held = result.memory
    rows = (
        ("inputs", f"{held.inputs:,}"),
        ("results", f"{held.results:,}"),
        ("constants", f"{held.constants:,}"),
        ("temporaries", f"{held.temporaries:,}"),
        ("peak", f"{held.peak():,}"),
    )
    return Grid((Column("what"), Column("bytes", "number")), rows, title=MEMORY)


def tidy(result: PlanReport) -> Grid:
    """The order of work, a row per step, for CSV."""
    titles = ("loop", "block", "threads", "step", "operation", "reads", "result", "operations", "bytes", "memory")
    rows: list[tuple[str, ...]] = []
    for row in result.order:
        steps, lead = (row.steps, loop_of(row)) if isinstance(row, PlanLoop) else ((row,), ("", "", ""))
        for step in steps:
            count = "" if step.operations is None else str(step.operations)
            rows.append(
                (
                    *lead,
                    step.place,
                    step.operation,
                    " ".join(step.reads),
                    step.type,
                    count,
                    str(step.nbytes),
                    step.memory,
                )
            )
    return Grid(tuple(map(Column, titles)), tuple(rows))


def loop_of(row: PlanLoop) -> tuple[str, str, str]:
    """The length of a loop, of its blocks, and its threads."""
    return str(row.count), str(row.block), str(row.threads)
