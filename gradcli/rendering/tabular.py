"""Documents as Markdown, LaTeX or HTML, and grids as CSV: for issues, papers, notebooks and spreadsheets."""

from __future__ import annotations

from html import escape as escaped

from gradcli.rendering.document import Facts, Formula, Grid, Line
from gradcli.rendering.mathematics import Mathematics, MathML, escaped_latex
from gradcli.rendering.safe_text import visible

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from gradcli.rendering.document import Column, Document

MARKDOWN = str.maketrans({character: "\\" + character for character in "\\`*_{}[]<>#|~"})


def markdown(document: Document) -> str:
    """A Markdown fragment: code lines in back quotes, grids as tables."""
    parts: list[str] = []
    for block in document.blocks:
        if isinstance(block, Line):
            parts += [
                code_span(line) if block.role == "code" else visible(line).translate(MARKDOWN)
                for line in block.text.splitlines()
                if line
            ]
        elif isinstance(block, Facts):
            parts.append("\n".join(markdown_fact(*row) for row in block.rows))
        else:
            title = [f"**{block.title}**"] if block.title else []
            parts += [
                *title,
                *([block.note.translate(MARKDOWN)] if block.note else []),
                markdown_table(block),
            ]
    return "\n\n".join(parts)


def markdown_fact(label: str, value: str, role: str) -> str:
    """One fact as a list item; a value without a label continues the item before it."""
    if isinstance(value, Formula):
        return f"- {visible(label).translate(MARKDOWN)}: ${value.latex()}$ ({code_span(value)})"
    phrase = visible(value).translate(MARKDOWN) if role in ("text", "note", "key") else code_span(value)
    return f"- {visible(label).translate(MARKDOWN)}: {phrase}" if label else f"  - {phrase}"


def markdown_table(block: Grid) -> str:
    """One grid as a pipe table."""
    titles = [column.title.translate(MARKDOWN) for column in block.columns]
    rules = ["---:" if column.kind == "number" else "---" for column in block.columns]
    rows = [
        [markdown_cell(column, cell) for column, cell in zip(block.columns, row, strict=True)] for row in block.rows
    ]
    return "\n".join(f"| {' | '.join(row)} |" for row in (titles, rules, *rows))


def markdown_cell(column: Column, cell: str) -> str:
    if column.kind == "number" or not cell:
        return visible(cell)
    if column.kind == "code":
        return code_cell(cell)
    return visible(cell).translate(MARKDOWN)


def code_cell(text: str) -> str:
    """Text as a code span in a cell of a table."""
    return code_span(text).replace("|", "\\|")


def code_span(text: str) -> str:
    """Text as a code span, between enough back quotes."""
    safe, ticks = visible(text), "`"
    while ticks in safe:
        ticks += "`"
    gap = " " if "`" in safe[:1] + safe[-1:] or safe[:1] == safe[-1:] == " " else ""  # a reader removes these two
    return f"{ticks}{gap}{safe}{gap}{ticks}" if safe else ""


def latex(document: Document) -> str:
    """A LaTeX fragment: equations with other facts as comments, or `tabular` environments; it needs `amsmath`."""
    parts: list[str] = []
    if document.equations is not None:
        facts = [row for block in document.blocks if isinstance(block, Facts) for row in block.rows]
        said = [f"% {visible(label)}: {visible(value)}" for label, value, role in facts if role != "title"]
        return "\n".join([*said, r"\begin{align*}", aligned(document), r"\end{align*}"])
    for block in document.blocks:
        if isinstance(block, Line):
            lines = [block.text] if isinstance(block.text, Formula) else block.text.splitlines()
            parts += [latex_cell(block.role, line) for line in lines if line]
        elif isinstance(block, Facts):
            rows = [
                (escaped_latex(label), latex_cell("number" if is_number(value) else role, value))
                for label, value, role in block.rows
            ]
            parts.append(tabular("ll", (), rows))
        else:
            if block.title:
                parts.append(rf"\textbf{{{escaped_latex(block.title)}}}")
            letters = "".join("r" if column.kind == "number" else "l" for column in block.columns)
            titles = [escaped_latex(column.title) for column in block.columns]
            cells = [
                [latex_cell(column.kind, cell) for column, cell in zip(block.columns, row, strict=True)]
                for row in block.rows
            ]
            parts.append(tabular(letters, titles, cells))
    return "\n\n".join(parts)


def aligned(document: Document) -> str:
    """The equations of a document, one under the other."""
    sides = () if document.equations is None else document.equations(Mathematics)
    return " \\\\\n".join(f"{left} &= {right}" for left, right in sides)


def tabular(letters: str, titles: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [rf"\begin{{tabular}}{{{letters}}}"]
    if titles:
        lines += [" & ".join(titles) + r" \\", r"\hline"]
    lines += [" & ".join(row) + r" \\" for row in rows]
    return "\n".join([*lines, r"\end{tabular}"])


def latex_cell(kind: str, cell: str) -> str:
    """One cell: numbers and formulas in math mode, other script in typewriter, everything else escaped."""
    if isinstance(cell, Formula):
        return f"${cell.latex()}$"
    if kind == "number" and is_number(cell):
        return f"${Mathematics({}).decimal(cell)}$"
    if kind != "code" or not cell:
        return escaped_latex(cell)
    notation = Mathematics({})
    formula = notation.formula(cell)
    return formula if formula == notation.verbatim(cell) else f"${formula}$"


def mathml(document: Document) -> str:
    """The equations of a document as MathML, below paragraphs with its other facts."""
    facts = [row for block in document.blocks if isinstance(block, Facts) for row in block.rows]
    said = [f"<p>{escaped(label)}: {escaped(value)}</p>" for label, value, role in facts if role != "title"]
    sides = () if document.equations is None else document.equations(MathML)
    return "\n".join([*said, *(f"<p><math>{left}<mo>=</mo>{right}</math></p>" for left, right in sides)])


def html(document: Document) -> str:
    """A document as HTML for notebooks, which set what stands between dollar signs as mathematics."""
    return "\n".join(piece for block in document.blocks for piece in html_pieces(block))


def html_pieces(block: Line | Facts | Grid) -> Iterator[str]:
    """The HTML of one block."""

    def inner(text: str) -> str:
        return f"${escaped(text.latex())}$" if isinstance(text, Formula) else escaped(text)

    def cell(text: str, tag: str, side: str = "left") -> str:
        code = tag == "td" and not isinstance(text, Formula)
        return f"<{tag} style='text-align:{side}'>{f'<code>{inner(text)}</code>' if code else inner(text)}</{tag}>"

    if isinstance(block, Line):
        code = block.role == "code" and not isinstance(block.text, Formula)
        if block.text:
            yield f"<pre style='margin:0'>{inner(block.text)}</pre>" if code else f"<div>{inner(block.text)}</div>"
    elif isinstance(block, Facts):
        rows = "".join(f"<tr>{cell(name, 'th')}{cell(value, 'td')}</tr>" for name, value, _ in block.rows)
        yield f"<table>{rows}</table>"
    else:
        sides = ["right" if column.kind == "number" else "left" for column in block.columns]
        head = "".join(cell(column.title, "th", side) for column, side in zip(block.columns, sides, strict=True))
        rows = "".join(f"<tr>{''.join(map(cell, row, ['td'] * len(row), sides))}</tr>" for row in block.rows)
        caption = f"<caption style='text-align:left'>{escaped(block.title)}</caption>" if block.title else ""
        yield f"<table>{caption}<tr>{head}</tr>{rows}</table>"


def csv(table: Grid) -> str:
    """One grid as comma-separated values under a header line."""
    return csv_rows((tuple(column.title for column in table.columns), *table.rows))


def csv_rows(rows: Iterable[Sequence[str]]) -> str:
    return "\n".join(",".join(map(csv_cell, row)) for row in rows)


def csv_cell(cell: str) -> str:
    """A cell, quoted where necessary, so that no line of a log starts with `::`, a command to GitHub.

    Text that a spreadsheet would run as a formula starts with an apostrophe.
    """
    safe = visible(cell)
    if safe[:1] in ("=", "+", "-", "@") and not is_number(safe):
        safe = "'" + safe
    if any(character in safe for character in ',"\n\r') or safe != safe.strip() or safe[:2] == "::":
        return '"' + safe.replace('"', '""') + '"'
    return safe


def is_number(text: str) -> bool:
    """Whether the text is a plain number, which a spreadsheet may read as one."""
    try:
        float(text)
    except ValueError:
        return False
    return "_" not in text
