"""Documents as Markdown or LaTeX, and grids as CSV: for issues, papers and spreadsheets."""

from __future__ import annotations

from html import escape as escaped
from unicodedata import name

from gradcli.rendering.document import Facts, Formula, Grid, Line
from gradcli.rendering.text import visible

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from gradcli.rendering.document import Column, Document

LATEX = str.maketrans(
    {
        "\\": r"\textbackslash{}",
        "&": r"\&",
        "%": r"\%",
        "$": r"\$",
        "#": r"\#",
        "_": r"\_",
        "{": r"\{",
        "}": r"\}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "<": r"\textless{}",
        ">": r"\textgreater{}",
        "|": r"\textbar{}",
        "'": r"\textquotesingle{}",
        "[": "{[}",
        "]": "{]}",
    }
)
CAPITALS = frozenset(["GAMMA", "DELTA", "THETA", "LAMBDA", "XI", "PI", "SIGMA", "UPSILON", "PHI", "PSI", "OMEGA"])
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


def mathml(document: Document) -> str:
    """An HTML fragment: a paragraph for each fact, formulas as MathML."""
    parts: list[str] = []
    for block in document.blocks:
        if isinstance(block, Line):
            parts += [f"<p><code>{escaped(line)}</code></p>" for line in block.text.splitlines() if line]
        elif isinstance(block, Facts):
            for label, value, _ in block.rows:
                phrase = value.mathml() if isinstance(value, Formula) else escaped(value)
                parts.append(f"<p>{escaped(label)}: {phrase}</p>" if label else f"<p>{phrase}</p>")
    return "\n".join(parts)


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
    """A LaTeX fragment of `tabular` environments; it needs no package, and for formulas `amsmath`."""
    parts: list[str] = []
    for block in document.blocks:
        if isinstance(block, Line):
            parts += [latex_cell(block.role, line) for line in block.text.splitlines() if line]
        elif isinstance(block, Facts):
            rows = [
                (label.translate(LATEX), latex_cell("number" if is_number(value) else role, value))
                for label, value, role in block.rows
            ]
            parts.append(tabular("ll", (), rows))
        else:
            if block.title:
                parts.append(rf"\textbf{{{block.title.translate(LATEX)}}}")
            letters = "".join("r" if column.kind == "number" else "l" for column in block.columns)
            titles = [column.title.translate(LATEX) for column in block.columns]
            cells = [
                [latex_cell(column.kind, cell) for column, cell in zip(block.columns, row, strict=True)]
                for row in block.rows
            ]
            parts.append(tabular(letters, titles, cells))
    return "\n\n".join(parts)


def tabular(letters: str, titles: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [rf"\begin{{tabular}}{{{letters}}}"]
    if titles:
        lines += [" & ".join(titles) + r" \\", r"\hline"]
    lines += [" & ".join(row) + r" \\" for row in rows]
    return "\n".join([*lines, r"\end{tabular}"])


def latex_cell(kind: str, cell: str) -> str:
    """One cell: numbers in math mode with powers of ten, script in typewriter, everything else escaped."""
    if kind == "number" and is_number(cell):
        mantissa, exponent, power = cell.replace("inf", r"\infty").partition("e")
        if exponent:
            return rf"${mantissa} \times 10^{{{int(power)}}}$"
        return f"${mantissa}$" if mantissa != "nan" else "nan"
    if isinstance(cell, Formula):
        return f"${cell.latex()}$"
    safe = "".join(map(latex_letter, visible(cell).translate(LATEX)))
    return rf"\texttt{{{safe}}}" if kind == "code" and safe else safe


def latex_letter(character: str) -> str:
    """A Greek letter as its command; anything else as it is."""
    if character < "\u0370" or character > "\u03ff":
        return character
    size, _, letter = name(character, "").removeprefix("GREEK ").replace("LAMDA", "LAMBDA").partition(" LETTER ")
    if size == "SMALL" and letter.isalpha() and letter != "OMICRON":
        return rf"\ensuremath{{\{letter.lower()}}}"
    if size == "CAPITAL" and letter in CAPITALS:
        return rf"\ensuremath{{\{letter.capitalize()}}}"
    return character


def csv(table: Grid) -> str:
    """One grid as comma-separated values under a header line."""
    return csv_rows((tuple(column.title for column in table.columns), *table.rows))


def csv_rows(rows: Iterable[Sequence[str]]) -> str:
    return "\n".join(",".join(map(csv_cell, row)) for row in rows)


def csv_cell(cell: str) -> str:
    """A cell, quoted where necessary; text that a spreadsheet would run as a formula starts with an apostrophe."""
    safe = visible(cell)
    if safe[:1] in ("=", "+", "-", "@") and not is_number(safe):
        safe = "'" + safe
    if any(character in safe for character in ',"\n\r') or safe != safe.strip():
        return '"' + safe.replace('"', '""') + '"'
    return safe


def is_number(text: str) -> bool:
    """Whether the text is a plain number, which a spreadsheet may read as one."""
    try:
        float(text)
    except ValueError:
        return False
    return "_" not in text
