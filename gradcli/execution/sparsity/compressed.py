"""Compressed Jacobians: which directions to sweep for a pattern, and how to read the entries from the results.

Columns that share no row get one colour, because their sum can be separated again. Cyclic colourings are tried first,
because they are perfect for bands; else each column takes the first free colour. Column compression reads J[i, j] in
the sweep along all columns of the colour of j; row compression is the same on the transposed matrix. In a symmetric
matrix long rows (hubs) are swept on their own and read as columns, and their mirror images are not read at all; in
other matrices reverse sweeps give long rows, and forward sweeps the rest. Random directions confirm the pattern: their
products have to be what the entries give.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gradcli.execution.sparsity.flows import Flow, distinct, of_pairs, transposed

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Places = NDArray[np.int64]
    Array = NDArray[Any]

CYCLES = 16  # cyclic colourings that are tried
PROBES = 2
SLACK = 2.0**20  # roundings by which a probe may differ from what the entries give, relative to their sizes
TINY = 2.0**10  # the same relative to the largest row: what cancels leaves rounding behind
SEED = 20


class Colours(NamedTuple):
    """The colour of each column (-1: in no row), and the number of colours."""

    of: Any
    number: int


def coloured(flow: Flow, columns: int) -> Colours:
    """Colours for the columns of a pattern, such that no row has one twice.

    >>> from gradcli.execution.sparsity.flows import identity
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
        if len(distinct(flow.row_of_each() * count + cycle[flow.columns])) == flow.pairs:  # each once in a row
            return Colours(cycle if used.all() else np.where(used, cycle, -1), count)
    return _first_free(flow, columns)


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
    """The rows of a pattern that are better swept by themselves: each such hub costs at most one sweep of its own.

    A row with many columns needs as many colours. Leaving out the h longest rows costs h and leaves the next longest.
    """
    lengths = flow.lengths()
    order = np.argsort(-lengths, kind="stable")
    cost = np.arange(flow.rows + 1) + np.append(lengths[order], 0)
    return np.sort(order[: int(np.argmin(cost))])


# --- sweeps along colours -----------------------------------------------------------------------------------


class Compression:
    """The directions of the sweeps, and for each pair (row, column) of the matrix the swept entry that is its value.

    `seeds` has a direction per row. Swept results are `[sweeps, width]`; `source` counts their entries in C order.
    """

    __slots__ = ("_colours", "columns", "rows", "source", "sweeps")

    def __init__(self, colours: Places, sweeps: int, rows: Places, columns: Places, source: Places) -> None:
        self._colours = colours
        self.sweeps = sweeps
        self.rows = rows
        self.columns = columns
        self.source = source

    def seeds(self) -> Array:
        """For each colour, 1 at its members and 0 elsewhere; colour -1 has a zero column."""
        return np.eye(self.sweeps + 1)[:-1, self._colours]

    def entries(self, swept: Array) -> Array:
        """The value of each pair, from the results of the sweeps."""
        values: Array = swept.take(self.source)
        return values

    def probes(self) -> Array:
        """Random directions, of the length of a seed."""
        return np.random.default_rng(SEED).uniform(0.5, 1.5, (PROBES, len(self._colours)))

    def agrees(self, entries: Array, probes: Array, seen: Array, across: bool = False) -> bool:
        """Whether the matrix of these entries sends the probes where the sweeps have seen them go, up to rounding.

        `across`: the probes went in from the side of the rows.
        """
        into, out = (self.columns, self.rows) if not across else (self.rows, self.columns)
        unit = float(np.finfo(seen.dtype).eps)
        width = seen.shape[1]
        for probe, image in zip(probes, seen, strict=True):
            parts = entries * probe[into]
            sizes = np.bincount(out, np.abs(parts), width)
            total = np.bincount(out, parts.real, width)
            if np.iscomplexobj(parts):
                total = total + 1j * np.bincount(out, parts.imag, width)
            slack = unit * (SLACK * sizes + TINY * sizes.max(initial=0.0)) + float(np.finfo(seen.dtype).tiny)
            if not (np.abs(image - total) <= slack).all():
                return False
        return True


def by_columns(flow: Flow, columns: int) -> Compression:
    """Forward sweeps: J[i, j] is entry i of the sweep along the colour of j."""
    colours = coloured(flow, columns)
    rows = flow.row_of_each()
    source = colours.of[flow.columns] * flow.rows + rows
    return Compression(colours.of, colours.number, rows, flow.columns, source)


def by_rows(flow: Flow, columns: int) -> Compression:
    """Reverse sweeps: J[i, j] is entry j of the sweep back from the colour of i."""
    colours = coloured(transposed(flow, columns), flow.rows)
    rows = flow.row_of_each()
    source = colours.of[rows] * columns + flow.columns
    return Compression(colours.of, colours.number, rows, flow.columns, source)


def symmetric(flow: Flow) -> Compression:
    """Forward sweeps over a gradient: as by columns, but the rows of hubs are read from the sweeps along the hubs."""
    size = flow.rows
    mirrored = np.concatenate([flow.row_of_each(), flow.columns]), np.concatenate([flow.columns, flow.row_of_each()])
    whole = of_pairs(*mirrored, size)
    hubs = without_hubs(whole)
    hub = np.zeros(size, dtype=bool)
    hub[hubs] = True
    rows, columns = whole.row_of_each(), whole.columns
    kept = ~hub[rows] & ~hub[columns]
    rest = coloured(of_pairs(rows[kept], columns[kept], size) if len(hubs) else whole, size)
    of = rest.of
    of[hubs] = rest.number + np.arange(len(hubs))
    turned = hub[rows] & ~hub[columns]
    source = np.where(turned, of[rows] * size + columns, of[columns] * size + rows)
    return Compression(of, rest.number + len(hubs), rows, columns, source)


def both_ways(flow: Flow, columns: int) -> tuple[Compression, Compression] | None:
    """Reverse sweeps for the longest rows, forward sweeps for the others; None where one direction may need fewer.

    The first compression is of all pairs: its entries come from the results of the forward sweeps, then of the others.
    """
    hubs = without_hubs(flow)
    rows, into = flow.row_of_each(), flow.columns
    lengths, heights = flow.lengths(), np.bincount(into, minlength=columns)
    least = min(lengths.max(initial=0), heights.max(initial=0))  # sweeps in one direction
    if len(hubs) + np.delete(lengths, hubs).max(initial=0) >= least:
        return None
    long = np.isin(rows, hubs)
    along = by_columns(of_pairs(rows[~long], into[~long], flow.rows), columns)
    back = by_rows(of_pairs(rows[long], into[long], flow.rows), columns)
    if along.sweeps + back.sweeps >= least:
        return None
    source = np.empty(flow.pairs, np.int64)
    source[~long], source[long] = along.source, along.sweeps * flow.rows + back.source
    return Compression(along._colours, along.sweeps, rows, into, source), back
