"""Layered layout of a graph: boxes in layers from top to bottom, with few crossings.

The layered drawing of Sugiyama, Tagawa and Toda (1981): longest-path layers, waypoints for long arrows, orders by
barycentres, then the positions closest to their neighbours that keep the distances (isotonic regression). An arrow that
points back is laid out as one that points forward. Where most arrows are long, those through many layers run in lanes
at the left, one for each box that they come from, and nothing makes room for them.
"""

from __future__ import annotations

from itertools import takewhile

from gradcli.base.records import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

SWEEPS = 12
SWEPT = 200_000  # boxes and waypoints times sweeps
LEAST, MOST, STEPS = 4, 300, 40_000  # rounds towards straight arrows, and boxes times rounds
LONG = 6  # waypoints a box, above which long arrows run in lanes
FAR = 8  # layers from which an arrow is long then
STRAIGHT = 6.0  # how much more a bend in a chain or a long arrow counts than a slope beside others
GAP, RISE = 28.0, 52.0  # between boxes of a layer, and between layers
WAYPOINT = 14.0
SLIGHT = 4.0  # bends that are not drawn


class Layout(NamedTuple):
    """The center of each box, the points of each arrow, and the size of the whole drawing.

    A route passes a layer between two points, at the upper and at the lower edge of its tallest box; layers that it
    passes in a straight line are one.
    """

    places: tuple[tuple[float, float], ...]
    routes: tuple[tuple[tuple[float, float], ...], ...]
    width: float
    height: float


def layout(
    sizes: Sequence[tuple[float, float]], arrows: Sequence[tuple[int, int]], weights: Sequence[float] = ()
) -> Layout:
    """Positions for boxes of these widths and heights; boxes come in an order in which arrows point forward.

    A route goes from the start of its arrow to the end, even if that is above. A box of small weight is placed where
    the others leave room.
    """
    down = [(min(start, end), max(start, end)) for start, end in arrows]
    rank = ranks(len(sizes), down)
    lanes = sum(max(rank[end] - rank[start] - 1, 0) for start, end in down) > LONG * len(sizes)
    graph = Layers(sizes, lowered(rank, down) if lanes else rank, weights or [1.0] * len(sizes), lanes)
    chains = [graph.chain(start, end) for start, end in down]
    graph.order()
    turned = [chain if start <= end else chain[::-1] for chain, (start, end) in zip(chains, arrows, strict=True)]
    return graph.placed(turned)


def ranks(count: int, arrows: Sequence[tuple[int, int]]) -> list[int]:
    """The layer of each box: below all that it reads; a box that reads nothing is just above its first reader."""
    rank = [0] * count
    readers: list[list[int]] = [[] for _ in range(count)]
    reads = [0] * count
    for start, end in arrows:
        readers[start].append(end)
        reads[end] += 1
    for box in range(count):
        for reader in readers[box]:
            rank[reader] = max(rank[reader], rank[box] + 1)
    for box in range(count):
        if not reads[box] and readers[box]:
            rank[box] = min(rank[reader] for reader in readers[box]) - 1
    return rank


def lowered(rank: Sequence[int], arrows: Sequence[tuple[int, int]]) -> list[int]:
    """The layers with boxes closer to their readers where that shortens arrows; those from one box count once."""
    low = list(rank)
    readers: list[list[int]] = [[] for _ in rank]
    alone = [0] * len(rank)  # arrows to a box from those that nothing else reads
    for start, end in arrows:
        readers[start].append(end)
    for boxes in readers:
        if len(boxes) == 1:
            alone[boxes[0]] += 1
    for box in reversed(range(len(rank))):
        if readers[box] and alone[box] <= 1:
            low[box] = max(rank[box], min(low[reader] for reader in readers[box]) - 1)
    return low


class Layers:
    """Boxes and waypoints by layer, while their orders and positions are computed."""

    def __init__(
        self, sizes: Sequence[tuple[float, float]], rank: Sequence[int], weights: Sequence[float], lanes: bool
    ) -> None:
        self.sizes = list(sizes)
        self.weight = list(weights)
        self.rank = list(rank)
        self.count = len(self.sizes)
        self.far = FAR if lanes else len(rank)
        self.reach: dict[int, int] = {}  # the layer to which the lane of a box goes
        self.above: list[list[int]] = [[] for _ in sizes]
        self.below: list[list[int]] = [[] for _ in sizes]
        self.rows: list[list[int]] = [[] for _ in range(max(rank, default=0) + 1)]
        for box, layer in enumerate(rank):
            self.rows[layer].append(box)

    def chain(self, start: int, end: int) -> list[int]:
        """An arrow as a chain of neighbours in adjacent layers, through waypoints of its own, unless it has a lane."""
        low, high = self.rank[start], self.rank[end]
        if high - low > self.far:
            self.reach[start] = max(self.reach.get(start, 0), high - 1)
        if not 0 < high - low <= self.far:
            return [start, end]
        chain = [start]
        for layer in range(low + 1, high):
            point = len(self.sizes)
            self.sizes.append((WAYPOINT, 0.0))
            self.weight.append(1.0)
            self.rank.append(layer)
            self.above.append([])
            self.below.append([])
            self.rows[layer].append(point)
            self._join(chain[-1], point)
            chain.append(point)
        self._join(chain[-1], end)
        return [*chain, end]

    def _join(self, upper: int, lower: int) -> None:
        self.below[upper].append(lower)
        self.above[lower].append(upper)

    # --- the order within layers ---------------------------------------------------------------------------

    def order(self) -> None:
        """Sort layers by the mean position of neighbours, down and up in turn, and keep the best order seen."""
        best, fewest = [list(row) for row in self.rows], self.crossings()
        for sweep in range(self.sweeps()):
            down = sweep % 2 == 0
            step = -1 if down else 1
            for layer in range(1, len(self.rows)) if down else reversed(range(len(self.rows) - 1)):
                self._sort(self.rows[layer], self.rows[layer + step], self.above if down else self.below)
            crossings = self.crossings()
            if crossings < fewest:
                best, fewest = [list(row) for row in self.rows], crossings
            if not fewest:
                break
        self.rows = best

    def sweeps(self) -> int:
        """How often layers are sorted and moved: less where there are very many boxes and waypoints."""
        return max(2, min(SWEEPS, SWEPT // max(len(self.sizes), 1)))

    def _sort(self, row: list[int], adjacent: Sequence[int], neighbours: Sequence[Sequence[int]]) -> None:
        position = {box: place for place, box in enumerate(adjacent)}
        own = {box: float(place) for place, box in enumerate(row)}
        for box in row:
            if neighbours[box]:
                own[box] = sum(position[other] for other in neighbours[box]) / len(neighbours[box])
        row.sort(key=lambda box: own[box])

    def crossings(self) -> int:
        """The number of pairs of arrows that cross between adjacent layers."""
        total = 0
        for row in self.rows[1:]:
            position = {other: at for at, other in enumerate(self.rows[self.rank[row[0]] - 1])} if row else {}
            ends = [position[other] for box in row for other in sorted(self.above[box], key=position.__getitem__)]
            total += inversions(ends)
        return total

    # --- places ------------------------------------------------------------------------------------------------

    def placed(self, chains: Sequence[Sequence[int]]) -> Layout:
        """Positions close to those of the neighbours, in the order of each layer."""
        pairs = {(box, other) for box, below in enumerate(self.below) for other in below}
        self.pulls = {pair: self._pull(*pair) for upper, lower in pairs for pair in ((upper, lower), (lower, upper))}
        x = [0.0] * len(self.sizes)
        for row in self.rows:
            left = 0.0
            for box in row:
                x[box] = left + self.sizes[box][0] / 2
                left += self.sizes[box][0] + GAP
        rounds = min(max(STEPS // max(len(x), 1), LEAST), MOST)
        sweeps = self.sweeps()
        for sweep in range(sweeps + rounds):
            down = sweep % 2 == 0
            for row in self.rows if down else reversed(self.rows):
                self._settle(row, x, (down, not down) if sweep < sweeps else (True, True))
        y = self._heights()
        left = min((x[box] - self.sizes[box][0] / 2 for box in range(len(x))), default=0.0)
        lanes = self._lanes()
        left -= GAP + WAYPOINT * max(lanes.values()) if lanes else 0.0
        points = [(x[box] - left, y[self.rank[box]]) for box in range(len(x))]
        width = max((points[box][0] + self.sizes[box][0] / 2 for box in range(len(x))), default=0.0)
        height = y[-1] + max((self.sizes[box][1] for box in self.rows[-1]), default=0.0) / 2 if self.rows else 0.0
        tall = [max((self.sizes[box][1] for box in row), default=0.0) / 2 for row in self.rows]
        beside = {box: WAYPOINT * lane for box, lane in lanes.items()}
        routes = tuple(tuple(self._passed(chain, points, y, tall, beside)) for chain in chains)
        return Layout(tuple(points[: self.count]), routes, width, height)

    def _settle(self, row: Sequence[int], x: list[float], sides: tuple[bool, bool]) -> None:
        """Move the boxes of a layer towards their neighbours above, below, or both."""
        wanted, weights = [], []
        for box in row:
            near = [*(self.above[box] if sides[0] else ()), *(self.below[box] if sides[1] else ())]
            near = near or [*self.above[box], *self.below[box]]
            total = moment = 0.0
            for other in near:
                pull = self.pulls[box, other]
                total += pull
                moment += pull * x[other]
            wanted.append(moment / total if near else x[box])
            weights.append(self.weight[box])
        offsets, at = [], 0.0
        for place, box in enumerate(row):
            if place:
                at += (self.sizes[row[place - 1]][0] + self.sizes[box][0]) / 2 + GAP
            offsets.append(at)
        free = ascending([want - offset for want, offset in zip(wanted, offsets, strict=True)], weights)
        for box, middle, offset in zip(row, free, offsets, strict=True):
            x[box] = middle + offset

    def _pull(self, box: int, other: int) -> float:
        """The weight of a neighbour: large in chains, which should be straight, small for boxes of small weight."""
        upper, lower = (box, other) if self.rank[box] < self.rank[other] else (other, box)
        chained = self._heavy(self.below[upper]) == 1 and self._heavy(self.above[lower]) == 1
        chained |= min(upper, lower) >= self.count
        return self.weight[other] * (STRAIGHT if chained else 1.0)

    def _heavy(self, boxes: Sequence[int]) -> int:
        return sum(self.weight[box] == 1.0 for box in boxes)

    def _lanes(self) -> dict[int, int]:
        """The lane of each box with long arrows, counted from the left; one lane serves several boxes in turn."""
        lanes: dict[int, int] = {}
        ends: list[int] = []  # the layer to which each lane is taken
        for box in sorted(self.reach, key=lambda box: self.rank[box]):
            lane = next((lane for lane, end in enumerate(ends) if end < self.rank[box]), len(ends))
            ends[lane : lane + 1] = [self.reach[box]]
            lanes[box] = lane
        return lanes

    def _passed(
        self,
        chain: Sequence[int],
        points: Sequence[tuple[float, float]],
        y: Sequence[float],
        tall: Sequence[float],
        lanes: Mapping[int, float],
    ) -> Iterator[tuple[float, float]]:
        first, last = self.rank[chain[0]], self.rank[chain[-1]]
        down = -1.0 if first < last else 1.0
        yield points[chain[0]]
        if abs(last - first) > self.far:
            x = lanes[chain[0] if first < last else chain[-1]]
            for layer in (first - int(down), last + int(down)):
                yield x, y[layer] + tall[layer] * down
                yield x, y[layer] - tall[layer] * down
        passed = chain[1:-1]
        while passed:
            x = points[passed[0]][0]
            run = list(takewhile(lambda box: abs(points[box][0] - x) < SLIGHT, passed))  # noqa: B023
            passed = passed[len(run) :]
            yield x, points[run[0]][1] + tall[self.rank[run[0]]] * down
            yield x, points[run[-1]][1] - tall[self.rank[run[-1]]] * down
        yield points[chain[-1]]

    def _heights(self) -> list[float]:
        y, bottom = [], 0.0
        for row in self.rows:
            tall = max((self.sizes[box][1] for box in row), default=0.0)
            y.append(bottom + tall / 2)
            bottom += tall + RISE
        return y


def ascending(wanted: Sequence[float], weights: Sequence[float] = ()) -> list[float]:
    """The ascending numbers closest to the wanted ones: neighbours that are out of order share their mean.

    >>> ascending([1.0, 3.0, 2.0, 5.0])
    [1.0, 2.5, 2.5, 5.0]
    >>> ascending([3.0, 1.0], weights=[3.0, 1.0])
    [2.5, 2.5]
    """
    pools: list[tuple[float, float, int]] = []
    for want, weight in zip(wanted, weights or [1.0] * len(wanted), strict=True):
        total, heavy, size = want * weight, weight, 1
        while pools and pools[-1][0] / pools[-1][1] > total / heavy:
            before = pools.pop()
            total, heavy, size = total + before[0], heavy + before[1], size + before[2]
        pools.append((total, heavy, size))
    return [total / heavy for total, heavy, size in pools for _ in range(size)]


def inversions(numbers: Sequence[int]) -> int:
    """The number of pairs in the wrong order, counted by a merge sort.

    >>> inversions([0, 2, 1, 1])
    2
    """
    total = 0
    runs = [[number] for number in numbers]
    while len(runs) > 1:
        merged = []
        for first, second in zip(runs[::2], runs[1::2], strict=False):
            joined, at = [], 0
            for number in first:
                while at < len(second) and second[at] < number:
                    joined.append(second[at])
                    at += 1
                total += at
                joined.append(number)
            merged.append(joined + second[at:])
        runs = merged + (runs[-1:] if len(runs) % 2 else [])
    return total
