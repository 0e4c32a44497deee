"""The gradcli blocks of Markdown and reStructuredText documents, found where the renderers of these formats find them.

Markdown is read by markdown-it-py, a CommonMark parser, so a fence in a list or a quotation counts, and one in a
comment or in another fence does not. reStructuredText is read by the indentation of its directives. In both, the
columns of a block are those of the document: blanks replace what precedes its lines.
"""

from __future__ import annotations

import os
import re
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from gradcli.batch.discovery.cases import LARGEST, BatchCase
from gradcli.language.source import LINE_END

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from markdown_it import MarkdownIt

MARKDOWN, RESTRUCTURED = (".md", ".markdown"), (".rst",)
# the info string of a fence: gradcli, {.gradcli} or {#a .gradcli} (Pandoc), {code-block} gradcli (MyST); attributes
INFO = re.compile(
    r"(?:(\{(?:code-block|code|sourcecode)\})\s*|\{\s*(?:[.#][^\s}]+\s+)*\.)?gradcli(?![^\s,{}])(.*)", re.I
)
OPTION = re.compile(r"\s*:([\w-]+):(?:\s+(.*))?$")
# reStructuredText: list markers in front of a body element, which they indent; explicit markup; directives
MARKERS = re.compile(r"(?: |[-*+\u2022\u2023\u2043] +|\(?(?:#|\d+|[A-Za-z])[.)] +)*")
DIRECTIVE = re.compile(r"\.\. +([A-Za-z0-9][\w:+.-]*?) ?::(?: +(.*))?$")
OTHER_MARKUP = re.compile(r"\.\. +(?:_|\[|__ )")  # targets, footnotes and citations
CODE = {"code-block", "code", "sourcecode"}
VERBATIM = CODE | {
    "raw", "math", "parsed-literal", "literalinclude", "include", "csv-table", "productionlist", "prompt", "doctest",
    "testcode", "testsetup", "testcleanup", "testoutput", "graphviz", "digraph", "graph", "mermaid", "plantuml", "uml",
    "plot", "ipython", "jupyter-execute", "code-cell",
}  # fmt: skip


class DocumentBlock(NamedTuple):
    """Lines of a document, the first one with its number (from 1), and whether the document says `ignore`."""

    line: int
    lines: list[str]
    ignored: bool = False


def is_document(path: str) -> bool:
    """Whether a file may contain blocks, by its suffix."""
    return os.path.splitext(path)[1].lower() in MARKDOWN + RESTRUCTURED


def blocks(path: str) -> list[BatchCase]:
    """The cases of a document; blocks with `ignore` are skipped, but are counted in the numbering.

    A document that cannot be read, or that contains the word gradcli but is not UTF-8, is one case without a block:
    checking it reports the error.
    """
    try:
        if not os.path.isfile(path) or os.path.getsize(path) > LARGEST:
            return [BatchCase(path)]
        with open(path, "rb") as file:
            data = file.read()
    except OSError:
        return [BatchCase(path)]
    if b"gradcli" not in data.replace(b"\0", b"").lower() and b"&#" not in data:  # the zeros: of UTF-16
        return []
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        good, bad = problem.object[: problem.start], problem.object[problem.start :]  # without a byte order mark
        above = LINE_END.split(good.decode())
        line = above[-1].encode() + bad.splitlines()[0]
        return [BatchCase(path, 0, line.decode("utf-8", "surrogateescape"), len(above))]
    lines = LINE_END.split(text)
    sections = restructured(lines) if path.lower().endswith(RESTRUCTURED) else markdown(lines)
    return [
        BatchCase(path, number, "".join(f"{line}\n" for line in block.lines), block.line)
        for number, block in enumerate(sections, 1)
        if not block.ignored
    ]


def markdown(lines: Sequence[str]) -> Iterator[DocumentBlock]:
    """The fenced blocks of a Markdown document whose language is gradcli."""
    from markdown_it.common.utils import unescapeAll

    for token in commonmark().parse("\n".join(lines)):
        info = INFO.fullmatch(unescapeAll(token.info).strip()) if token.type == "fence" else None
        if info is None or token.map is None:
            continue
        first = token.map[0] + 1
        text = token.content.removesuffix("\n").split("\n") if token.content else []
        options = leading_options(text) if info[1] else 0
        ignored = "ignore" in re.split(r"[\s,{}.]+", info[2].lower()) or says_ignore(text[:options])
        text = placed(lines[first : first + len(text)], text)[options:]
        yield DocumentBlock(first + options + 1, text, ignored)


@cache
def commonmark() -> MarkdownIt:
    """The parser of Markdown, without inline parsing."""
    from markdown_it import MarkdownIt

    reader = MarkdownIt("commonmark")
    reader.core.ruler.enableOnly(["normalize", "block"])
    return reader


def placed(raw: Sequence[str], text: list[str]) -> list[str]:
    """The lines of a block in their columns: with blanks for what precedes them in the document.

    The lines are not changed if they have different prefixes.
    """
    fronts = {
        line[: len(line) - len(inside)] if line.endswith(inside) else None
        for line, inside in zip(raw, text, strict=True)
        if inside.strip()
    }
    front = fronts.pop() if len(fronts) == 1 else None
    if not front:
        return text
    blanks = re.sub(r"[^\t]", " ", front)
    return [blanks + line if line.strip() else "" for line in text]


def leading_options(lines: Sequence[str]) -> int:
    """How many of the first lines are options of a directive, `:name: value`."""
    return next((count for count, line in enumerate(lines) if not OPTION.match(line)), len(lines))


def says_ignore(options: Sequence[str]) -> bool:
    """Whether the options of a directive give it the class `ignore`."""
    matches = [OPTION.match(line) for line in options]
    return any(match and match[1] == "class" and "ignore" in (match[2] or "").split() for match in matches)


def restructured(raw: Sequence[str]) -> Iterator[DocumentBlock]:
    """The code directives of a reStructuredText document whose language is gradcli.

    What follows `::`, and the bodies of comments and of directives that show their text, are passed over.
    """
    lines = [line.expandtabs(8).rstrip() for line in raw]
    indents = [len(line) - len(line.lstrip()) if line else None for line in lines]

    def body_end(start: int, indent: int) -> int:
        """The first line from `start` that is neither empty nor indented deeper."""
        ends = (at for at in range(start, len(lines)) if (own := indents[at]) is not None and own <= indent)
        return next(ends, len(lines))

    at = 0
    while at < len(lines):
        markers = MARKERS.match(lines[at])
        indent = markers.end() if markers else 0
        line, next_line = lines[at][indent:], at + 1
        if directive := DIRECTIVE.match(line):
            name, argument = directive[1].lower(), (directive[2] or "").strip().lower()
            if name in VERBATIM:
                end = body_end(next_line, indent)
                if name in CODE and argument == "gradcli":
                    start = next_line + leading_options(lines[next_line:end])
                    yield DocumentBlock(start + 1, lines[start:end], says_ignore(lines[next_line:start]))
                next_line = end
        elif line == ".." or (line.startswith(".. ") and not OTHER_MARKUP.match(line)):
            if line != ".." or "".join(lines[next_line : next_line + 1]):  # else an empty comment, which has no body
                next_line = body_end(next_line, indent)
        elif line.endswith("::") and (line == "::" or line.strip(line[0])) and not "".join(lines[next_line : at + 2]):
            next_line = body_end(next_line, indent)  # a literal block
        at = next_line
