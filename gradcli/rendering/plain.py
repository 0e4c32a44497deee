"""Documents as plain text, for files and pipes: no colours, no frames, no limit on the width."""

from __future__ import annotations

from gradcli.rendering.document import Facts, Grid, Line, separate
from gradcli.rendering.safe_text import pad, visible, width

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from gradcli.rendering.document import Document


def render(document: Document) -> str:
    """The document as text, with blank lines around grids."""
    lines: list[str] = []
    previous: object = None
    for block in document.blocks:
        if separate(previous, block):
            lines.append("")
        if isinstance(block, Line):
            lines += [visible(line) for line in block.text.splitlines()]
        elif isinstance(block, Facts):
            lines += facts(block)
        else:
            lines += grid(block)
        previous = block
    return "\n".join(line.rstrip() for line in lines)


def facts(block: Facts) -> Iterator[str]:
    """`name  value` lines with the values under each other."""
    cells = max((width(name) for name, _, _ in block.rows), default=0)
    for name, value, _ in block.rows:
        yield f"{pad(visible(name), cells)}  {visible(value)}"


def grid(block: Grid) -> Iterator[str]:
    """Aligned columns under their titles."""
    rows = [tuple(map(visible, row)) for row in block.rows]
    titles = [column.title for column in block.columns]
    sizes = [max(map(width, cells)) for cells in zip(titles, *rows, strict=True)]
    if block.title:
        yield block.title
    if block.note:
        yield block.note
    for row in (titles, *rows):
        yield "  ".join(
            pad(cell, size, right=column.kind == "number")
            for cell, size, column in zip(row, sizes, block.columns, strict=True)
        )
