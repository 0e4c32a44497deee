"""The laws that every operation obeys, each a function of one case; `LAWS` is the table of them.

A law compares two readings of one declaration that share no code: floats with 80 digits, a gradient program with
differences of the value, a batch with a loop. A law that does not apply says why by `pytest.skip`; the reasons that no
declaration can tell stand in `EXEMPT`.
"""

from __future__ import annotations

import itertools
import math
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from gradcli import calculator
from gradcli.checks import balls, symbolic
from gradcli.checks.entries import Failure, Undecided, Unsupported
from gradcli.diagnostics import GradcliError
from gradcli.execution.domains import diagnose
from gradcli.execution.evaluate import Tape
from gradcli.graph.builder import building
from gradcli.graph.node import Node, reachable
from gradcli.graph.verify import verify, verify_pushforwards
from gradcli.primitives import catalogue
from gradcli.transforms import derivatives
from tests import numpy_reading, reference
from tests.cases import GRID, REFUSED, Case, InnerCase, cases
from tests.reference import Missing, mp
from tests.reference_arrays import CALLS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from gradcli.graph.primitive import Primitive

POINTS = 3

# (law, operation): why the law says nothing about it. "*" stands for every operation or every law.
EXEMPT: dict[tuple[str, str], str] = {}
_HELD = "its derivative is 0 by its meaning, not as a limit of differences"
for _name in ("detach", "hold", "peak", "magnitude"):
    for _law in ("derivatives_to_80_digits", "gradient_by_sympy", "higher_by_sympy", "jvp_by_differences"):
        EXEMPT[_law, _name] = _HELD
for _name in ("peak", "magnitude"):
    for _law in ("value_by_sympy", "value_by_balls"):
        EXEMPT[_law, _name] = "it cancels from every result, so exact readings take another number on purpose"
EXEMPT["value_to_80_digits", "ste"] = "its value is one operand's, its derivative the other's: the table has the other"
EXEMPT["jvp_by_differences", "ste"] = "its value does not depend on the operand that carries the derivative"
for _name in ("eigvecs", "svd_u", "svd_v"):
    for _law in ("value_by_sympy", "value_by_balls", "gradient_by_sympy", "higher_by_sympy"):
        EXEMPT[_law, _name] = "a vector of norm 1 is known up to its sign, and the exact forms choose another sign"


class Study:
    """A case with all that several laws need of it, computed once."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.outputs, self.leaves = case.nodes()
        self.builder = self.outputs[0].builder
        self.points = case.points(POINTS)
        self.random = np.random.default_rng(11)

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
            np.broadcast_to(value, (POINTS, *output.shape)) for value, output in zip(found, self.outputs, strict=True)
        ]

    @cached_property
    def weights(self) -> list[np.ndarray]:
        return [self.grid(output.shape) for output in self.outputs]

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
            label: [np.broadcast_to(next(values), (POINTS, *node.shape)) for node in nodes]
            for label, nodes in programs.items()
        }

    def dotted(self, label: str, direction: Mapping[str, np.ndarray]) -> np.ndarray:
        """The sum over leaves of a gradient times a direction, at each point."""
        return sum(
            (value * direction[name]).reshape(POINTS, -1).sum(axis=1)
            for value, name in zip(self.found[label], self.leaves, strict=True)
        )

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

    def exact_loss(self, point: Mapping[str, Any]) -> Any:
        total = mp.zero
        for value, weight, output in zip(self.exact(point), self.weights, self.outputs, strict=True):
            if output.type.kind == "float":
                array = np.asarray(value, dtype=object)
                assert array.shape == output.shape, f"the reference has the shape {array.shape}"
                total += mp.fsum(np.ravel(reference.exact(weight) * array))
        return total

    @cached_property
    def references(self) -> list[dict[str, Any]]:
        """Derivatives of the 80-digit loss by its own differences, at each point: gradient, u, uv, uvv."""
        u, v = self.directions
        found = []
        for number in range(POINTS):
            point = self.point(number)

            def at(directions: Sequence[Mapping[str, Any]], point: Any = point) -> Callable[[Any], Any]:
                return lambda by: self.exact_loss(reference.moved(point, directions, by))

            gradient = {}
            for name, leaf in self.leaves.items():
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


def place_of(point: Mapping[str, np.ndarray]) -> dict[str, tuple[list[float], tuple[int, ...]]]:
    """A point as the oracles of `checks` take it."""
    return {name: (np.ravel(value).tolist(), np.shape(value)) for name, value in point.items()}


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


# --- values ---------------------------------------------------------------------------------------------------

ROUNDING = 1e-13  # of a value, relative to its largest entry


def value_to_80_digits(case: Case) -> None:
    """`impl` in float64 = mpmath."""
    it = study(case)
    try:
        for number in range(POINTS):
            for value, exact in zip(it.values, it.exact(it.point(number)), strict=True):
                assert np.shape(value[number]) == np.shape(exact)
                close(value[number], np.asarray(exact, dtype=object).astype(float), ROUNDING, "value")
    except Missing as row:
        pytest.skip(f"no row in tests/reference.py: {row}")


def value_by_numpy(case: Case) -> None:
    """The function of NumPy or SciPy with this name, called with the same text, gives the same array."""
    need(not isinstance(case, InnerCase), "no script can call it")
    it = study(case)
    for number in range(POINTS):
        try:
            with np.errstate(all="ignore"):
                found = numpy_reading.read(case.text, it.point(number))
        except KeyError as name:
            pytest.skip(f"NumPy and SciPy have no {name}")
        found = found if isinstance(found, tuple) else (found,)
        for value, other in zip(it.values, found, strict=True):
            assert np.shape(value[number]) == np.shape(other)
            close(value[number], other, ROUNDING, "value")


def value_by_sympy(case: Case) -> None:
    """`symbolic`, evaluated at the point = `impl`."""
    it = study(case)
    for number in range(POINTS):
        place = symbolic.Place(place_of(it.point(number)))
        symbols = symbolic.Symbols()
        field = symbolic.SymbolicField(symbols, place, hold=False)
        given = {}
        for name, leaf in it.leaves.items():
            flat = [symbols.symbol(f"{name}[{i}]", ("node", leaf, i)) for i in range(leaf.type.size)]
            given[name] = symbolic.Entries(flat, leaf.shape)
        try:
            entries = symbolic.Reading(field, given).read(it.outputs)
        except Unsupported as reason:
            pytest.skip(f"no reading in symbols: {reason}")
        for value, found in zip(it.values, entries, strict=True):
            numbers = [_sympy_number(field, entry) for entry in found.flat]
            close(value[number].reshape(-1), numbers, ROUNDING, "value in symbols")


def _sympy_number(field: Any, entry: Any) -> float:
    if isinstance(entry, (bool, int)):
        return float(entry)
    if isinstance(entry, Failure):
        pytest.skip(f"no reading in symbols: {entry}")
    return float(field.symbols.value(entry, field.place, 256).mid())


def value_by_balls(case: Case) -> None:
    """`ball` encloses the value to 80 digits, tightly, and `impl` is near."""
    it = study(case)
    for number in range(POINTS):
        point = it.point(number)
        try:
            found = balls.enclose(it.outputs, place_of(point), seconds=20)
        except Unsupported as reason:
            pytest.skip(f"no reading in balls: {reason}")
        for k, (value, entries) in enumerate(zip(it.values, found, strict=True)):
            for entry in entries.flat:
                if isinstance(entry, Failure):
                    need("2x2" in str(entry.node), f"{entry}")
                    pytest.skip("no closed form for balls")
            middle = [float(x.mid()) if hasattr(x, "mid") else float(x) for x in entries.flat]
            close(value[number].reshape(-1), middle, ROUNDING, "value in balls")
            for entry, plain in zip(entries.flat, _exact_entries(it, point, k), strict=False):
                if hasattr(entry, "rel_accuracy_bits"):
                    assert entry.rel_accuracy_bits() >= 56 or balls.is_tiny(entry)
                    assert _inside(entry, plain), f"{entry} does not hold {plain}"


def _exact_entries(it: Study, point: Any, k: int) -> list[Any]:
    if ("value_to_80_digits", it.case.name) in EXEMPT:
        return []
    try:
        return list(np.ravel(np.asarray(it.exact(point)[k], dtype=object)))
    except Missing:
        return []


def _inside(ball: Any, exact: Any) -> bool:
    with balls.precision(256):
        text = mp.nstr(reference.number(exact), 50)
        near = type(ball)(text) * (1 + type(ball)(0, "1e-30")) + type(ball)(0, "1e-30")  # some rows are differences
        return bool(ball.overlaps(near))


# --- derivatives ------------------------------------------------------------------------------------------------

TOLERANCE = {1: 1e-11, 2: 1e-9, 3: 1e-7}


def derivatives_to_80_digits(case: Case) -> None:
    """Gradient programs of orders 1 to 3, in every order of modes = differences of the 80-digit value."""
    it = study(case)
    need(it.differentiable, "no float output depends on a leaf")
    u, v = it.directions
    try:
        expected = it.references
    except Missing as row:
        pytest.skip(f"no row in tests/reference.py: {row}")
    for number, right in enumerate(expected):
        for value, name in zip(it.found["gradient"], it.leaves, strict=True):
            close(value[number], right["gradient"][name], TOLERANCE[1], f"gradient in {name}")
    size = np.array([max(1.0, *(np.abs(g).max(initial=0) for g in right["gradient"].values())) for right in expected])
    for label, values, order in (
        ("u", it.found["u"][0], 1),
        ("uv", it.found["uv forward"][0], 2),
        ("uv", it.dotted("·v forward over reverse", u), 2),
        ("uv", it.dotted("·u reverse over forward", v), 2),
        ("uv", it.dotted("·u reverse over reverse", v), 2),
        ("uvv", it.found["uvv forward"][0], 3),
        ("uvv", it.dotted("·vv forward over reverse", u), 3),
        ("uvv", it.dotted("·uv reverse over forward", v), 3),
    ):
        right = np.array([one[label] for one in expected])
        close(values / size, right / size, TOLERANCE[order], f"order {order}, {label}")


def gradient_by_sympy(case: Case) -> None:
    """The gradient program = `sympy.diff` of the value in symbols; of numbers also the second and third derivatives."""
    it = study(case)
    need(it.differentiable, "no float output depends on a leaf")
    for number in range(POINTS):
        for position, (name, leaf) in enumerate(it.leaves.items()):
            found = sympy_gradient(it, number, leaf)
            need(found is not None, f"no derivative in symbols: {REASONS.get(case, '')}")
            close(it.found["gradient"][position][number], found, TOLERANCE[1], f"gradient in {name}")


REASONS: dict[Case, str] = {}


def sympy_gradient(it: Study, number: int, leaf: Node) -> np.ndarray | None:
    """The gradient of the loss in one leaf, by SymPy; None where it has nothing to say."""
    place = symbolic.Place(place_of(it.point(number)))
    try:
        made = symbolic.derive(it.loss, leaf, list(it.leaves), place)
        entries = [float(made.symbols.value(made.entries[i], place, 256).mid()) for i in range(leaf.type.size)]
    except (Unsupported, Undecided, symbolic.UndefinedAt, symbolic.Tie) as reason:
        REASONS[it.case] = f"{type(reason).__name__}: {reason}"
        return None
    return np.reshape(entries, leaf.shape)


def higher_by_sympy(case: Case) -> None:
    """Second and third derivatives of functions of numbers = `sympy.diff`, twice and three times."""
    import sympy

    it = study(case)
    need(it.differentiable, "no float output depends on a leaf")
    need(all(leaf.shape == () for leaf in it.leaves.values()), "done for functions of numbers; arrays by 80 digits")
    u, v = it.directions
    for number in range(POINTS):
        place = symbolic.Place(place_of(it.point(number)))
        second = third = 0.0
        for first, leaf in it.leaves.items():
            try:
                made = symbolic.derive(it.loss, leaf, list(it.leaves), place)
            except (Unsupported, symbolic.Tie) as reason:
                pytest.skip(f"no derivative in symbols: {reason}")
            names = {meaning[1].params["name"]: symbol for symbol, meaning in made.symbols.meaning.items()
                     if meaning[0] == "node" and meaning[1].name}  # fmt: skip
            for other, symbol in names.items():
                twice = sympy.diff(made.entries[0], symbol)
                second += float(u[first] * v[other]) * _ball(made, twice, place)
                for last, another in names.items():
                    thrice = sympy.diff(twice, another)
                    third += float(u[first] * v[other] * v[last]) * _ball(made, thrice, place)
        close(it.found["uv forward"][0][number], second, TOLERANCE[2], "second derivative")
        close(it.found["uvv forward"][0][number], third, TOLERANCE[3], "third derivative")


def _ball(made: Any, expression: Any, place: Any) -> float:
    try:
        return float(made.symbols.value(symbolic.accepted(expression), place, 256).mid())
    except Unsupported as reason:
        pytest.skip(f"no derivative in symbols: {reason}")


def float_difference(it: Study, direction: Mapping[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """The derivative of the loss along a direction at every point by five values each, and its error bound.

    Of a ladder of steps, the one whose neighbour agrees best; the bound is that distance plus rounding.
    """
    steps = 2.0 ** -np.arange(4, 14)
    offsets = np.array([-2.0, -1.0, 1.0, 2.0])
    by = (steps[:, None] * offsets).reshape(-1)
    values = {}
    for name, at in it.points.items():
        way = direction.get(name)
        moved = at[None] if way is None else at[None] + by.reshape((-1,) + (1,) * at.ndim) * way
        values[name] = np.broadcast_to(moved, (len(by), *at.shape))
    found = np.asarray(Tape(it.loss).run(values, backend="numpy")[0], float)
    found = np.broadcast_to(found, (len(by), POINTS)).reshape(len(steps), 4, POINTS)
    with np.errstate(all="ignore"):
        slopes = (found[:, 0] - 8 * found[:, 1] + 8 * found[:, 2] - found[:, 3]) / (12 * steps[:, None])
        rounding = 32 * np.finfo(float).eps * np.abs(found).max(axis=1) / steps[:, None]
        away = np.abs(slopes[1:] - slopes[:-1]) + rounding[1:]
    away = np.where(np.isfinite(away), away, np.inf)
    best = np.argmin(away, axis=0)
    pick = np.arange(POINTS)
    return slopes[1:][best, pick], 2 * away[best, pick]


def jvp_by_differences(case: Case) -> None:
    """Forward mode = a difference of float values, within the difference's own error bound."""
    it = study(case)
    need(it.differentiable, "no float output depends on a leaf")
    slope, bound = float_difference(it, it.directions[0])
    need(np.isfinite(slope).all(), "the value is not finite around the point")
    found = it.found["u"][0]
    assert np.all(np.abs(found - slope) <= bound), f"{found} and {slope} are more than {bound} apart"
    assert np.all(bound <= 1e-6 * np.maximum(1, np.abs(slope))), f"a bound of {bound} decides nothing"


def adjoint(case: Case) -> None:
    """<ct, jvp(t)> = <vjp(ct), t>. It says nothing of an elementwise rule, which both modes share."""
    primitive = catalogue()[case.name]
    need(primitive.kind != "elementwise", "both modes read the same partials, so this could not fail")
    it = study(case)
    need(it.differentiable, "no float output depends on a leaf")
    forward, back = it.found["u"][0], it.dotted("gradient", it.directions[0])
    close(back, forward, 1e-12, "reverse and forward mode")


# --- types, batches, backends -----------------------------------------------------------------------------------


def types(case: Case) -> None:
    """The type rule tells the shape and the kind of what is computed, of gradients too."""
    it = study(case)
    single = it.point(0)
    nodes = [*it.outputs, *(it.programs["gradient"] if it.differentiable else [])]
    values = Tape(nodes).run_all({**single, **getattr(it, "tangents", {})}, backend="numpy")
    for node, value in values.items():
        assert np.shape(value) == node.shape, node
    for node in nodes:
        assert node.type.kind in ("float", "bool", "int")
    if it.differentiable:
        assert [g.shape for g in it.programs["gradient"]] == [leaf.shape for leaf in it.leaves.values()]


def batch(case: Case) -> None:
    """Leading axes equal a loop, for every choice of operands that have them, in value and gradient."""
    it = study(case)
    nodes = [*it.outputs, *(it.programs["gradient"] if it.differentiable else [])]
    tape = Tape(nodes)
    tangents = getattr(it, "tangents", {})
    for chosen in itertools.product((False, True), repeat=len(it.leaves)):
        if not any(chosen):
            continue
        mixed = dict(zip(it.leaves, chosen, strict=True))
        given = {n: v if mixed[n] else v[0] for n, v in it.points.items()}
        found = tape.run({**given, **tangents}, backend="numpy")
        for number in range(POINTS):
            single = {n: v[number] if mixed[n] else v for n, v in given.items()}
            rows = tape.run({**single, **tangents}, backend="numpy")
            for node, value, row in zip(nodes, found, rows, strict=True):
                one = np.broadcast_to(value, (POINTS, *node.shape))[number]
                close(one, row, 1e-13, f"row {number} of a batch in {[n for n in mixed if mixed[n]]}, {node!r}")
    if it.leaves:  # two batch axes, the second of them broadcast
        deep = {n: v[:, None] for n, v in it.points.items()}
        first = next(iter(deep))
        deep[first] = np.repeat(deep[first], 2, axis=1)
        for node, value, plain in zip(
            nodes, tape.run({**deep, **tangents}), tape.run({**it.points, **tangents}), strict=True
        ):
            plain = np.broadcast_to(plain, (POINTS, *node.shape))
            value = np.broadcast_to(value, (POINTS, 2, *node.shape))
            close(value[:, 1], plain, 1e-13, f"two batch axes, {node!r}")


MATH_ULPS = 4


def math_equals_numpy(case: Case) -> None:
    """Python's `math` and NumPy agree within 4 ulp, in value and gradient, where both compute."""
    it = study(case)
    nodes = [*it.outputs, *(it.programs["gradient"] if it.differentiable else [])]
    need(Tape(nodes).scalar, "only programs of single numbers run on math")
    from gradcli.execution.namespaces import Unavailable

    bound = MATH_ULPS if len(reachable(it.outputs)) <= 1 + len(it.leaves) else 4 * MATH_ULPS
    for number in range(POINTS):
        given = {n: float(v) for n, v in it.point(number).items()}
        try:
            found = Tape(it.outputs).run(given, backend="math")
        except Unavailable as reason:
            pytest.skip(f"math has not all of it: {reason}")
        plain = Tape(it.outputs).run(given, backend="numpy")
        assert np.all(ulps(found, plain) <= bound), f"{found} by math, {plain} by NumPy at {given}"
        close(Tape(nodes).run(given), Tape(nodes).run(given, backend="numpy"), 1e-13, "gradient by math")


def _other_backend(case: Case, backend: str, tolerance: float) -> None:
    it = study(case)
    nodes = [*it.outputs, *(it.programs["gradient"] if it.differentiable else [])]
    given = {**it.points, **getattr(it, "tangents", {})}
    try:
        found = Tape(nodes).run(given, backend=backend)
    except GradcliError as problem:
        first = problem.diagnostics[0]
        need(first.code not in ("GC713", "GC714"), first.message)
        raise
    for node, value, plain in zip(nodes, found, Tape(nodes).run(given, backend="numpy"), strict=True):
        close(value, plain, tolerance, f"{node!r} by {backend}")


def jax_equals_numpy(case: Case) -> None:
    """The same by jax.numpy, to 1e-12."""
    _other_backend(case, "jax", 1e-12)


def cupy_equals_numpy(case: Case) -> None:
    """The same by CuPy, to 1e-12."""
    _other_backend(case, "cupy", 1e-12)


def float32(case: Case) -> None:
    """In single precision the value and the gradient are float32, and near those in double precision."""
    it = study(case)
    nodes = [*it.outputs, *(it.programs["gradient"] if it.differentiable else [])]
    given = {**it.points, **getattr(it, "tangents", {})}
    single = Tape(nodes).run(given, backend="numpy", dtype="float32")
    for node, value, plain in zip(nodes, single, Tape(nodes).run(given, backend="numpy"), strict=True):
        if node.type.kind == "float" and node.shape:
            assert value.dtype == np.float32, f"{node!r} came out as {value.dtype}"
        close(value, plain, 2e-4, f"{node!r} in float32")


# --- structure ----------------------------------------------------------------------------------------------------


def well_formed(case: Case) -> None:
    """`verify` accepts the program, its gradient programs of three orders, and every pushforward."""
    it = study(case)
    verify(it.outputs)
    if it.differentiable:
        for nodes in it.programs.values():
            verify(nodes)
        if it.loss.type.size and max(node.type.size for node in reachable(it.outputs)) <= 64:
            verify_pushforwards(it.programs["gradient"])


# --- domain -------------------------------------------------------------------------------------------------------


def finite_inside(case: Case) -> None:
    """Value and gradient are finite at points of the domain."""
    it = study(case)
    assert all(np.isfinite(value).all() for value in it.values), "the value"
    if it.differentiable:
        assert all(np.isfinite(value).all() for value in it.found["gradient"]), "the gradient"


def outside_is_diagnosed(primitive: Primitive) -> None:
    """Outside its domain an operation has the IEEE value, NaN or infinite, and a diagnostic with a span says so."""
    need(not primitive.internal, "no script can call it")
    need(any(math.isfinite(x) for d in primitive.domain for x in (d.low, d.high)), "its domain is every number")
    case = next((c for c in cases(primitive.name) if c.leaves), None)
    need(case is not None and len(case.leaves) == len(primitive.domain), "no case with all of its operands")
    assert case is not None
    for name, domain in zip(case.leaves, primitive.domain, strict=True):
        for end, way in ((domain.low, -1), (domain.high, 1)):
            if not math.isfinite(end):
                continue
            at = {n: v.tolist() for n, v in case.one().items()}
            at[name] = np.full(case.leaves[name].shape, end + way * 0.625).tolist()
            answer = calculator.evaluate(case.text, at=at)
            assert not np.isfinite(answer.value).any(), f"{answer.value} outside the domain {domain}, at {end}"
            said = [one for one in answer.diagnostics if one.code in ("GC401", "GC402", "GC403")]
            assert said, "no diagnostic"
            assert said[0].span is not None, said[0].message
            open_end = domain.low_open if way < 0 else domain.high_open
            at[name] = np.full(case.leaves[name].shape, end).tolist()
            on_edge = calculator.evaluate(case.text, at=at)
            assert np.isfinite(on_edge.value).all() == (not open_end), f"{on_edge.value} on the edge {end} of {domain}"


# --- kinks --------------------------------------------------------------------------------------------------------


def examples(primitive: Primitive) -> None:
    """The examples of a declaration, executed by the library call of `gradcli eval`."""
    need(not primitive.internal or primitive.examples, "no script can call it")
    assert primitive.examples, "a function without an example"
    for text, expected in primitive.examples:
        answer = calculator.evaluate(text)
        assert np.shape(answer.value) == np.shape(expected), text
        assert np.all(ulps(answer.value, expected) <= 4), f"{text} is {answer.value}, not {expected}"
        assert not answer.diagnostics, answer.diagnostics


def refuses_what_numpy_refuses(primitive: Primitive) -> None:
    """A static argument that NumPy does not take is an error with a span, never read as something else."""
    cases(primitive.name)
    refused = REFUSED.get(primitive.name, [])
    need(refused, "NumPy takes all of the static arguments that are tried")
    for case in refused:
        with pytest.raises(GradcliError) as problem:
            case.lowered()
        assert problem.value.diagnostics[0].span is not None, case.text


def documented(primitive: Primitive) -> None:
    """What a script can call has a summary, a formula, a domain for each operand and an example."""
    need(not primitive.internal, "no script can call it")
    assert primitive.summary.endswith((".", "?")), primitive.summary
    assert primitive.formula
    assert primitive.examples
    counted = [leaf for case in cases(primitive.name) for leaf in case.leaves]
    assert primitive.domain or not counted, "no domain"


# name: (law of a case, for inner operations too)
CASE_LAWS: dict[str, Callable[[Case], None]] = {
    "value_to_80_digits": value_to_80_digits,
    "value_by_numpy": value_by_numpy,
    "value_by_sympy": value_by_sympy,
    "value_by_balls": value_by_balls,
    "derivatives_to_80_digits": derivatives_to_80_digits,
    "gradient_by_sympy": gradient_by_sympy,
    "higher_by_sympy": higher_by_sympy,
    "jvp_by_differences": jvp_by_differences,
    "adjoint": adjoint,
    "types": types,
    "batch": batch,
    "math_equals_numpy": math_equals_numpy,
    "jax_equals_numpy": jax_equals_numpy,
    "cupy_equals_numpy": cupy_equals_numpy,
    "float32": float32,
    "well_formed": well_formed,
    "finite_inside": finite_inside,
}

# laws of a declaration as a whole
PRIMITIVE_LAWS: dict[str, Callable[[Primitive], None]] = {
    "outside_is_diagnosed": outside_is_diagnosed,
    "examples": examples,
    "refuses_what_numpy_refuses": refuses_what_numpy_refuses,
    "documented": documented,
}

__all__ = ["CASE_LAWS", "EXEMPT", "PRIMITIVE_LAWS", "Study", "diagnose", "float_difference", "study", "sympy_gradient"]
