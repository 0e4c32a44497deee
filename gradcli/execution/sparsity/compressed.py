"""Compressed Jacobians: which directions to sweep for a pattern, and how to read the entries from the results.

Columns that share no row get one colour, because their sum can be separated again. Cyclic colourings are tried first,
because they are perfect for bands; else each column takes the first free colour. Column compression reads J[i, j] in
the sweep along all columns of the colour of j; row compression is the same on the transposed matrix. In a symmetric
matrix long rows (hubs) are swept on their own and read as columns, and their mirror images are not read at all. Random
directions confirm the pattern: their products have to be what the entries give.
"""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gradcli.execution.sparsity.flows import Flow, distinct, of_pairs, transposed

if TYPE_CHECKING:
    from collections.abc import Sequence

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
    """The rows of a symmetric pattern that are better read as columns: each such hub costs one sweep of its own.

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


class Blocks:
    """The places of the entries in the blocks of a matrix, whose rows and columns are cut at some sizes.

    Blocks are flat arrays, or with `sparse` CSR arrays of SciPy with the entries of the pattern alone.
    """

    def __init__(self, whole: Compression, rows: Sequence[int], columns: Sequence[int], sparse: bool = False) -> None:
        self._sparse = sparse
        row_ends, column_ends = np.cumsum([0, *rows]), np.cumsum([0, *columns])
        left = np.searchsorted(column_ends, whole.columns, side="right") - 1
        self._parts: list[list[tuple[Any, Any, int]]] = []  # of a sparse block the places are an array of its pattern
        for first, height in zip(row_ends, rows, strict=False):
            among = slice(*np.searchsorted(whole.rows, [first, first + height]))  # rows are in order
            self._parts.append([])
            for j, width in enumerate(columns):
                chosen = among if len(columns) == 1 else among.start + np.flatnonzero(left[among] == j)
                high, wide = whole.rows[chosen] - first, whole.columns[chosen] - column_ends[j]
                places: Any = high * width + wide
                if sparse:
                    from scipy.sparse import csr_array

                    at = high.astype(np.int32), wide.astype(np.int32)  # what SciPy's solvers take without a copy
                    places = csr_array((np.zeros(len(wide)), at), (height, width))
                self._parts[-1].append((chosen, places, height * width))

    def filled(self, entries: Array) -> list[list[Any]]:
        """The blocks; dense ones have zeros where the pattern has nothing."""
        blocks: list[list[Any]] = []
        for row in self._parts:
            blocks.append([])
            for chosen, places, size in row:
                if self._sparse:
                    block = copy(places)  # takes a fifth of the time of a constructor
                    block.data, block.indices, block.indptr = entries[chosen], block.indices.copy(), block.indptr.copy()
                else:
                    block = np.zeros(size, dtype=entries.dtype)
                    block[places] = entries[chosen]
                blocks[-1].append(block)
        return blocks
