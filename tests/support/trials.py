"""A case goes in, what independent oracles say of its value and slopes comes out, to judge damaged rules by.

The oracles: `digits` (80 of them, or balls where mpmath has no row), `floats` (differences with their own bound), `symbols`
(SymPy), `balls`, `numpy` (the function of the same name).
"""

from __future__ import annotations

from functools import cache, cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.execution.evaluate import Tape
from gradcli.graph.building import building
from gradcli.graph.domain import Interval
from gradcli.graph.node import reachable
from gradcli.primitives import catalogue
from gradcli.transforms import derivatives
from tests.support import numpy_reading, reference
from tests.support.cases import Case, InnerCase, cases
from tests.support.laws import EXEMPT
from tests.support.laws_derivatives import float_difference, sympy_gradient
from tests.support.oracles import Silent, Symbolic, ball_slope, ball_values, middle
from tests.support.reference import Missing
from tests.support.study import Study

if TYPE_CHECKING:
    from collections.abc import Mapping

MOST_CASES = 4
SELDOM = 3  # symbols and readings of values at every third point only

# Vectors of norm 1 are known up to their sign.
UP_TO_SIGN = ("eigvecs", "svd_u", "svd_v")
# The laws that an oracle needs: where an operation is exempt from the law, the oracle is not asked.
NEEDS = {
    "symbols": ("value_by_sympy", "gradient_by_sympy"),
    "balls": ("value_by_balls", ""),
    "digits": ("value_to_80_digits", "derivatives_to_80_digits"),
    "floats": ("", "jvp_by_differences"),
    "numpy": ("value_by_numpy", ""),
}


class Trial(Study):
    """A case at the points where mutants are judged: on all sides of the kinks of a function of numbers."""

    def __init__(self, case: Case, count: int) -> None:
        super().__init__(case, count)
        if count > 3:
            self.points = wide_points(case, count)
        if isinstance(case, InnerCase) and case.primitive.kind == "nondifferentiable" and len(self.points) == 2:
            chosen = self.random.random(self.points["x0"].shape) < 0.5  # a comparison needs ties
            self.points["x1"] = np.where(chosen, self.points["x0"], self.points["x1"])

    def asked(self, oracle: str, derivative: bool) -> bool:
        if self.case.name in UP_TO_SIGN and not derivative:
            return True
        return (NEEDS[oracle][derivative], self.case.name) not in EXEMPT

    # --- derivatives: what the oracles say along one direction in each leaf, at each point -----------------------

    @cached_property
    def slopes(self) -> dict[str, dict[str, tuple[np.ndarray, np.ndarray]]]:
        """By oracle and leaf: slopes and their bounds at each point; NaN where an oracle has nothing to say."""
        found: dict[str, dict[str, tuple[np.ndarray, np.ndarray]]] = {
            "symbols": {},
            "floats": {},
            "digits": {},
        }
        for name in self.leaves:
            way = {name: self.directions[0][name]}
            found["floats"][name] = float_difference(self, way)
            symbols = np.full(self.count, np.nan)
            digits = np.full(self.count, np.nan)
            for number in range(0, self.count, SELDOM):
                try:
                    symbols[number] = np.sum(sympy_gradient(self, number, name) * way[name])
                except Silent:
                    break
            for number in range(self.count):
                digits[number] = self._by_digits(self.point(number), way)
            found["symbols"][name] = symbols, allowance(symbols)
            found["digits"][name] = digits, allowance(digits)
        return found

    def _by_digits(self, point: Mapping[str, Any], way: Mapping[str, Any]) -> float:
        try:
            moved = reference.moving(point, [way])
            return float(reference.along(lambda by: self.exact_loss(moved(by)), 1))
        except Missing:
            try:
                return ball_slope(self.loss, point, way)
            except Silent:
                return np.nan

    def gradient(self) -> dict[str, np.ndarray]:
        """What the rules that are installed now give, along the directions."""
        one = self.builder_constant()
        found = derivatives.vjp([self.loss], [one], list(self.leaves.values()))
        values = Tape(found).run(self.points, backend="numpy")
        made = {}
        for (name, leaf), value in zip(self.leaves.items(), values, strict=True):
            with np.errstate(all="ignore"):  # a damaged rule may give anything
                entries = np.broadcast_to(value, (self.count, *leaf.shape)) * self.directions[0][name]
                made[name] = entries.reshape(self.count, -1).sum(axis=1)
        return made

    def builder_constant(self) -> Any:
        with building(self.builder, reachable([self.loss])) as builder:
            return builder.constant(1)

    def notices(self, found: Mapping[str, np.ndarray]) -> set[str]:
        """The oracles that contradict some slope."""
        contradicting = set()
        for oracle, leaves in self.slopes.items():
            if not self.asked(oracle, derivative=True):
                continue
            for name, (slope, bound) in leaves.items():
                away = np.abs(found[name] - slope)
                if np.any(away > bound) or np.any(np.isnan(found[name]) & np.isfinite(slope)):
                    contradicting.add(oracle)
        return contradicting

    # --- values ------------------------------------------------------------------------------------------------------

    @cached_property
    def right_values(self) -> dict[str, dict[int, list[np.ndarray | None]]]:
        """By oracle, point and output: the value, or None; an oracle may have nothing to say of some points."""
        found: dict[str, dict[int, list[np.ndarray | None]]] = {}
        for number in range(0, self.count, SELDOM):
            point = self.point(number)
            for oracle, made in self._readings(point).items():
                found.setdefault(oracle, {})[number] = made
        return found

    def _readings(self, point: Mapping[str, Any]) -> dict[str, list[Any]]:
        found: dict[str, list[Any]] = {}
        try:
            found["digits"] = [np.asarray(v, dtype=object).astype(float) for v in self.exact(point)]
        except Missing:
            pass
        if not isinstance(self.case, InnerCase):
            try:
                with np.errstate(all="ignore"):
                    made = numpy_reading.read(self.case.text, point)
                found["numpy"] = list(made) if isinstance(made, tuple) else [made]
            except KeyError:
                pass
        for oracle, reading in (("symbols", symbols_read), ("balls", balls_read)):
            try:
                found[oracle] = reading(self, point)
            except Silent:
                pass
        return found

    def value_notices(self, values: list[Any]) -> set[str]:
        """The oracles that contradict the outputs at some point; one without a finite value says nothing there."""
        contradicting = set()
        for oracle, points in self.right_values.items():
            if not self.asked(oracle, derivative=False):
                continue
            for number, row in points.items():
                for right, value, output in zip(row, values, self.outputs, strict=True):
                    mine = np.broadcast_to(value, (self.count, *output.shape))[number]
                    if self.case.name in UP_TO_SIGN:
                        mine, right = aligned(mine), aligned(np.asarray(right))
                    finite = np.isfinite(np.asarray(right, float))
                    if finite.shape == mine.shape:
                        mine, right = np.where(finite, mine, 0), np.where(finite, right, 0)
                    if differ(mine, right):
                        contradicting.add(oracle)
        return contradicting


def allowance(slopes: np.ndarray) -> np.ndarray:
    """How far a float may be from an exact slope."""
    sizes = np.abs(slopes)
    largest = np.nanmax(sizes, initial=0.0)
    return 1e-9 * np.maximum(sizes, 1e-3 * largest if largest else 1.0)


def aligned(columns: np.ndarray) -> np.ndarray:
    """Columns with the signs that make the largest entry of each positive."""
    largest = np.take_along_axis(columns, np.abs(columns).argmax(axis=0, keepdims=True), axis=0)
    return columns * np.sign(largest)


def differ(found: Any, right: Any) -> bool:
    """Whether two values of an output are not the same, shapes included."""
    found, right = np.asarray(found, float), np.asarray(right, float)
    if found.shape != right.shape:
        return True
    largest = float(np.max(np.abs(right), initial=0.0)) or 1.0
    with np.errstate(invalid="ignore"):  # of two infinities
        return bool(np.any(~(np.abs(found - right) <= 1e-9 * largest)))


def symbols_read(it: Study, point: Mapping[str, Any]) -> list[Any]:
    return Symbolic(it.outputs, it.leaves, point).values()


def balls_read(it: Study, point: Mapping[str, Any]) -> list[Any]:
    return [middle(entries) for entries in ball_values(it.outputs, point)]


@cache
def trials(name: str, deep: bool = False) -> tuple[Trial, ...]:
    """The cases of an operation, at few points, or all of them at many."""
    primitive = catalogue()[name]
    kinky = primitive.pointwise and bool(primitive.kinks)
    read_by_definition = primitive.definition is not None and primitive.kind == "structured"
    count = 24 if kinky else 5 if read_by_definition else 3
    found = cases(name)
    return tuple(Trial(case, 6 * count if deep else count) for case in (found if deep else found[:MOST_CASES]))


def wide_points(case: Case, count: int) -> dict[str, np.ndarray]:
    """Half of the points from the samples, half from all of the domain within -4 and 4."""
    near = case.points(count)
    if isinstance(case, InnerCase):
        return near
    domains = (*catalogue()[case.name].domain, *[Interval(-4, 4)] * 9)
    wider = {
        name: leaf._replace(interval=Interval(max(domain.low, -4.0), min(domain.high, 4.0)))
        for (name, leaf), domain in zip(case.leaves.items(), domains, strict=False)
    }
    far = Case(case.name, case.text, wider).points(count)
    for number, (name, leaf) in enumerate(wider.items()):  # drawn from a grid, where leaves meet each other and kinks
        inner = leaf.interval.low + 0.4142 * (leaf.interval.high - leaf.interval.low)
        far[name] = far[name] + 2.0**-13 * (number + 1) * (inner - far[name])
    return {name: np.concatenate([near[name][: count // 2], far[name][count // 2 :]]) for name in near}
