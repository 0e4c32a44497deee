"""Places labels beside their curves without overlap.

A label that finds no free place is left out where a box says the same, else it takes the place that hides least.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    Point = tuple[float, float]
    Area = tuple[float, float, float, float]  # left, top, right, bottom

TALL, AIR = 13.0, 4.0  # of a word, and between a word and its curve
TURNS = (0.5, 0.42, 0.58, 0.34, 0.66, 0.26, 0.74, 0.18, 0.82)  # places along a curve, the best first
CELL = 48.0  # of the grid in which neighbours are looked up
WORST = 8.0  # points of other curves that a word may hide before it is left out


class Labels:
    """Where boxes, curves and words are."""

    def __init__(self, boxes: Sequence[Area], curves: Sequence[Sequence[Point]]) -> None:
        self.areas: dict[tuple[int, int], list[Area]] = {}
        self.points: dict[tuple[int, int], list[tuple[float, float, int]]] = {}
        for box in boxes:
            self._take(box)
        for at, curve in enumerate(curves):
            for x, y in curve:
                self.points.setdefault((int(x // CELL), int(y // CELL)), []).append((x, y, at))
        self.curves = curves

    def _take(self, area: Area) -> None:
        for cell in cells(area):
            self.areas.setdefault(cell, []).append(area)

    def place(self, at: int, wide: float, needed: bool) -> Point | None:
        """The left end and the middle of a word beside a curve; None where there is no room and it is not needed."""
        curve = self.curves[at]
        best: tuple[float, Area] | None = None
        for rank, turn in enumerate(TURNS):
            x, y = curve[round(turn * (len(curve) - 1))]
            for left in (x + AIR, x - AIR - wide):
                area = (left, y - TALL / 2, left + wide, y + TALL / 2)
                cost = self._cost(area, at) + rank * 0.3 + (0.2 if left < x else 0.0)
                if best is None or cost < best[0]:
                    best = cost, area
        if best is None or (best[0] > WORST and not needed):
            return None
        self._take(best[1])
        return best[1][0], (best[1][1] + best[1][3]) / 2

    def _cost(self, area: Area, own: int) -> float:
        """How much an area hides: boxes and words much, curves by the points of them."""
        hidden = sum(
            100.0 for other in {one for cell in cells(area) for one in self.areas.get(cell, ())} if meet(area, other)
        )
        for cell in cells(area):
            for x, y, at in self.points.get(cell, ()):
                if area[0] - 1 <= x <= area[2] + 1 and area[1] <= y <= area[3]:
                    hidden += 0.5 if at == own else 2.0
        return hidden


def cells(area: Area) -> Iterator[tuple[int, int]]:
    """The cells of the grid that an area touches."""
    for column in range(int(area[0] // CELL), int(area[2] // CELL) + 1):
        for row in range(int(area[1] // CELL), int(area[3] // CELL) + 1):
            yield column, row


def meet(one: Area, other: Area) -> bool:
    """Whether two areas overlap."""
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]
