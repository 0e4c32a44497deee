"""How threads share a reduction: how many work on a row, how long a piece is, where an entry lies.

Lengths depend on shapes alone, never on the GPU: so the order of additions is the same on every machine.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from gradcli.execution.devices.groups import Runs

THREADS, WARP = 256, 32  # of a block; threads that shuffle
GRAIN = 1 << 12  # entries of a row that one block adds up, at least
FEW_ROWS = 1 << 10  # rows, from which a block may take longer pieces
LONGEST = 1 << 16
COLUMNS = 32  # rows that lie side by side, from which each thread takes one
SPREAD, SHORT, LONG = 1 << 18, 32, 512  # threads that are wanted for columns; entries of a piece then
SHARED = 1024  # entries of a row up to which one warp takes it
MOST_BLOCKS = 1 << 16


class Rows(NamedTuple):
    """How threads go through rows: lanes of a row, columns of a piece, whether rows lie side by side."""

    rows: int
    columns: int
    lanes: int
    piece: int
    beside: bool

    @property
    def pieces(self) -> int:
        return -(-self.columns // self.piece)

    @property
    def blocks(self) -> int:
        return min(-(-self.rows * self.pieces * self.lanes // THREADS), MOST_BLOCKS)


def rows_of(runs: Runs) -> Rows:
    """How many threads share a row of a reduction: none where rows lie side by side, a warp, or a block."""
    rows, columns = runs.rows, runs.columns
    if not runs.reduced[-1] and runs.lengths[-1] >= COLUMNS:
        piece = min(max(rows * columns // SPREAD, SHORT), LONG)
        return Rows(rows, columns, 1, min(piece, columns), True)
    if columns <= SHARED:
        lanes = 1
        while lanes < min(columns, WARP):
            lanes *= 2
        return Rows(rows, columns, lanes, columns, False)
    piece = min(LONGEST, GRAIN * max(1, rows // FEW_ROWS))
    return Rows(rows, columns, THREADS, min(piece, columns), False)


def rest_of(first: Rows) -> Rows:
    """How the pieces that the first kernel leaves are added up."""
    lanes = THREADS if first.pieces > SHARED else WARP
    return Rows(first.rows, first.pieces, lanes, first.pieces, False)


def entry_of(runs: Runs) -> str:
    """The line that finds the entry `e` at a row and a column of a reduction."""
    if runs.reduced[-1] and len(runs.lengths) <= 2:
        return f"const whole e = {f'row * {runs.columns} + ' if runs.rows > 1 else ''}k;"
    if len(runs.lengths) == 2:
        return f"const whole e = k * {runs.rows} + row;"
    if len(runs.lengths) == 1:
        return "const whole e = row;"
    parts = []
    for at, (n, gone) in enumerate(zip(runs.lengths, runs.reduced, strict=True)):
        later = zip(runs.lengths[at + 1 :], runs.reduced[at + 1 :], strict=True)
        inner = prod([m for m, other in later if other == gone])
        word = "k" if gone else "row"
        word = word if inner == 1 else f"{word} / {inner}"
        word = f"{word} % {n}" if gone in runs.reduced[:at] else word
        stride = prod(runs.lengths[at + 1 :])
        parts.append(f"({word}) * {stride}" if stride > 1 else f"({word})")
    return f"const whole e = {' + '.join(parts)};"
