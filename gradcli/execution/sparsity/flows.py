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


class TooDense(Exception):
    """The pairs of a flow would be more than are worth keeping."""


class Flow:
    """For row r, `columns[starts[r]:starts[r + 1]]`: sorted, each once; immutable."""

    __slots__ = ("_keys", "_rows", "columns", "starts")

    def __init__(self, starts: Places, columns: Places) -> None:
        self.starts = starts
        self.columns = columns
        self._rows: Places | None = None
        self._keys: Places | None = None

    @property
    def rows(self) -> int:
        return len(self.starts) - 1

    @property
    def pairs(self) -> int:
        """How many (row, column) pairs there are."""
        return len(self.columns)

    def lengths(self) -> Places:
        """The number of columns of each row."""
        return np.diff(self.starts)

    def row_of_each(self) -> Places:
        """The row of each pair, in the order of `columns`."""
        if self._rows is None:
            self._rows = np.arange(self.rows).repeat(self.lengths())
        return self._rows

    def keys(self) -> Places:
        """A number for each pair, growing with its row, then with its column."""
        if self._keys is None:
            self._keys = (self.row_of_each() << SHIFT) + self.columns
        return self._keys

    def __repr__(self) -> str:
        return f"<flow of {self.rows} rows, {self.pairs} pairs>"


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
    flow = Flow(np.append(0, np.cumsum(np.bincount(rows, minlength=count))), keys & (1 << SHIFT) - 1)
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
    whole = _of_keys(distinct(np.concatenate([flow.keys() for flow in different])), different[0].rows, most)
    for flow in different:
        if flow.pairs == whole.pairs:
            return flow  # it holds the others
    return whole


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
