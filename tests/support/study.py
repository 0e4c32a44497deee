"""A case goes in, what several laws need of it comes out, computed once: values, gradient programs, 80-digit references."""

from __future__ import annotations

from functools import cache, cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from gradcli.execution.evaluate import Tape
from gradcli.graph.building import building
from gradcli.graph.node import Node, reachable
from gradcli.transforms import derivatives
from tests.support import numpy_reading, reference
from tests.support.cases import GRID, Case, InnerCase
from tests.support.oracles import Symbolic
from tests.support.reference import Missing, mp
from tests.support.reference_arrays import CALLS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

POINTS = 3


class Study:
    """A case with all that several laws need of it, computed once."""

    def __init__(self, case: Case, count: int = POINTS) -> None:
        self.case = case
        self.count = count
        self.outputs, self.leaves = case.nodes()
        self.builder = self.outputs[0].builder
        self.points = case.points(count)
        self.random = np.random.default_rng(11)
        self.read: tuple[int, Symbolic] | None = None
        self.known_weights: tuple[list[np.ndarray], list[np.ndarray]] | None = None
        self.known_exact: dict[int, list[Any]] = {}

    @property
    def differentiable(self) -> bool:
        return any(output.type.kind == "float" for output in self.outputs) and bool(self.leaves)

    def point(self, number: int) -> dict[str, np.ndarray]:
        return {name: values[number] for name, values in self.points.items()}

    def grid(self, shape: tuple[int, ...]) -> np.ndarray:
        """Short binary fractions between -1 and 1, none of them near 0."""
        values = self.random.uniform(0.25, 1, shape) * self.random.choice([-1.0, 1.0], shape)
        return np.round(values / GRID) * GRID

    @cached_property
    def values(self) -> list[Any]:
        """The outputs at all points, by NumPy in float64."""
        found = Tape(self.outputs).run(self.points, backend="numpy")
        return [
            np.broadcast_to(value, (self.count, *output.shape))
            for value, output in zip(found, self.outputs, strict=True)
        ]

    @cached_property
    def weights(self) -> list[np.ndarray]:
        return [self.grid(output.shape) for output in self.outputs]

    @property
    def exact_weights(self) -> list[np.ndarray]:
        """The weights as mpmath numbers, made anew where others were set."""
        if self.known_weights is None or self.known_weights[0] is not self.weights:
            self.known_weights = self.weights, [reference.exact(weight) for weight in self.weights]
        return self.known_weights[1]

    @cached_property
    def directions(self) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
        """Two directions in all leaves."""
        return tuple({n: self.grid(leaf.shape) for n, leaf in self.leaves.items()} for _ in range(2))  # type: ignore[return-value]

    @cached_property
    def loss(self) -> Node:
        """A scalar of all outputs: the sum of their entries, each with a weight of its own."""
        with building(self.builder, reachable([*self.outputs, *self.leaves.values()])) as builder:
            total = None
            for number, (output, weight) in enumerate(zip(self.outputs, self.weights, strict=True)):
                if output.type.kind != "float":
                    continue
                term = builder.call("mul", output, builder.array(f"weights{number}", weight, output.type))
                if output.shape:
                    term = builder.call("sum", term, axis=tuple(range(-len(output.shape), 0)))
                total = term if total is None else builder.call("add", total, term)
            assert total is not None
            return total

    @cached_property
    def programs(self) -> dict[str, list[Node]]:
        """Gradient programs of orders 1 to 3, by every order of modes that the engine knows.

        "u" and "v" stand for the two directions, whose leaves are `self.tangents`.
        """
        targets = list(self.leaves.values())
        with building(self.builder, reachable([self.loss, *targets])) as builder:
            u, v = ([builder.fresh_leaf(target.type) for target in targets] for _ in range(2))
            self.tangents = {
                node.params["name"]: direction[name]
                for nodes, direction in zip((u, v), self.directions, strict=True)
                for node, name in zip(nodes, self.leaves, strict=True)
            }
            gradient = derivatives.grad(self.loss, targets)
            along_u = derivatives.jvp([self.loss], targets, u)[0]
            second = derivatives.jvp([along_u], targets, v)[0]
            reverse_v = derivatives.jvp(gradient, targets, v)
            return {
                "gradient": gradient,
                "u": [along_u],
                "uv forward": [second],
                "·v forward over reverse": reverse_v,
                "·u reverse over forward": derivatives.grad(along_u, targets),
                "·u reverse over reverse": derivatives.vjp(gradient, u, targets),
                "uvv forward": derivatives.jvp([second], targets, v),
                "·vv forward over reverse": derivatives.jvp(reverse_v, targets, v),
                "·uv reverse over forward": derivatives.grad(second, targets),
            }

    @cached_property
    def found(self) -> dict[str, list[Any]]:
        """The values of all gradient programs at all points."""
        programs = self.programs
        nodes = [node for nodes in programs.values() for node in nodes]
        values = iter(Tape(nodes).run({**self.points, **self.tangents}, backend="numpy"))
        return {
            label: [np.broadcast_to(next(values), (self.count, *node.shape)) for node in nodes]
            for label, nodes in programs.items()
        }

    def dotted(self, label: str, direction: Mapping[str, np.ndarray]) -> np.ndarray:
        """The sum over leaves of a gradient times a direction, at each point."""
        return sum(
            (value * direction[name]).reshape(self.count, -1).sum(axis=1)
            for value, name in zip(self.found[label], self.leaves, strict=True)
        )

    def symbolic(self, number: int) -> Symbolic:
        """The loss at a point in symbols; the last one is kept for the next leaf."""
        if self.read is None or self.read[0] != number:
            self.read = number, Symbolic([self.loss], self.leaves, self.point(number), hold=True)
        return self.read[1]

    # --- the reference --------------------------------------------------------------------------------------

    def exact(self, point: Mapping[str, Any]) -> list[Any]:
        """The outputs to 80 digits; raises Missing where the tables have no row."""
        if isinstance(self.case, InnerCase):
            return [reference.value(output, point) for output in self.outputs]
        try:
            given = {name: reference.exact(value) for name, value in point.items()}
            found = numpy_reading.read(self.case.text, given, CALLS, reference.number)
        except KeyError as missing:
            raise Missing(str(missing)) from None
        return list(found) if isinstance(found, tuple) else [found]

    def exact_at(self, number: int) -> list[Any]:
        """The outputs to 80 digits at one of the points."""
        if number not in self.known_exact:
            self.known_exact[number] = self.exact(self.point(number))
        return self.known_exact[number]

    def total(self, point: Mapping[str, Any]) -> Any:
        """The sum of all entries of the outputs, to 80 digits."""
        return mp.fsum(x for value in self.exact(point) for x in np.ravel(np.asarray(value, dtype=object)))

    def exact_loss(self, point: Mapping[str, Any]) -> Any:
        total = mp.zero
        for value, weight, output in zip(self.exact(point), self.exact_weights, self.outputs, strict=True):
            if output.type.kind == "float":
                array = np.asarray(value, dtype=object)
                assert array.shape == output.shape, f"the reference has the shape {array.shape}"
                total += mp.fsum(np.ravel(weight * array))
        return total

    @cached_property
    def references(self) -> list[dict[str, Any]]:
        """Derivatives of the 80-digit loss by its own differences, at each point: gradient, u, uv, uvv."""
        u, v = self.directions
        found = []
        for number in range(self.count):
            point = self.point(number)

            def at(directions: Sequence[Mapping[str, Any]], point: Any = point) -> Callable[[Any], Any]:
                moved = reference.moving(point, directions)
                return lambda by: self.exact_loss(moved(by))

            gradient = {}
            for name, leaf in self.leaves.items() if number == 0 else ():  # entry by entry at the first point
                made = np.empty(leaf.shape, dtype=float)
                for place in np.ndindex(*leaf.shape):
                    unit = np.zeros(leaf.shape)
                    unit[place] = 1
                    made[place] = float(reference.along(at([{name: unit}]), 1))
                gradient[name] = made
            found.append(
                {
                    "gradient": gradient,
                    "u": float(reference.along(at([u]), 1)),
                    "uv": float(reference.along(at([u, v]), 1, 1)),
                    "uvv": float(reference.along(at([u, v]), 1, 2)),
                }
            )
        return found


@cache
def study(case: Case) -> Study:
    return Study(case)


def need(condition: object, reason: str) -> None:
    """Skip the law, with the reason, unless it applies."""
    if not condition:
        pytest.skip(reason)


def close(found: Any, expected: Any, tolerance: float, what: str) -> None:
    """Equal within a tolerance, relative to the larger of 1 and the largest entry."""
    found, expected = np.asarray(found, float), np.asarray(expected, float)
    scale = max(1.0, float(np.max(np.abs(expected), initial=0.0)))
    away = np.abs(found - expected)
    assert np.all(away <= tolerance * scale), (
        f"{what}: {found.tolist()} instead of {expected.tolist()}, off by {np.max(away) / scale:.1e}"
    )


def ulps(found: Any, expected: Any) -> np.ndarray:
    """The distance in units of the last place of the expected numbers; equal infinities and two NaNs have none."""
    found, expected = np.asarray(found, float), np.asarray(expected, float)
    same = (found == expected) | (np.isnan(found) & np.isnan(expected))
    with np.errstate(all="ignore"):
        distance = np.abs(found - expected) / np.spacing(np.abs(expected))
    return np.where(same, 0.0, np.where(np.isnan(distance), np.inf, distance))
