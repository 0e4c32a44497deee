"""Codes of steps in order go in, stretches that repeat themselves come out; what a code stands for is not known here.

Likely periods are distances between equal windows, for windows of a few lengths; each is then tried on all codes.
"""

from __future__ import annotations

from typing import Any

import numpy as np

FEWEST = 8  # repetitions of a stretch, at least
WINDOWS = (1, 16, 256)
TRIED = 4  # periods for each length of windows
ODD = 0x9E3779B97F4A7C15  # an odd factor: powers of it can be divided by, modulo 2**64


def stretches(codes: Any, fewest: int = FEWEST) -> list[tuple[int, int, int]]:
    """Stretches (start, period, count) without overlap, in order: `count` times the same `period` codes.

    >>> stretches(np.array([7] + [1, 2, 3]*9 + [1, 5]))
    [(1, 3, 9)]
    """
    runs = []
    for period in _periods(codes, fewest):
        same = np.zeros(len(codes) - period + 2, bool)
        same[1:-1] = codes[:-period] == codes[period:]
        edges = np.flatnonzero(same[1:] != same[:-1])
        for start, end in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True):
            length = end - start + period
            if length >= fewest * period:
                runs.append((-length, period, start))
    runs.sort()
    taken = np.zeros(len(codes), bool)
    found = []
    for negative, period, start in runs:
        end = start - negative
        free = np.flatnonzero(~taken[start:end])
        if len(free) < fewest * period:
            continue
        first = start + int(free[0])
        busy = np.flatnonzero(taken[first:end])
        count = ((first + int(busy[0]) if len(busy) else end) - first) // period
        if count >= fewest:
            taken[first : first + count * period] = True
            found.append((first, period, count))
    return sorted(found)


def _periods(codes: Any, fewest: int) -> list[int]:
    """Distances at which windows of codes come again, the likely ones."""
    n = len(codes)
    found: set[int] = set()
    with np.errstate(over="ignore"):
        powers = np.cumprod(np.full(n + 1, ODD, np.uint64))
        backwards = np.cumprod(np.full(n + 1, pow(ODD, -1, 1 << 64), np.uint64))
        mixed = (codes.astype(np.uint64) + np.uint64(1)) * np.uint64(0xD6E8FEB86659FD93)
        mixed ^= mixed >> np.uint64(32)
        sums = np.concatenate(([np.uint64(0)], np.cumsum(mixed * powers[:n])))
        for width in WINDOWS:
            if n < fewest * width:
                break
            windows = (sums[width:] - sums[: n - width + 1]) * backwards[: n - width + 1]
            order = np.argsort(windows, kind="stable")
            ordered = windows[order]
            apart = np.diff(order)[ordered[1:] == ordered[:-1]]
            counts = np.bincount(apart[apart <= n // fewest])
            likely = np.argsort(counts)[::-1][:TRIED]
            found.update(int(one) for one in likely if one and counts[one] >= fewest - 1)
    return sorted(found)
