"""Documents as rich tables, fitted to the width of a terminal.

No number is ever cut. A grid that is too wide first loses its optional columns, then its text is wrapped at spaces,
then its narrow form is used, and finally each row becomes a card. User text is passed to rich as `Text` only, so that
it cannot contain markup.
"""

from __future__ import annotations

from rich.box import Box
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from gradcli.rendering.document import Facts, Grid, Line, separate
from gradcli.rendering.documents.verdicts import DOUBTFUL, GOOD
from gradcli.rendering.safe_text import visible, width

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.console import RenderableType

    from gradcli.rendering.document import Column, Document

GAP = 2  # cells between two columns
INDENT = 1
COMFORT, FOLD = 28, 16  # to how many cells text is wrapped before columns are given up, and after that
DISPENSABLE = 3  # columns with this `drop` go before `20x30, norm 23.3` is broken at its spaces

FRAME = Box("    \n    \n ── \n    \n    \n    \n    \n    \n")
ROLES = {
    "title": "bold",
    "code": "bold cyan",
    "note": "dim",
    "good": "green",
    "bad": "bold red",
    "doubt": "bold yellow",
    "key": "bold",
    "text": "",
}


def render(document: Document, cells: int) -> list[RenderableType]:
    """The renderables to print, in order, for a terminal of this width."""
    parts: list[RenderableType] = []
    previous: object = None
    for block in document.blocks:
        if separate(previous, block):
            parts.append(Text(""))
        if isinstance(block, Line):
            parts += [indented(styled(line, block.role)) for line in block.text.splitlines()]
        elif isinstance(block, Facts):
            parts += facts(block, cells)
        else:
            parts += grid(block, cells)
        previous = block
    return parts


def styled(text: str, role: str) -> Text:
    return Text(visible(text), style=ROLES.get(role, ""), overflow="fold")


def indented(text: Text) -> Padding:
    return Padding(text, (0, 0, 0, INDENT), expand=False)


def facts(block: Facts, cells: int) -> Iterator[RenderableType]:
    """Names and values side by side, or below each other if a value would be broken."""
    names = max(width(visible(name)) for name, _, _ in block.rows)
    longest = max((width(word) for _, value, _ in block.rows for word in visible(value).split()), default=0)
    if INDENT + names + GAP + longest > cells >= longest:
        inset = min(INDENT + GAP, cells - longest)
        for name, value, role in block.rows:
            yield indented(styled(name, "note"))
            yield Padding(styled(value, role), (0, 0, 0, inset), expand=False)
        return
    table = Table(box=None, show_header=False, padding=(0, GAP, 0, 0), pad_edge=False)
    table.add_column(no_wrap=True, style="dim")
    table.add_column(overflow="fold")
    for name, value, role in block.rows:
        table.add_row(Text(visible(name)), styled(value, role))
    yield Padding(table, (0, 0, 0, INDENT), expand=False)


def grid(block: Grid, cells: int) -> Iterator[RenderableType]:
    """The grid in the first of its forms that fits."""
    if block.title:
        yield indented(Text(block.title, style="bold"))
    if block.note:
        yield indented(Text(block.note, style="dim"))
    room = cells - INDENT
    for form in (block, *([block.narrow] if block.narrow else [])):
        passes = ((COMFORT, True, DISPENSABLE), (COMFORT, False, 1), (FOLD, False, 1))
        for least, whole, kept in (
            (least, whole, kept) for least, whole, drop in passes for kept in fewer(form.columns, drop)
        ):
            rows = [tuple(visible(row[at]) for at in kept) for row in form.rows]
            columns = [form.columns[at] for at in kept]
            sizes = fitted(columns, rows, room, least if form.narrow is None else None, whole)
            if sizes is not None:
                yield Padding(table(columns, rows, sizes), (0, 0, 0, INDENT), expand=False)
                return
    yield from cards(block.narrow or block, cells)


def fewer(columns: Sequence[Column], lowest: int) -> Iterator[list[int]]:
    """All columns, then without the most dispensable one, and so on, down to a `drop`."""
    kept = list(range(len(columns)))
    yield kept
    for at in sorted(kept, key=lambda at: -columns[at].drop):
        if columns[at].drop >= lowest:
            kept = [other for other in kept if other != at]
            yield kept


def fitted(
    columns: Sequence[Column], rows: Sequence[tuple[str, ...]], room: int, least: int | None, whole: bool
) -> list[int] | None:
    """The width of each column, or None if the grid does not fit into `room` cells.

    Text and code may be wrapped to `least` cells, inside a word if it is longer than `COMFORT`; None: nothing may be
    wrapped. Numbers may be wrapped at spaces, unless they have to stay whole.
    """
    texts = [[column.title, *(row[at] for row in rows)] for at, column in enumerate(columns)]
    room -= GAP * (len(columns) - 1)
    natural = [max(map(width, cells)) for cells in texts]
    if sum(natural) <= room:
        return natural
    if least is None:
        return None
    sizes = [
        size if whole and column.kind == "number" else min(size, smallest(column, cells, least))
        for column, cells, size in zip(columns, texts, natural, strict=True)
    ]
    spare = room - sum(sizes)
    if spare < 0:
        return None
    while spare:  # the column that lacks least gets what it needs, or its fair share
        lacking = [at for at in range(len(sizes)) if sizes[at] < natural[at]]
        at = min(lacking, key=lambda at: natural[at] - sizes[at])
        added = min(natural[at] - sizes[at], max(1, spare // len(lacking)))
        sizes[at] += added
        spare -= added
    return sizes


def smallest(column: Column, cells: Sequence[str], least: int) -> int:
    """The width below which a column would break a number or a word, or become hard to read."""
    longest = max((width(word) for cell in cells for word in cell.split()), default=0)
    if column.kind in ("number", "digits", "verdict"):
        return longest
    widest = max((width(cell) for cell in cells[1:]), default=0)
    return max(min(least, widest), min(longest, COMFORT), *map(width, column.title.split() or [""]))


def table(columns: Sequence[Column], rows: Sequence[tuple[str, ...]], sizes: Sequence[int]) -> Table:
    """A rich table with exactly these widths."""
    result = Table(box=FRAME, show_edge=False, padding=(0, 1, 0, 0), pad_edge=False, header_style="dim")
    for column, size in zip(columns, sizes, strict=True):
        numeric = column.kind == "number"
        result.add_column(Text(column.title), width=size, justify="right" if numeric else "left", overflow="fold")
    for row in rows:
        cells = zip(columns, row, strict=True)
        result.add_row(*(Text(cell, style=cell_style(column, cell)) for column, cell in cells))
    return result


def cell_style(column: Column, cell: str) -> str:
    if column.kind == "verdict":
        return verdict_style(cell)
    return "cyan" if column.kind in ("code", "digits") else ""


def verdict_style(word: str) -> str:
    """Green for what passed, yellow for what is open, red for what failed."""
    if word in GOOD or word == "ok":
        return "green"
    return "yellow" if word in DOUBTFUL or word == "?" else "bold red"


def cards(block: Grid, cells: int) -> Iterator[RenderableType]:
    """One small list of facts per row, for terminals too narrow for any table."""
    for position, row in enumerate(block.rows):
        if position:
            yield Text("")
        pairs = zip(block.columns, row, strict=True)
        yield from facts(Facts(tuple((column.title, cell, "text") for column, cell in pairs if cell)), cells)
