"""Enclosures of the slopes of the real part of a program at a complex point; no derivative rule is read.

Every complex entry has two directions, 1 and i, so the gradient of the real part L is that of a real function with
twice as many entries: 2k is dL/dx and 2k + 1 is dL/dy of entry k. Nothing is assumed to be holomorphic. `ComplexJets`
stands where `jets.DirectionalJets` stands for real points, with the same methods.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from flint import acb, acb_series, arb, ctx

from gradcli.checks.derivatives.jets import coefficient
from gradcli.checks.evaluate.balls import BallField
from gradcli.checks.evaluate.evaluation import Reading
from gradcli.checks.evaluate.interpretation import Entries, Failure
from gradcli.checks.expansions.complex_series import ComplexSeries, OneSidedComplexSeries
from gradcli.checks.expansions.power_series import capacity
from gradcli.checks.expansions.series_fields import ComplexSeriesField, OneSidedComplexSeriesField

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gradcli.checks.derivatives.jets import DependencyCone, Direction
    from gradcli.checks.evaluate.balls import Point
    from gradcli.graph.node import Node


class ComplexJets:
    """A scalar node along straight lines through a complex point: the slopes of its real part."""

    def __init__(self, paths: DependencyCone, point: Point, *, wide: bool = False, printed: bool = False) -> None:
        self.paths = paths
        self.point = point
        self.bits: int = ctx.prec
        self.flags = {"wide": wide, "printed": printed}
        self.field = BallField(wide=wide)  # for sums of real balls
        self.signs: list[int] = []
        self._still: dict[tuple[int, bool], tuple[ComplexSeriesField, dict[Node, Entries]]] = {}
        self._curves: dict[tuple[int, int], Any] = {}

    @property
    def value(self) -> Any:
        """The real part of the output at the point."""
        return real_part(self.entries(self.paths.outputs[0])[0])

    def entries(self, node: Node) -> list[Any]:
        """The complex entries of a node at the point: functions of no step, or Failures."""
        with capacity(1):
            return self._reading(1, False).read([node])[0].flat

    def slopes(self, node: Node) -> dict[int, Any]:
        """What a node says of the slopes: the real part of its entries, and the negative of their imaginary part."""
        found: dict[int, Any] = {}
        for k, x in enumerate(self.entries(node)):
            failed = isinstance(x, Failure)
            found[2 * k], found[2 * k + 1] = (x, x) if failed else (x.constant.real, -x.constant.imag)
        return found

    @property
    def center(self) -> list[Any]:
        """Two numbers for each entry of the targets, the real and the imaginary part."""
        found = []
        for target in self.paths.targets:
            for x in self.entries(target):
                found += [x, x] if isinstance(x, Failure) else [x.constant.real, x.constant.imag]
        return found

    def curve(self, direction: Direction, order: int = 1) -> Any:
        """The complex output along a direction, or a Failure."""
        with capacity(order + 1):
            return self._moved(direction, order + 1, 1, False)

    def along(self, direction: Direction, order: int = 1) -> Any:
        """The real part along a direction: a series or a Failure."""
        found = self.curve(direction, order)
        return found if isinstance(found, Failure) else found.real

    def beside(self, direction: Direction, root: int, terms: int) -> Any:
        """The real part on one side of the point, in powers of the `root`-th root of the step."""
        with capacity(terms):
            found = self._moved(direction, terms, root, True)
        return found if isinstance(found, Failure) else found.real

    def partial(self, i: int) -> Any:
        """The slope of the real part by the real (even i) or the imaginary part of an entry."""
        return coefficient(self.along({i: 1}), 1)

    def slope(self, direction: Direction) -> Any:
        """The slope of the real part along a direction."""
        return coefficient(self.along(direction), 1)

    def holomorphic(self, k: int) -> bool | None:
        """Whether i times the slope along 1 is that along i, by one entry; None where that is open."""
        both = [self.curve({2 * k + part: 1}) for part in (0, 1)]
        if any(isinstance(one, Failure) for one in both):
            return None
        across, up = (one.s[1] for one in both)
        gap = across * acb(0, 1) - up
        if not gap.contains(0):
            return False
        return True if gap.rad() < arb(2) ** -40 * (1 + abs(up).upper()) else None

    def moved_value(self, moves: Mapping[int, Any]) -> tuple[Any, list[int]]:
        """The real part with some entries moved by a finite step, and the signs that decided its branches."""
        with capacity(1):
            field = ComplexSeriesField(**self.flags)
            start = self._reading(1, False)
            start.read(self.paths.all)
            above = set(self.paths.order)
            fixed = {node: entries for node, entries in start.known.items() if node not in above}
            moved = self._pushed(start, {i: acb(by) if i % 2 == 0 else acb(0, by) for i, by in moves.items()})
            if isinstance(moved, Failure):
                return moved, []
            field.base = start.known
            found = Reading(field, {}, {**fixed, **moved}).read(self.paths.outputs)[0].flat[0]
            return real_part(found), field.signs

    # --- inner ------------------------------------------------------------------------------------------------

    def _reading(self, terms: int, sided: bool) -> Reading:
        """The program where nothing moves, with room for so many coefficients."""
        key = (terms, sided)
        if key not in self._still:
            field = (OneSidedComplexSeriesField if sided else ComplexSeriesField)(**self.flags)
            self._still[key] = (field, {})
        field, known = self._still[key]
        given = {
            name: Entries([field.leaf(value) for value in flat], shape) for name, (flat, shape) in self.point.items()
        }
        reading = Reading(field, given)
        reading.known = known
        return reading

    def _pushed(self, start: Reading, by: Mapping[int, Any]) -> dict[Node, Entries] | Failure:
        """The entries of the targets with something added to some of them."""
        found, first = {}, 0
        for target in self.paths.targets:
            flat = list(start.read([target])[0].flat)
            for i, more in by.items():
                place = i // 2 - first
                if 0 <= place < len(flat):
                    here = flat[place]
                    if isinstance(here, Failure):
                        return here
                    flat[place] = flat[place] + more
            first += len(flat)
            found[target] = Entries(flat, target.type.shape)
        return found

    def _moved(self, direction: Direction, terms: int, root: int, sided: bool) -> Any:
        start = self._reading(terms, sided)
        field: Any = start.field
        field.signs = []
        above = set(self.paths.order) | set(self.paths.targets)
        start.read([node for node in self.paths.all if node not in above])
        kind = OneSidedComplexSeries if sided else ComplexSeries
        steps = {}
        for i, speed in direction.items():
            coefficients = [acb(0)] * root + [acb(speed) if i % 2 == 0 else acb(0, speed)]
            steps[i] = kind(acb_series(coefficients, terms), i % 2 == 0)
        pushed = self._pushed(start, steps)
        if isinstance(pushed, Failure):
            return pushed
        reading = Reading(field, {}, {**start.known, **pushed})
        found = reading.read(self.paths.outputs)[0].flat[0]
        self.signs += field.signs
        return found


def real_part(x: Any) -> Any:
    """The real part of a value: a ball or a Failure."""
    if isinstance(x, Failure):
        return x
    return x.constant.real
