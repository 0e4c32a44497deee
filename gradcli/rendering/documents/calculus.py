"""Evaluations, gradients, Hessians and Jacobians as documents.

Every array is listed entry by entry, so that numbers are aligned and never cut; a large one shows its first and last
entries and a summary.
"""

from __future__ import annotations

import math
import sys
from functools import partial

from gradcli.graph.arrays import subscript
from gradcli.rendering.document import Column, Document, Facts, Formula, Grid, Line, Style, document
from gradcli.rendering.value_text import (
    derivative,
    entry,
    inline,
    number,
    point,
    positions,
    shape_of,
    size_of,
    summary,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from gradcli.base.results.calculations import Evaluation, Gradient, Hessian, Jacobian, Value
    from gradcli.rendering.document import Block
    from gradcli.rendering.mathematics import Mathematics

    Row = tuple[str, str, str]

SHORT = 72
MATRIX_LEAVES = 12  # columns of a matrix
MOST_CELLS = MATRIX_LEAVES**2  # that are shown as a matrix at any rate


def evaluation(result: Evaluation, style: Style) -> Document:
    """`eval`: the value, or each output's value."""
    shown = (*values(result.value, style), *exact(result, style))
    return document(*head(result.expression, result.at, style), *shown, equations=partial(equations, result))


def equations(result: Evaluation | Gradient | Hessian | Jacobian, kind: type[Mathematics]) -> Iterator[tuple[str, str]]:
    """The point, each output with its value, and the derivatives there."""
    notation = kind(ranks_of(result.at))
    outputs = result.value if isinstance(result.value, tuple) else (result.value,)
    function = notation.function_name(result.expression)
    yield from ((notation.name(leaf), notation.array(value)) for leaf, value in result.at.items())
    yield from notation.outputs(result.expression, function, outputs)
    for leaf, slope in getattr(result, "gradient", {}).items():
        yield notation.partial(function, [leaf]), notation.array(slope + 0)
    for leaf, orders in (getattr(result, "derivatives", None) or {}).items():
        for order, value in enumerate(orders[1:], 2):
            yield notation.partial(function, [leaf] * order), notation.array(value + 0)
    for leaf, row in getattr(result, "hessian", {}).items():
        for other, block in row.items():
            yield notation.partial(function, [leaf, other]), notation.array(block + 0)
    tables = getattr(result, "jacobian", ())
    for place, table in enumerate(tables if isinstance(tables, tuple) else (tables,), 1):
        for leaf, block in table.items():
            label = function if not isinstance(tables, tuple) else f"{function}{place}"
            rows = block.reshape(-1, max(size_of(result.at.get(leaf, 0.0)), 1)) if len(shape_of(block)) > 2 else block
            yield notation.partial(label, [leaf]), notation.array(rows + 0)


def ranks_of(at: dict[str, Value]) -> dict[str, int]:
    """The ranks of the names of a point."""
    return {name: len(shape_of(value)) for name, value in at.items()}


def exact(result: Evaluation | Gradient, style: Style) -> Iterator[Block]:
    """The exact values of floats that lost their digits, and the operation that lost them."""
    known = result.exact or {}
    rows = [("exact value", exact_text(known["value"], style), "key")] if "value" in known else []
    rows += [(f"exact d/d{leaf}", exact_text(slope, style), "key") for leaf, slope in known.get("gradient", {}).items()]
    if rows:
        lost = [("digits lost in", known["lost_in"], "code")] if known.get("lost_in") else []
        yield Facts((*rows, *lost))


def exact_text(value: Any, style: Style) -> str:
    """An exact value: a number, the digits of a number that no double is close to, or nested lists of them."""
    if isinstance(value, list):
        return f"[{', '.join(exact_text(item, style) for item in value)}]"
    return "unknown" if value is None else value if isinstance(value, str) else number(value, style.digits)


def gradient(result: Gradient, style: Style) -> Document:
    """`grad`: the value, then a row per entry of each leaf; with `--order` its higher derivatives too."""
    blocks = [*head(result.expression, result.at, style, False), *values(result.value, style)]
    blocks.append(leaf_grid(result.gradient, result.at, "gradient", style))
    if any(size_of(slope) and isinstance(entry(slope, 0), complex) for slope in result.gradient.values()):
        blocks.append(Facts((("convention", "dL/d(conj z), as PyTorch has it; that of JAX is the conjugate", "note"),)))
    blocks += exact(result, style)
    if result.derivatives:
        order = max(map(len, result.derivatives.values()))
        columns = (
            Column("leaf", "code"),
            *(Column(derivative_name(n), "number") for n in range(1, order + 1)),
        )
        rows = tuple(
            (leaf, *(derivative(value, style.digits) for value in orders), *[""] * (order - len(orders)))
            for leaf, orders in result.derivatives.items()
        )
        tall = tuple(
            (leaf, str(n), derivative(value, style.digits))
            for leaf, orders in result.derivatives.items()
            for n, value in enumerate(orders, 1)
        )
        narrow = Grid((Column("leaf", "code"), Column("order", "number"), Column("derivative", "number")), tall)
        blocks.append(Grid(columns, rows, title="Derivatives", narrow=narrow))
    return document(*blocks, *unused(result.at, result.gradient, style), equations=partial(equations, result))


def hessian(result: Hessian, style: Style) -> Document:
    """`hessian`: value, gradient, and the matrix of second derivatives where it is small enough to read."""
    blocks = [*head(result.expression, result.at, style, False), *values(result.value, style)]
    blocks.append(leaf_grid(result.gradient, result.at, "gradient", style))
    blocks.append(matrix("Hessian", ("row", "column", "second derivative"), partial(hessian_rows, result), style))
    return document(*blocks, *unused(result.at, result.gradient, style), equations=partial(equations, result))


def jacobian(result: Jacobian, style: Style) -> Document:
    """`jacobian`: the matrix of first derivatives, with a row for each output entry."""
    grid = matrix("Jacobian", ("output", "leaf", "partial"), partial(all_jacobian_rows, result), style)
    shown = (*head(result.expression, result.at, style), *values(result.value, style), grid)
    return document(*shown, equations=partial(equations, result))


def all_jacobian_rows(result: Jacobian, style: Style) -> Iterator[tuple[str, str, str]]:
    several = isinstance(result.jacobian, tuple)
    tables = result.jacobian if isinstance(result.jacobian, tuple) else (result.jacobian,)
    outputs = result.value if isinstance(result.value, tuple) else (result.value,)
    for position, (table, value) in enumerate(zip(tables, outputs, strict=True)):
        yield from jacobian_rows(f"output {position}" if several else "output", shape_of(value), table, style)


def jacobian_rows(
    output: str, shape: tuple[int, ...], table: dict[str, Value], style: Style
) -> Iterator[tuple[str, str, str]]:
    """(output entry, leaf entry, partial) in row-major order.

    `table` has an array of output shape + leaf shape for each leaf. Of a large matrix only the first and last rows are
    listed, with a summary of each array between them.
    """
    height = math.prod(shape)
    widths = {leaf: size_of(array) // max(height, 1) for leaf, array in table.items()}
    columns = [(leaf, at) for leaf, width in widths.items() for at in range(width)]
    for position in positions(height * len(columns), style.entries):
        if position is None:
            yield from (("...", f"{leaf} ...", summary(array, style.digits)) for leaf, array in table.items())
            continue
        row, column = divmod(position, len(columns))
        leaf, at = columns[column]
        slope = entry(table[leaf], row * widths[leaf] + at)
        where = subscript(row, shape), subscript(at, shape_of(table[leaf])[len(shape) :])
        yield (output + where[0], leaf + where[1], derivative(slope, style.digits))


def head(expression: str, at: dict[str, Value], style: Style, with_point: bool = True) -> list[Block]:
    """The expression as it was parsed, and the point if no later grid shows it."""
    lines: list[Block] = [Line(Formula.of(line, ranks_of(at)), "code") for line in expression.splitlines() or [""]]
    if at and with_point:
        lines.append(Facts((("at", point(at, style.digits), "title"),)))
    return lines


def values(value: Value | tuple[Value, ...], style: Style, name: str = "value") -> Iterator[Block]:
    """The value on one line if it is short, else a row for each entry."""
    outputs = value if isinstance(value, tuple) else (value,)
    for position, output in enumerate(outputs):
        label = f"{name} {position}" if isinstance(value, tuple) else name
        text = inline(output, style.digits, min(style.entries, 100))
        if size_of(output) == 1 or len(text) <= SHORT or style.width is None:
            yield Facts(((label, text, "title"),))
        else:
            rows = tuple(entry_rows(label, output, None, style))
            yield Grid((Column("entry", "code"), Column("value", "number")), tuple((r[0], r[2]) for r in rows))


def leaf_grid(gradient: dict[str, Value], at: dict[str, Value], title: str, style: Style) -> Grid:
    """Leaf, its value, its partial: a row for each entry."""
    rows: list[tuple[str, ...]] = []
    for leaf, slope in gradient.items():
        rows += entry_rows(leaf, slope, at.get(leaf), style, derivative)
    return Grid((Column("leaf", "code"), Column("at", "number", 1), Column(title, "number")), tuple(rows))


def entry_rows(
    name: str, array: Value, beside: Value | None, style: Style, text: Callable[..., str] = number
) -> Iterator[tuple[str, str, str]]:
    """(name with index, entry of `beside`, `text` of the entry) for each entry, with a summary row in a large array."""
    shape = shape_of(array)
    known = beside is not None and shape_of(beside) in (shape, ())
    for position in positions(size_of(array), style.entries):
        if position is None:
            yield (f"{name} ...", "", summary(array, style.digits))
            continue
        other = number(entry(beside, position), style.digits) if known else ""
        yield (name + subscript(position, shape), other, text(entry(array, position), style.digits))


def matrix(title: str, names: tuple[str, str, str], rows: Callable[[Style], Iterator[Row]], style: Style) -> Grid:
    """Entries (row, column, number) as a matrix, or one below the other if it is too wide or too large."""
    columns = (Column(names[0], "code"), Column(names[1], "code"), Column(names[2], "number"))
    tall = Grid(columns, tuple(rows(style)), title=title)
    cells = {(row, column): text for row, column, text in rows(style._replace(entries=max(style.entries, MOST_CELLS)))}
    across, down = (list(dict.fromkeys(pair[side] for pair in cells)) for side in (1, 0))
    if len(across) > MATRIX_LEAVES or len(cells) != len(across) * len(down):  # entries are left out
        return tall
    titles = (Column("", "code"), *(Column(label, "number") for label in across))
    return Grid(titles, tuple((row, *(cells[row, label] for label in across)) for row in down), title, narrow=tall)


def hessian_rows(result: Hessian, style: Style) -> Iterator[tuple[str, str, str]]:
    for leaf, row in result.hessian.items():
        yield from jacobian_rows(leaf, shape_of(result.gradient[leaf]), row, style)


def unused(at: dict[str, Value], shown: dict[str, Value], style: Style) -> Iterator[Block]:
    """The rest of the point: names that are held fixed."""
    rest = {name: value for name, value in at.items() if name not in shown}
    if rest:
        yield Facts((("fixed", point(rest, style.digits), "code"),))


def derivative_name(order: int) -> str:
    return "f" + "'" * order if order <= 3 else f"f^({order})"


def tidy(result: Any) -> Grid:
    """Every number of a result, one per row, for CSV: quantity, row (of what), column (by what), value."""
    full = Style(entries=sys.maxsize)
    rows: list[tuple[str, str, str, str]] = []
    for leaf, value in result.at.items():
        rows += (("at", name, "", text) for name, _, text in entry_rows(leaf, value, None, full))
    outputs = result.value if isinstance(result.value, tuple) else (result.value,)
    for position, output in enumerate(outputs):
        label = f"output {position}" if isinstance(result.value, tuple) else ""
        rows += (("value", name, "", text) for name, _, text in entry_rows(label, output, None, full))
    for leaf, slope in getattr(result, "gradient", {}).items():
        rows += (("gradient", name, "", text) for name, _, text in entry_rows(leaf, slope, None, full, derivative))
    known = getattr(result, "exact", None) or {}
    rows += (("exact value", "", "", exact_text(known["value"], full)) for _ in range("value" in known))
    rows += (("exact gradient", leaf, "", exact_text(slope, full)) for leaf, slope in known.get("gradient", {}).items())
    for leaf, orders in (getattr(result, "derivatives", None) or {}).items():
        rows += ((f"derivative {order}", leaf, "", derivative(value)) for order, value in enumerate(orders, 1))
    if hasattr(result, "hessian"):
        rows += (("hessian", *row) for row in hessian_rows(result, full))
    if hasattr(result, "jacobian"):
        rows += (("jacobian", *row) for row in all_jacobian_rows(result, full))
    return Grid((Column("quantity"), Column("row"), Column("column"), Column("value", "number")), tuple(rows))
