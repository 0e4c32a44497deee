"""The progress line of long work: a bar, counts, an estimate of the remaining time, and the last item done.

The line is never wider than the terminal; parts that do not fit are left out, the counts last.
"""

from __future__ import annotations

import math

from gradcli.base.diagnostics import visible
from gradcli.rendering.safe_text import width

BAR = 20  # cells between the brackets
SHORTEST_LABEL = 8
PAUSE = 0.1  # seconds between two lines
FIRST_ESTIMATE = 2.0  # seconds of work before time is estimated
MEMORY = 20.0  # seconds after which an observed rate counts 1/e


class Progress:
    """The state of one progress line: when it was last drawn, and the smoothed rate of the work."""

    def __init__(self) -> None:
        self.began: float | None = None
        self.seen = (0.0, 0)  # when the work was last looked at, and how much of it was done
        self.seconds = 0.0  # time and work, both weighted by how recent they are
        self.amount = 0.0

    def line(self, now: float, cells: int, done: int, total: int, label: str = "", failed: int = 0) -> str | None:
        """The line, in at most this many cells; None if the last one is too recent."""
        if self.began is None:
            self.began, self.seen = now, (now, done)
        else:
            passed = now - self.seen[0]
            if passed < PAUSE:
                return None
            fading = math.exp(-passed / MEMORY)
            self.seconds = self.seconds * fading + passed
            self.amount = self.amount * fading + max(0, done - self.seen[1])
            self.seen = (now, done)
        filled = BAR * done // max(total, 1)
        bar = f"[{'#' * filled}{'.' * (BAR - filled)}]"
        counts = f"{done:,}/{total:,}"
        if len(counts) > cells:
            return f"{100 * done // max(total, 1)}%"[:cells]
        failures = f"{failed:,} failed" if failed else ""
        left = ""
        if self.amount and now - self.began >= FIRST_ESTIMATE:
            left = f"about {duration((total - done) * self.seconds / self.amount)} left"
        # in the order of their importance: what no longer fits is left out
        parts = {1: counts, 2: failures, 0: bar, 3: left}
        shown: dict[int, str] = {}
        for place, part in parts.items():
            if part and sum(len(other) + 2 for other in shown.values()) + len(part) <= cells:
                shown[place] = part
        text = "  ".join(shown[place] for place in sorted(shown))
        room = cells - len(text) - 2
        return text if room < SHORTEST_LABEL or not label else f"{text}  {fitted(label, room)}"


def fitted(label: str, cells: int) -> str:
    """A label that is safe to print, shortened in the middle to a number of cells."""
    text, limit = visible(label, 4 * cells), cells
    while width(text) > cells:
        text, limit = visible(text, limit), limit - 1
    return text


def duration(seconds: float) -> str:
    """A duration for people, in numbers of few digits.

    >>> duration(3), duration(42), duration(200), duration(4000), duration(1e6)
    ('5 s', '40 s', '3 min', '1 h 10 min', '278 h')
    """
    if seconds < 57.5:
        return f"{max(1, round(seconds / 5)) * 5} s"
    if seconds < 3570:
        return f"{round(seconds / 60)} min"
    hours, tens = divmod(round(seconds / 600), 6)
    return f"{hours} h {tens}0 min" if tens and hours < 10 else f"{round(seconds / 3600)} h"
