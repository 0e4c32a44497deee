"""Colours a pattern: columns that share no row form a group, and one sweep per group gives all entries.

Columns of one colour have no row in common, so their sum can be separated again. Cyclic colourings are tried first,
because they are perfect for bands; then each column takes the first free colour.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gradcli.structure.flows import distinct, transposed

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gradcli.structure.flows import Flow

    Places = NDArray[np.int64]

CYCLES = 16  # cyclic colourings that are tried
FEW = 4  # columns of a row that are compared two by two


class Colours(NamedTuple):
    """The colour of each column (-1: in no row), and the number of colours."""

    of: Any
    number: int


def coloured(flow: Flow, columns: int) -> Colours:
    """Colours for the columns of a pattern, such that no row has one twice.

    >>> from gradcli.structure.flows import identity
    >>> coloured(identity(1000), 1000).number
    1
    """
    least = int(flow.lengths().max(initial=0))
    used = np.zeros(columns, dtype=bool)
    used[flow.columns] = True
    if not least:
        return Colours(np.full(columns, -1), 0)
    for count in range(least, least + CYCLES):
        cycle = np.arange(columns) % count
        if _differ(flow, cycle[flow.columns], count):
            return Colours(cycle if used.all() else np.where(used, cycle, -1), count)
    return _first_free(flow, columns)


def _differ(flow: Flow, colours: Places, count: int) -> bool:
    """Whether no row has one of the colours of its pairs twice."""
    if not 0 < flow.width <= FEW:
        return len(distinct(flow.row_of_each() * count + colours)) == flow.pairs
    table = colours.reshape(flow.rows, flow.width)
    pairs = [(i, j) for i in range(flow.width) for j in range(i)]
    return not any((table[:, i] == table[:, j]).any() for i, j in pairs)


def _first_free(flow: Flow, columns: int) -> Colours:
    """Each column, those in most rows first, takes the first colour that no other column has in any of its rows."""
    across = transposed(flow, columns)
    starts, members = across.starts.tolist(), across.columns.tolist()
    taken = [0] * flow.rows  # the colours in a row, as bits
    of = np.full(columns, -1)
    count = 0
    for column in np.argsort(-across.lengths(), kind="stable").tolist():
        rows = members[starts[column] : starts[column + 1]]
        if not rows:
            continue
        busy = 0
        for row in rows:
            busy |= taken[row]
        bit = ~busy & (busy + 1)
        for row in rows:
            taken[row] |= bit
        of[column] = colour = bit.bit_length() - 1
        count = max(count, colour + 1)
    return Colours(of, count)


def without_hubs(flow: Flow) -> Places:
    """The rows of a symmetric pattern that are better read as columns: each such hub costs one sweep of its own.

    A row with many columns needs as many colours. Leaving out the h longest rows costs h and leaves the next longest.
    """
    lengths = flow.lengths()
    order = np.argsort(-lengths, kind="stable")
    cost = np.arange(flow.rows + 1) + np.append(lengths[order], 0)
    return np.sort(order[: int(np.argmin(cost))])
