"""Sets of columns, one for each row of a matrix, and operations on them: move, add up, unite.

A `Flow` says for each entry of an array which entries of the inputs may reach it. Rows and columns count entries in
C order. Too many pairs raise `TooDense`, because then nothing can be saved.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Places = NDArray[np.int64]


SHIFT = 31  # bits of a column in the number of a pair
WIDEST = 8  # columns of a row up to which rows of one length are handled as a table


class TooDense(Exception):
    """The pairs of a flow would be more than are worth keeping."""


class Flow:
    """For row r, `columns[starts[r]:starts[r + 1]]`: sorted, each once; immutable."""

    __slots__ = ("_keys", "_rows", "_width", "columns", "starts")

    def __init__(self, starts: Places, columns: Places) -> None:
        self.starts = starts
        self.columns = columns
        self._rows: Places | None = None
        self._keys: Places | None = None
        self._width: int | None = None

    @property
    def rows(self) -> int:
        return len(self.starts) - 1

    @property
    def pairs(self) -> int:
        """How many (row, column) pairs there are."""
        return len(self.columns)

    @property
    def width(self) -> int:
        """The number of columns that every row has; 0 where they differ, or are many."""
        if self._width is None:
            width, rest = divmod(self.pairs, max(self.rows, 1))
            even = not rest and width <= WIDEST and bool((self.starts[1:] - self.starts[:-1] == width).all())
            self._width = width if even else 0
        return self._width

    def table(self) -> Places:
        """The columns of each row, where every row has `width` of them."""
        return self.columns.reshape(self.rows, self.width)

    def lengths(self) -> Places:
        """The number of columns of each row."""
        return np.diff(self.starts)

    def row_of_each(self) -> Places:
        """The row of each pair, in the order of `columns`."""
        if self._rows is None:
            width = self.width
            self._rows = self.starts[:-1] if width == 1 else np.arange(self.rows).repeat(width or self.lengths())
        return self._rows

    def keys(self) -> Places:
        """A number for each pair, growing with its row, then with its column."""
        if self._keys is None:
            self._keys = (self.row_of_each() << SHIFT) + self.columns
        return self._keys

    def __repr__(self) -> str:
        return f"<flow of {self.rows} rows, {self.pairs} pairs>"


def of_table(table: Places) -> Flow:
    """Row r has the columns of row r of a table, which are sorted and differ.

    >>> of_table(np.array([[0, 1], [2, 3]])).starts.tolist()
    [0, 2, 4]
    """
    rows, width = table.shape
    flow = Flow(np.arange(0, rows * width + 1, width) if width else np.zeros(rows + 1, np.int64), table.reshape(-1))
    flow._width = width if width <= WIDEST else 0
    return flow


def identity(size: int, first: int = 0) -> Flow:
    """Row r depends on column first + r alone.

    >>> identity(2, 5).columns.tolist()
    [5, 6]
    """
    return Flow(np.arange(size + 1), np.arange(first, first + size))


def empty(rows: int) -> Flow:
    """No row depends on anything."""
    return Flow(np.zeros(rows + 1, dtype=np.int64), np.zeros(0, dtype=np.int64))


def of_pairs(rows: Places, columns: Places, count: int, most: float = float("inf")) -> Flow:
    """The flow of `count` rows with these pairs, which may come in any order and more than once.

    >>> of_pairs(np.array([1, 0, 1]), np.array([2, 7, 2]), 2).columns.tolist()
    [7, 2]
    """
    return _of_keys(distinct((np.asarray(rows, dtype=np.int64) << SHIFT) + columns), count, most)


def _of_keys(keys: Places, count: int, most: float) -> Flow:
    if len(keys) > most:
        raise TooDense
    rows = keys >> SHIFT
    flow = Flow(np.searchsorted(rows, np.arange(count + 1)), keys & (1 << SHIFT) - 1)
    flow._rows, flow._keys = rows, keys
    return flow


def distinct(keys: Places) -> Places:
    """The different numbers among some, in order; quick where these are a few sorted runs.

    >>> distinct(np.array([1, 4, 9, 2, 4])).tolist()
    [1, 2, 4, 9]
    """
    ordered = np.sort(keys, kind="stable")
    first = np.ones(len(ordered), dtype=bool)
    np.not_equal(ordered[1:], ordered[:-1], out=first[1:])
    return ordered if first.all() else ordered[first]


def gathered(flow: Flow, places: Places, most: float = float("inf")) -> Flow:
    """Row r of the result is row places[r] of the flow; a negative place has no columns.

    >>> gathered(identity(3), np.array([2, -1, 2])).columns.tolist()
    [2, 2]
    """
    if flow.width and len(places) and places.min() >= 0:
        if len(places) * flow.width > most:
            raise TooDense
        return of_table(flow.table()[places])
    taken = np.where(places >= 0, places, 0)
    counts = np.where(places >= 0, flow.lengths()[taken], 0) if flow.rows else np.zeros(len(places), dtype=np.int64)
    starts = np.concatenate([[0], np.cumsum(counts)])
    if starts[-1] > most:
        raise TooDense
    first = flow.starts[taken] if flow.rows else starts[:-1]
    inner = np.arange(int(starts[-1])) + np.repeat(first - starts[:-1], counts)
    return Flow(starts, flow.columns[inner])


def scattered(flow: Flow, places: Places, rows: int, most: float = float("inf")) -> Flow:
    """Row r of the flow joins row places[r] of the result.

    >>> scattered(identity(4), np.array([0, 1, 0, 1]), 2).columns.tolist()
    [0, 2, 1, 3]
    """
    return of_pairs(np.repeat(places, flow.lengths()), flow.columns, rows, most)


def united(flows: Sequence[Flow], most: float = float("inf")) -> Flow:
    """For each row, the columns that any of the flows has there."""
    different = list(dict.fromkeys(flows))
    if len(different) == 1:
        return different[0]
    if all(flow.width for flow in different):
        whole = _beside(different, most)
    else:
        whole = _of_keys(distinct(np.concatenate([flow.keys() for flow in different])), different[0].rows, most)
    for flow in different:
        if flow.pairs == whole.pairs:
            return flow  # it holds the others
    return whole


def _beside(flows: Sequence[Flow], most: float) -> Flow:
    """The union of flows whose rows have one length each."""
    if len(flows) == 2 and flows[0].width == flows[1].width == 1:
        one, other = flows[0].columns, flows[1].columns
        table = np.stack([np.minimum(one, other), np.maximum(one, other)], axis=1)
    else:
        table = np.sort(np.concatenate([flow.table() for flow in flows], axis=1), axis=1)
    first = np.ones(table.shape, dtype=bool)
    np.not_equal(table[:, 1:], table[:, :-1], out=first[:, 1:])
    count = int(np.count_nonzero(first))
    if count > most:
        raise TooDense
    if count == table.size:
        return of_table(table)
    starts = np.zeros(len(table) + 1, dtype=np.int64)
    np.cumsum(np.count_nonzero(first, axis=1), out=starts[1:])
    return Flow(starts, table[first])


def stacked(flows: Sequence[Flow]) -> Flow:
    """The rows of all flows, one flow after the other."""
    if len(flows) == 1:
        return flows[0]
    starts: list[Any] = [np.zeros(1, dtype=np.int64)]
    total = 0
    for flow in flows:
        starts.append(flow.starts[1:] + total)
        total += flow.pairs
    return Flow(np.concatenate(starts), np.concatenate([flow.columns for flow in flows]))


def transposed(flow: Flow, columns: int) -> Flow:
    """Rows and columns exchanged; `columns` is how many there are.

    >>> transposed(gathered(identity(2), np.array([1, 1])), 2).starts.tolist()
    [0, 0, 2]
    """
    return of_pairs(flow.columns, flow.row_of_each(), columns)
