"""The graphs of a run as a document: operations in forward order, each backward, and what was accumulated.

A loop builds the same graph many times, so of many operations and backwards only the first and the last are shown.
"""

from __future__ import annotations

import sys

from gradcli.base.results.graph_vertices import Extent
from gradcli.rendering.document import Column, Document, Grid, Line, Style, document
from gradcli.rendering.graphs.numbers import extent_of, extent_text, norm_of
from gradcli.rendering.machine import opening
from gradcli.rendering.value_text import inline, jsonable, number, positions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from gradcli.base.results.graph_vertices import Vertex
    from gradcli.recording.runs.run_graphs import Backward, Graphs
    from gradcli.rendering.document import Block

MOST_ROWS, MOST_BACKWARDS = 60, 4
ENTRIES, WIDEST = 4, 26  # of an array that is shown entry by entry: how many, and how many characters


def graphs(result: Graphs, style: Style) -> Document:
    """`run --trace`: the forward pass, then every backward."""
    if not result.forward:
        return document(Line("No operation on a tensor that requires grad: no graph was built.", "note"))
    blocks: list[Block] = [forward(result, style)]
    names = {step.index: called(step) for step in result.forward}
    shown = len(result.backwards)
    for at in positions(shown, MOST_BACKWARDS):
        if at is None:
            left_out = shown - MOST_BACKWARDS + 1
            blocks.append(Line(f"... {left_out} more backwards: --backward N shows one, --last the last ...", "note"))
        else:
            blocks += backward(result.backwards[at], result.ran, names, style)
    if not shown:
        blocks.append(Line("No backward ran.", "note"))
    return document(*blocks)


def called(step: Vertex) -> str:
    """The name of a value in other rows: that of a leaf, else the number and operation of its node."""
    return step.label if step.role == "leaf" and step.label else f"{step.index} {node_of(step)}"


def node_of(step: Vertex) -> str:
    """The node that an operation created; `leaf` for a leaf."""
    return "leaf" if step.role == "leaf" else step.torch


def forward(result: Graphs, style: Style) -> Grid:
    """One row for each operation that created a node, and for each leaf that it read."""
    columns = (
        Column("step", "number"),
        Column("node"),
        Column("reads"),
        Column("type", "text", 3),
        Column("value", "number", 1),
        Column("name", "code"),
        Column("line", "number"),
        Column("source", "code", 2),
    )
    rows = [
        (
            str(step.index),
            node_of(step),
            ", ".join(map(str, step.inputs)),
            step.type,
            array_text(step.value, None, style),
            step.label,
            place(step.line, step.file),
            step.text,
        )
        for step in result.forward
    ]
    on = f", on {result.on}" if result.on else ""
    return Grid(columns, tuple(first_and_last(rows)), title=f"Forward: the operations that left a node{on}")


def backward(sweep: Backward, count: int, names: dict[int, str], style: Style) -> Iterator[Block]:
    """The nodes of one backward in the order in which they ran, a row per gradient that was sent."""
    columns = (
        Column("node"),
        Column("line", "number", 1),
        Column("arrived", "number"),
        Column("sends to"),
        Column("gradient", "number"),
    )
    rows: list[tuple[str, ...]] = []
    for step in sweep.ran:
        node = names.get(step.number, step.node) if step.number is not None else step.node
        first = (node, place(step.line, ""), array_text(step.arrived, step.norm, style))
        for sent in step.sent or (None,):
            to = names.get(sent.to, "a node of a backward") if sent and sent.to is not None else "-"
            rows.append((*first, to, array_text(sent.value, sent.norm, style) if sent else "nothing"))
            first = ("", "", "")
    number_of = f" {sweep.number} of {count}" if count > 1 else ""
    phrase = ", ".join(
        word for word, on in (("retain_graph", sweep.retain and not sweep.create), ("create_graph", sweep.create)) if on
    )
    where = f", line {sweep.line}: {sweep.text}" if sweep.line else ""
    yield Grid(
        columns, tuple(first_and_last(rows)), title=f"Backward{number_of}{where}{f' ({phrase})' if phrase else ''}"
    )
    if sweep.added:
        added = tuple(
            (
                leaf.name or f"step {leaf.number}",
                array_text(leaf.value, leaf.norm, style),
                array_text(leaf.total, norm_of(leaf.total), style),
                str(leaf.times),
            )
            for leaf in sweep.added
        )
        titles = (
            Column("leaf", "code"),
            Column("added", "number"),
            Column(".grad after", "number"),
            Column("backwards added up", "number", 1),
        )
        yield Grid(titles, added, title="Added into .grad")


def first_and_last(rows: Sequence[tuple[str, ...]]) -> Iterator[tuple[str, ...]]:
    """All rows, or the first and the last of many."""
    for at in positions(len(rows), MOST_ROWS):
        if at is None:
            blank = [""] * (len(rows[0]) - 2)
            yield ("...", f"{len(rows) - MOST_ROWS + 1} more", *blank)
        else:
            yield rows[at]


def array_text(value: Any, norm: float | None, style: Style) -> str:
    """A small array in full, a large gradient by its norm, a large value by its smallest and largest entry."""
    if value is not None and not isinstance(value, Extent) and value.size <= ENTRIES:
        digits = style.digits or (6 if value.size <= 2 else 3)
        text = inline(value, digits, ENTRIES) if value.ndim else number(value, digits)
        if len(text) <= WIDEST:
            return text
    if norm is not None:
        return f"norm {number(float(norm), style.digits or 4)}"
    return "" if value is None else span_of(value, style.digits or 3)


def span_of(value: Any, digits: int) -> str:
    """The smallest and the largest entry of an array, and its shape."""
    extent = extent_of(value)
    return extent_text(extent, digits).partition(" " if extent.low == extent.high else ", ")[2]


def whole(value: Any) -> Any:
    """A value for programs; None for an array that was not kept."""
    return None if isinstance(value, Extent) else value


def place(line: int | None, file: str) -> str:
    """A line, with its file where that is another one."""
    return "" if line is None else f"{file}:{line}" if file else str(line)


def payload(result: Graphs) -> dict[str, Any]:
    """The graphs for programs, complete."""
    return {
        **opening("run"),
        "file": result.file,
        **({"on": result.on} if result.on else {}),
        "forward": [
            {
                "index": step.index,
                "node": node_of(step),
                "reads": list(step.inputs),
                "type": step.type,
                "value": jsonable(whole(step.value)),
                "name": step.label or None,
                "line": step.line,
                "file": step.file or None,
                "text": step.text,
            }
            for step in result.forward
        ],
        "backwards": [
            {
                "number": sweep.number,
                "line": sweep.line,
                "retain_graph": sweep.retain,
                "create_graph": sweep.create,
                "steps": [
                    {
                        "index": step.number,
                        "node": step.node,
                        "line": step.line,
                        "cotangent": jsonable(whole(step.arrived)),
                        "norm": jsonable(step.norm),
                        "contributions": [
                            {"to": sent.to, "value": jsonable(whole(sent.value)), "norm": jsonable(sent.norm)}
                            for sent in step.sent
                        ],
                    }
                    for step in sweep.ran
                ],
                "added": [
                    {
                        "index": leaf.number,
                        "name": leaf.name or None,
                        "value": jsonable(whole(leaf.value)),
                        "norm": jsonable(leaf.norm),
                        "count": leaf.times,
                        "grad": jsonable(whole(leaf.total)),
                        "grad_norm": jsonable(norm_of(leaf.total)),
                    }
                    for leaf in sweep.added
                ],
            }
            for sweep in result.backwards
        ],
    }


def tidy(result: Graphs) -> Grid:
    """Every row of both passes, for CSV."""
    rows: list[tuple[str, ...]] = []
    for step in result.forward:
        value = "" if whole(step.value) is None else inline(step.value, None, sys.maxsize)
        rows.append(
            ("forward", str(step.index), node_of(step), " ".join(map(str, step.inputs)), value, place(step.line, ""))
        )
    for sweep in result.backwards:
        for ran in sweep.ran:
            for sent in ran.sent:
                value = "" if whole(sent.value) is None else inline(sent.value, None, sys.maxsize)
                index = "" if ran.number is None else str(ran.number)
                rows.append((f"backward {sweep.number}", index, ran.node, str(sent.to), value, place(ran.line, "")))
    return Grid(tuple(map(Column, ("pass", "step", "node", "nodes", "value", "line"))), tuple(rows))
