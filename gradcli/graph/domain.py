"""Sets of real numbers that an argument may come from: intervals with open or closed ends."""

from __future__ import annotations

inf = float("inf")


class Interval:
    """An interval of real numbers; each end is open or closed. `name` is what people read."""

    __slots__ = ("high", "high_open", "low", "low_open")

    def __init__(self, low: float, high: float, low_open: bool = False, high_open: bool = False) -> None:
        self.low = low
        self.high = high
        self.low_open = low_open or low == -inf
        self.high_open = high_open or high == inf

    def contains(self, x: float) -> bool:
        """Whether the number x lies in the interval; NaN lies in none."""
        above = x > self.low if self.low_open else x >= self.low
        below = x < self.high if self.high_open else x <= self.high
        return above and below

    def part_of(self, low: float, high: float) -> tuple[float, float]:
        """The part of a range that lies in the interval; where they do not meet, as much of the interval."""
        start, end = max(low, self.low), min(high, self.high)
        if start >= end:
            start = self.low if self.low > -inf else self.high - (high - low)
            end = min(self.high, start + high - low)
        return start, end

    def __repr__(self) -> str:
        left, right = "(" if self.low_open else "[", ")" if self.high_open else "]"
        return f"{left}{self.low:g}, {self.high:g}{right}"


def Open(low: float, high: float) -> Interval:
    """The open interval (low, high)."""
    return Interval(low, high, True, True)


def Closed(low: float, high: float) -> Interval:
    """The closed interval [low, high]."""
    return Interval(low, high)


def ClosedOpen(low: float, high: float) -> Interval:
    """The interval [low, high)."""
    return Interval(low, high, False, True)


REAL = Interval(-inf, inf)
POSITIVE = Open(0.0, inf)
NONNEGATIVE = ClosedOpen(0.0, inf)
