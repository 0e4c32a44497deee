"""Traces as documents: the forward pass node by node, then which node sends which cotangent to which.

The listing teaches reverse mode, so each contribution has a row of its own, with the sum that its
receiver holds after it: a node passes its cotangent on only when that sum is complete.
"""

from __future__ import annotations

import sys
from itertools import zip_longest

from gradcli.base.results.calculations import Passes
from gradcli.graph.exact import count_text
from gradcli.rendering.document import Column, Document, Facts, Grid, Line, Style, document
from gradcli.rendering.documents.calculus import entry_rows, head, unused
from gradcli.rendering.graphs.numbers import extent_of
from gradcli.rendering.tabular import is_number
from gradcli.rendering.value_text import derivative, inline, number, shape_of, size_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from gradcli.base.results.calculations import BackwardStep, Contribution, ForwardStep, NaiveTrace, Trace, Value
    from gradcli.rendering.document import Block

CELL_ENTRIES, NARROW_ENTRIES, WIDE = 9, 4, 110  # of an array in a cell; on a terminal of less than so many columns
TERMINAL_DIGITS = 6  # of numbers on a terminal, unless --digits says otherwise
FORWARD = "Forward: each node comes after the nodes that it reads"
BACKWARD = "Backward: each node comes after all nodes that read it"
NAIVE = "Why the order matters: beside it the depth-first pass"


def trace(result: Trace, style: Style, whole: bool = False, full: bool = False) -> Document:
    """`trace`: both passes, the gradient, and with `--why-topo` the naive order beside the right one.

    Unless `whole`, inserted nodes are left out; unless `full`, an array of many entries is shown by its shape
    and norm. On a terminal, numbers are rounded.
    """
    few = CELL_ENTRIES if style.width is None or style.width >= WIDE else NARROW_ENTRIES
    style = style._replace(entries=sys.maxsize if full else few)
    passes = Passes(result.forward, result.backward, result.naive)
    passes = passes if whole or result.written is None else result.written
    rounded = style.digits is None and style.width is not None
    style = style._replace(digits=TERMINAL_DIGITS) if rounded else style
    blocks: list[Block] = [*head(result.expression, {}, style)]
    blocks.append(Facts((("value", cell(result.value, style), "title"),)))
    blocks += [forward(passes, style), backward(passes, style)]
    blocks += [Line(text, "note") for text in notes(result, passes, style, rounded)]
    if passes.naive is not None:
        blocks += naive(result, passes, passes.naive, style)
    else:
        rows = [row for leaf, value in result.gradient.items() for row in leaf_rows(leaf, value, result, style)]
        columns = (Column("leaf", "code"), Column("at", "number", 1), Column("gradient", "number"))
        blocks.append(Grid(columns, tuple(rows), title="Gradient"))
    return document(*blocks, *unused(result.at, result.gradient, style))


def leaf_rows(leaf: str, gradient: Value, result: Trace, style: Style) -> Iterator[tuple[str, str, str]]:
    """A row for each entry of a leaf, one for a leaf of many entries."""
    if size_of(gradient) > style.entries:
        yield leaf, cell(result.at.get(leaf, ""), style), cell(gradient, style)
    else:
        yield from entry_rows(leaf, gradient, result.at.get(leaf), style, derivative)


def cell(value: Any, style: Style) -> str:
    """A number, the entries of an array while they are few, else its shape and its norm: `3x4, norm 2.5`."""
    if size_of(value) <= style.entries or getattr(value, "dtype", None) is None or value.dtype.kind == "c":
        return inline(value, style.digits, style.entries)
    extent = extent_of(value)
    phrase = f", {extent.rest} not finite" if extent.rest else ""
    return f"{'x'.join(map(str, extent.shape))}, norm {number(extent.norm, style.digits or TERMINAL_DIGITS)}{phrase}"


def notes(result: Trace, passes: Passes, style: Style, rounded: bool) -> Iterator[str]:
    """What the listing omits, and how to show it."""
    left_out = len(result.forward) - len(passes.forward)
    if left_out:
        several = "inserted steps are" if left_out > 1 else "inserted step is"
        yield f"{left_out} {several} left out: --all shows {'them' if left_out > 1 else 'it'}"
    if any(step.iteration is not None for step in result.forward):
        yield "Of a long loop the first and last iteration are shown, the others as one step: add one by --iteration"
    if any(size_of(value) > style.entries for value in numbers(result, passes)):
        yield f"Arrays of more than {style.entries} entries are shown by shape and norm: --full shows their entries"
    if any(sent.partial is None and not sent.formula for step in passes.backward for sent in step.contributions):
        yield "Partials of operations that mix entries are not numbers: --symbolic shows formulas, such as A.T @ ct"
    if rounded and not all(same_when_rounded(value, style) for value in numbers(result, passes)):
        yield f"Numbers are rounded to {TERMINAL_DIGITS} digits: --digits 17 shows all of them"


def numbers(result: Trace, passes: Passes) -> Iterator[Value]:
    """The numbers of a listing."""
    yield from (step.value for step in passes.forward)
    yield from (step.cotangent for step in passes.backward)
    for step in passes.backward:
        for sent in step.contributions:
            yield from (sent.value, sent.accumulated)
    yield from result.gradient.values()


def same_when_rounded(value: Value, style: Style) -> bool:
    """Whether rounding for a terminal changes no digit of a number, or of the entries that are listed."""
    listed: Any = value
    entries = [listed] if not shape_of(value) else listed.flat if size_of(value) <= style.entries else ()
    return all(entry != entry or complex(entry) == complex(number(entry, TERMINAL_DIGITS)) for entry in entries)


def forward(result: Passes, style: Style) -> Grid:
    """One row per node."""
    iterations = any(step.iteration is not None for step in result.forward)
    columns = (
        Column("step", "number"),
        *((Column("iteration", "number"),) if iterations else ()),
        Column("operation"),
        Column("reads"),
        Column("type", "text", 3),
        Column("value", "number"),
        Column("expression", "code"),
        Column("source", "text", 4),
    )
    rows = tuple(
        (
            str(step.index),
            *((count_text(step.iteration) if step.iteration else "",) if iterations else ()),
            operation(step),
            ", ".join(map(str, step.inputs)),
            step.type,
            cell(step.value, style),
            step.text,
            f"{step.span.line}:{step.span.column}" if step.span else "",
        )
        for step in result.forward
    )
    return Grid(columns, rows, title=FORWARD)


def operation(step: ForwardStep) -> str:
    """The operation with its static parameters: `sum(axis=-1)`; a leaf or constant is shown by its text."""
    if not step.inputs:
        return step.primitive
    phrase = ", ".join(f"{name}={parameter(value)}" for name, value in step.params.items() if value is not None)
    return f"{step.primitive}({phrase})" if phrase else step.primitive


def parameter(value: object) -> str:
    """A static parameter: `-1` for one axis, `(0, 1)` for several."""
    return str(value[0]) if isinstance(value, tuple) and len(value) == 1 else str(value)


def backward(result: Passes, style: Style) -> Grid:
    """One row per contribution; the node and its cotangent stand on the first row of each.

    On a narrow terminal, a node with its cotangent has a row of its own, followed by its contributions. The local
    partials are the last column to be dropped.
    """
    columns = (
        Column("node"),
        Column("cotangent", "number"),
        Column("sends to"),
        Column("local partial", "number"),
        Column("contribution", "number"),
        Column("receiver holds", "number"),
        Column("so far", "text", 1),
    )
    rows = tuple(backward_rows(result, style))
    tall: list[tuple[str, ...]] = []
    for node, cotangent, receiver, partial, contribution, held, part in rows:
        if node:
            tall.append((node, "", cotangent, "", ""))
        if receiver:
            tall.append((f"  to {receiver}", partial, contribution, held, part))
    narrow = (
        Column("node"),
        Column("local partial", "number", 1),
        Column("cotangent", "number"),
        Column("receiver holds", "number", 2),
        Column("so far", "text", 3),
    )
    return Grid(columns, rows, title=BACKWARD, narrow=Grid(narrow, tuple(tall)))


def backward_rows(result: Passes, style: Style) -> Iterator[tuple[str, ...]]:
    names = {step.index: short(step) for step in result.forward}
    total: dict[int, int] = {}
    for step in result.backward:
        for sent in step.contributions:
            total[sent.to] = total.get(sent.to, 0) + 1
    count: dict[int, int] = {}
    for step in result.backward:
        node, cotangent = named(step, names), cell(step.cotangent, style)
        if not step.contributions:
            yield (node, cotangent, "", "", "", "", "")
        for sent in step.contributions:
            count[sent.to] = count.get(sent.to, 0) + 1
            yield (
                node,
                cotangent,
                f"{sent.to} {names.get(sent.to, '')}".rstrip(),
                partial_text(sent, style),
                cell(sent.value, style),
                cell(sent.accumulated, style),
                f"{count[sent.to]} of {total[sent.to]}" if total[sent.to] > 1 else "all",
            )
            node = cotangent = ""


def partial_text(sent: Contribution, style: Style) -> str:
    """The local partial of a contribution, with its formula; `summed` if its products with the cotangent are added."""
    if sent.partial is None:
        return sent.formula
    text = cell(sent.partial, style) + (", summed" if sent.summed else "")
    known = not sent.formula or is_number(sent.formula)
    return text if known else f"{sent.formula} = {text}"


def short(step: ForwardStep) -> str:
    """The name of a node in other rows: that of a leaf, else its operation."""
    return step.text if not step.inputs and len(step.text) <= 12 else step.primitive


def passed_on(step: BackwardStep, names: dict[int, str], style: Style) -> tuple[str, str]:
    """A node and the cotangent that it passes on."""
    return named(step, names), cell(step.cotangent, style)


def named(step: BackwardStep, names: dict[int, str]) -> str:
    return f"{step.index} {names.get(step.index, step.primitive)}"


def naive(whole: Trace, result: Passes, wrong: NaiveTrace, style: Style) -> Iterator[Block]:
    """The two orders side by side, the first step where they differ, and the two gradients."""
    names = {step.index: short(step) for step in result.forward}
    complete = {step.index: step.cotangent for step in result.backward}
    rows = tuple(
        (
            str(position),
            *(passed_on(right, names, style) if right else ("", "")),
            *(passed_on(left, names, style) if left else ("", "")),
        )
        for position, (right, left) in enumerate(zip_longest(result.backward, wrong.steps), 1)
    )
    columns = (
        Column("step", "number"),
        Column("topological"),
        Column("cotangent", "number"),
        Column("depth first"),
        Column("cotangent it had", "number"),
    )
    yield Grid(columns, rows, title=NAIVE)
    if wrong.parts_at is None:
        yield Line("Here both orders agree: no node passes its cotangent on before it is complete.", "note")
    else:
        early = wrong.steps[wrong.parts_at]
        node, had = passed_on(early, names, style)
        due = cell(complete.get(early.index, early.cotangent), style)
        yield Line(f"At step {wrong.parts_at + 1}, {node} passes on {had}. Complete, it is {due}.", "note")
    both = tuple(
        (
            leaf,
            cell(value, style),
            cell(wrong.gradient.get(leaf, 0.0), style),
        )
        for leaf, value in whole.gradient.items()
    )
    titles = (Column("leaf", "code"), Column("gradient", "number"), Column("depth first gives", "number"))
    yield Grid(titles, both, title="Gradient")


def tidy(result: Trace) -> Grid:
    """Every step of both passes, one per row, for CSV."""
    full = sys.maxsize
    rows: list[tuple[str, ...]] = [
        ("forward", str(step.index), step.primitive, " ".join(map(str, step.inputs)), step.type, "")
        + (inline(step.value, None, full), "", step.text)
        for step in result.forward
    ]
    rows += (
        ("backward", str(step.index), step.primitive, str(sent.to), "")
        + ("" if sent.partial is None else inline(sent.partial, None, full),)
        + (inline(sent.value, None, full), inline(sent.accumulated, None, full), "")
        for step in result.backward
        for sent in step.contributions
    )
    rows += (
        ("gradient", "", "", leaf, "", "", inline(value, None, full), "", "") for leaf, value in result.gradient.items()
    )
    titles = ("pass", "step", "operation", "nodes", "type", "partial", "value", "accumulated", "text")
    return Grid(tuple(map(Column, titles)), tuple(rows))
