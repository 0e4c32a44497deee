"""Documents: reports before they have a format, as facts, grids and lines.

A builder turns a result into a `Document`; each format (terminal table, plain text, Markdown, LaTeX, CSV)
turns any document into text. A new result needs one builder and a new format one writer.
"""

from __future__ import annotations

from importlib import import_module

from gradcli.base.records import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from gradcli.rendering.mathematics import Mathematics


class Style(NamedTuple):
    """How to show numbers: significant digits (None: all), and how many entries of an array to list.

    `width` is that of the terminal, None if the output is not a terminal.
    """

    digits: int | None = None
    entries: int = 1000
    width: int | None = None


class Formula(str):
    """A text in the script language that may also be written as LaTeX; `ranks` are those of its names."""

    __slots__ = ("ranks",)
    ranks: Mapping[str, int]

    @classmethod
    def of(cls, text: str, ranks: Mapping[str, int]) -> Formula:
        """A text with the ranks of its names."""
        formula = cls(text)
        formula.ranks = ranks
        return formula

    def latex(self) -> str:
        """The formula in LaTeX, without the signs of its mode."""
        return str(import_module("gradcli.rendering.mathematics").latex(self, self.ranks))


class Line(NamedTuple):
    """A line of text. Roles: title, code, note, good, bad, doubt, text."""

    text: str
    role: str = "text"


class Facts(NamedTuple):
    """Names with one value each, such as `value  64.0`; a role per fact as in `Line`."""

    rows: tuple[tuple[str, str, str], ...]


class Column(NamedTuple):
    """A column of a grid. `drop`: 0 always stays; columns with larger numbers are dropped first on narrow terminals.

    `kind`: number (right-aligned), digits (a number at the left), text, code, verdict (coloured by its word).
    """

    title: str
    kind: str = "text"
    drop: int = 0


class Grid(NamedTuple):
    """Rows under columns; `narrow` is a form of the same rows for terminals that are too narrow for this one."""

    columns: tuple[Column, ...]
    rows: tuple[tuple[str, ...], ...]
    title: str = ""
    note: str = ""
    narrow: Grid | None = None


Block = Line | Facts | Grid


class Document(NamedTuple):
    """Blocks, in order; `equations` are what they say as mathematics, in a notation: pairs of a left and a right side.

    The facts that are not in them have other roles than `title`.
    """

    blocks: tuple[Block, ...]
    equations: Callable[[type[Mathematics]], Iterable[tuple[str, str]]] | None = None

    def with_note(self, text: str) -> Document:
        """The same with a note at the end, if there is one."""
        return self._replace(blocks=(*self.blocks, Line(text, "note"))) if text else self


GAP = Line("")  # a blank line, as grids have one before and behind them


def separate(before: object, block: Block) -> bool:
    """Whether to put a blank line between two blocks."""
    if before is None or before == GAP:
        return False
    return block == GAP or isinstance(block, Grid) or isinstance(before, Grid)


def document(
    *blocks: Block, equations: Callable[[type[Mathematics]], Iterable[tuple[str, str]]] | None = None
) -> Document:
    """A document in which consecutive blocks of facts are joined, so that their values are aligned."""
    joined: list[Block] = []
    for block in blocks:
        if joined and isinstance(block, Facts) and isinstance(joined[-1], Facts):
            joined[-1] = Facts(joined[-1].rows + block.rows)
        else:
            joined.append(block)
    return Document(tuple(joined), equations)
