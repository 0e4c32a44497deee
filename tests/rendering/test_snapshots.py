"""What people see, as files that a person has read: every kind of result in every format, tables at three widths.

After a change on purpose: `UPDATE_SNAPSHOTS=1 pytest tests/rendering/test_snapshots.py`, then read the difference.
"""

from __future__ import annotations

import io
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from gradcli.base.codes import CODES
from gradcli.base.diagnostics import Diagnostic, Span
from gradcli.interfaces.command_parts.result_views import View, calculation
from gradcli.interfaces.commands.trace import planned_view
from gradcli.rendering import diagnostic_text, machine, plain, tables, tabular
from gradcli.rendering.document import Document, Style
from gradcli.rendering.documents import catalogue, trace_tables
from tests.support import handmade
from tests.support.report_views import report_view
from tests.support.rows import all_rows

FOLDER = Path(__file__).parents[1] / "snapshots" / "rendering"


def traced(result: Any) -> View:
    return View(
        document=lambda style: trace_tables.trace(result, style),
        payload=lambda: machine.trace("trace", result),
        lines=lambda: machine.trace_lines("trace", result),
        tidy=lambda: trace_tables.tidy(result),
    )


VIEWS: dict[str, Callable[[], View]] = {
    "eval": lambda: calculation("eval", handmade.evaluation),
    "eval-several": lambda: calculation("eval", handmade.several),
    "grad": lambda: calculation("grad", handmade.gradient),
    "grad-order": lambda: calculation("grad", handmade.higher),
    "grad-arrays": lambda: calculation("grad", handmade.arrays),
    "hessian": lambda: calculation("hessian", handmade.hessian),
    "hessian-vector": lambda: calculation("hessian", handmade.vector_hessian),
    "jacobian": lambda: calculation("jacobian", handmade.jacobian),
    "jacobian-several": lambda: calculation("jacobian", handmade.jacobians),
    "trace": lambda: traced(handmade.trace),
    "trace-why-topo": lambda: traced(handmade.naive),
    "trace-plan": lambda: planned_view(handmade.plan),
    "check": lambda: report_view([handmade.good], "all"),
    "check-failing": lambda: report_view([handmade.good, handmade.bad], "failing"),
    "explain": lambda: View(
        document=lambda style: catalogue.explanation("GC102", CODES["GC102"], style),
        payload=lambda: {**machine.opening("explain"), **catalogue.explanation_fields("GC102", CODES["GC102"])},
        tidy=lambda: catalogue.tidy_codes({"GC102": CODES["GC102"]}),
    ),
}


def on_terminal(document: Document, cells: int, colour: bool = False) -> str:
    """What a terminal of so many cells shows."""
    console = Console(
        file=io.StringIO(),
        width=cells,
        color_system="standard" if colour else None,
        force_terminal=colour,
        markup=False,
        highlight=False,
        emoji=False,
        legacy_windows=False,
    )
    for part in tables.render(document, cells):
        console.print(part)
    shown: str = console.file.getvalue()  # type: ignore[attr-defined]
    return "\n".join(line.rstrip() for line in shown.splitlines())


def every_format(view: View) -> str:
    parts = {
        f"table, {cells} cells": on_terminal(view.document(Style(None, 40, cells)), cells) for cells in (120, 80, 40)
    }
    parts["table, 3 digits"] = on_terminal(view.document(Style(3, 40, 80)), 80)
    parts["plain"] = plain.render(view.document(Style()))
    parts["json"] = machine.text(view.payload())
    parts["jsonl"] = "\n".join(map(machine.text, view.records()))
    parts["csv"] = tabular.csv(view.tidy())
    parts["markdown"] = tabular.markdown(view.document(Style()))
    parts["latex"] = tabular.latex(view.document(Style()))
    return "\n".join(f"== {name} ==\n{text}\n" for name, text in parts.items())


def compare(name: str, text: str) -> None:
    """Compare a text with its snapshot, or write that where UPDATE_SNAPSHOTS is set."""
    path = FOLDER / f"{name}.txt"
    if os.environ.get("UPDATE_SNAPSHOTS"):
        path.write_text(text, encoding="utf-8", newline="\n")
    assert path.read_text(encoding="utf-8") == text


@pytest.mark.parametrize("name", VIEWS)
def test_result(name: str) -> None:
    compare(name, every_format(VIEWS[name]()))


@all_rows("cells", [40, 80, 120])
@all_rows("name", VIEWS)
def test_tables_fit_the_terminal(name: str, cells: int) -> None:
    shown = on_terminal(VIEWS[name]().document(Style(None, 40, cells)), cells)
    assert max(map(len, shown.splitlines())) <= cells
    assert "…" not in shown


def test_numbers_are_never_cut() -> None:
    for cells in (24, 30, 50, 80):
        shown = on_terminal(calculation("hessian", handmade.hessian).document(Style(None, 40, cells)), cells)
        for digits in ("-1.604425538604203", "3.1275825618903728", "0.479425538604203"):
            assert digits in shown


def test_colours() -> None:
    compare("colours", on_terminal(VIEWS["check-failing"]().document(Style(None, 40, 80)), 80, colour=True))


def test_diagnostics() -> None:
    source = handmade.Text(
        "a = [1, 2, 3]\nb = [1, 2, 3, 4]\n\ny = a + b\n\tα界 + \x1b[31m b\n" + "x + " * 60 + "x y", "loss.grad"
    )
    found = [
        Diagnostic(
            "GC301",
            "cannot add f64[3] and f64[4]",
            Span(4, 7, 4, 8),
            ((Span(4, 5, 4, 6), "f64[3]"), (Span(4, 9, 4, 10), "f64[4]")),
            "slice one of them, e.g. b[0:3]",
            source=source,
        ),
        Diagnostic("GC301", "both lines", Span(4, 5, 4, 10), ((Span(1, 1, 1, 2), "three entries"),), source=source),
        Diagnostic("GC103", "control character \x1b", Span(5, 7, 5, 8), ((Span(5, 2, 5, 4), "wide"),), source=source),
        Diagnostic("GC112", "unexpected name", Span(6, 243, 6, 244), source=source),
        Diagnostic("GC101", "to the end of the text", Span(1, 10, 4, 10), source=source),
        Diagnostic("GC116", "the text ends too early", Span(6, 244, 6, 244), source=source),
        Diagnostic("GC601", "no such file", help="check the path\nor the folder", severity="warning"),
        Diagnostic("GC211", "the script does not use `z`", severity="note"),
    ]
    compare("diagnostics", f"{diagnostic_text.render(found)}\n\n{diagnostic_text.render(found, colour=True)}\n")
    many = [Diagnostic("GC112", f"problem {number}") for number in range(30)]
    assert diagnostic_text.render(many).endswith("problem 19\nhelp: gradcli explain GC112\n\n... and 10 more")
