"""Every rule of every primitive is damaged in turn, and at least two independent oracles must notice.

Of a damaged derivative rule: SymPy's derivative of the value in symbols, a difference of float values with its own error
bound, and the difference of the value to 80 digits (in balls where mpmath has no row). Forward against reverse does
not count. Of a damaged value: 80 digits, NumPy's function of the same name, symbols, balls, the examples.
"""

from __future__ import annotations

from collections import Counter
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from gradcli import calculator
from gradcli.diagnostics import GradcliError
from gradcli.execution.evaluate import Tape
from gradcli.graph.builder import building
from gradcli.graph.domain import Interval
from gradcli.graph.node import reachable
from gradcli.primitives import catalogue
from gradcli.transforms import derivatives
from tests import numpy_reading, reference, reference_arrays
from tests.cases import Case, InnerCase, cases
from tests.damage import Mutant, rule_mutants, value_mutants
from tests.laws import EXEMPT
from tests.laws_derivatives import float_difference, sympy_gradient
from tests.oracles import Silent, Symbolic, ball_slope, ball_values, middle
from tests.reference import Missing
from tests.study import Study

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from gradcli.graph.primitive import Primitive

NAMES = tuple(catalogue())
SCORE: Counter[str] = Counter()  # printed at the end by conftest.py
MOST_CASES = 6

# Functions that are the same with their first two operands exchanged: checked to 80 digits below.
SYMMETRIC = (
    "equal", "not_equal", "and", "or", "hypot", "maximum", "minimum", "clamp", "logaddexp", "beta", "dot", "inner",
    "vecdot", "mse_loss", "l1_loss", "huber_loss", "cosine_similarity",
)  # fmt: skip
_SHIFT = "a shift of all entries cancels, whatever it is"
# Vectors of norm 1 are known up to their sign.
UP_TO_SIGN = ("eigvecs", "svd_u", "svd_v")
# (operation, rule, damage): why the damaged rule is as good as the right one.
EQUIVALENT: dict[tuple[str, str, str], str] = {
    **{(name, "impl" if catalogue()[name].impl else "definition", "swapped"): "it is symmetric" for name in SYMMETRIC},
    **{(name, rule, "sign"): "-v is as good as v" for name in UP_TO_SIGN for rule in ("impl", "definition")},
    ("eigvecs", "definition", "axis"): "of a 2 by 2 matrix these are [[-s, c], [c, s]], a symmetric matrix",
    ("softmax", "definition", "term 1 dropped"): _SHIFT,
    ("log_softmax", "definition", "term 1 dropped"): _SHIFT,
    ("logsumexp", "definition", "term 1 dropped"): _SHIFT,
    ("logsumexp", "definition", "term 3 dropped"): "the shift is held: it has no derivative",
    ("full", "definition", "axis"): "all entries are equal",
    ("zeros", "definition", "sign"): "-0 equals 0",
    ("zeros", "definition", "factor 2"): "2*0 is 0",
    ("zeros", "definition", "1e-6"): "the same",
}
# Operations that are not judged, and why.
UNJUDGED = {
    "rand": "random numbers have no other source: tests below compare them with NumPy's generator",
    "randn": "random numbers have no other source: tests below compare them with NumPy's generator",
    "peak": "it cancels from every result, so no oracle sees it; the test of overflow below does",
    "magnitude": "it cancels from every result, so no oracle sees it; the test of overflow below does",
    "larger_than_2x2": "it is NaN, and stands for the absence of a closed form",
    "name": "only a script that differentiates by an intermediate makes it",
}
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
        elif isinstance(case, InnerCase) and case.primitive.kind == "nondifferentiable" and len(self.points) == 2:
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
            for number in range(0, self.count, 3 if self.count > 3 else 1):
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
            return float(reference.along(lambda by: self.exact_loss(reference.moved(point, [way], by)), 1))
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
    def right_values(self) -> dict[str, list[list[np.ndarray | None]]]:
        """By oracle, point and output: the value, or None."""
        found: dict[str, list[list[np.ndarray | None]]] = {}
        for number in range(0, self.count, 3 if self.count > 3 else 1):
            point = self.point(number)
            for oracle, made in self._readings(point).items():
                found.setdefault(oracle, []).append(made)
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
        """The oracles that contradict the outputs at some point."""
        contradicting = set()
        for oracle, points in self.right_values.items():
            if not self.asked(oracle, derivative=False):
                continue
            for row, number in zip(points, range(0, self.count, 3 if self.count > 3 else 1), strict=True):
                for right, value, output in zip(row, values, self.outputs, strict=True):
                    mine = np.broadcast_to(value, (self.count, *output.shape))[number]
                    if self.case.name in UP_TO_SIGN:
                        mine, right = aligned(mine), aligned(np.asarray(right))
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
    count = 24 if kinky else 8 if read_by_definition else 3
    found = cases(name)
    return tuple(Trial(case, 4 * count if deep else count) for case in (found if deep else found[:MOST_CASES]))


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
    return {name: np.concatenate([near[name][: count // 2], far[name][count // 2 :]]) for name in near}


# --- verdicts ------------------------------------------------------------------------------------------------------


def judged(mutant: Mutant, deep: bool = False) -> set[str] | None:
    """The oracles that notice a mutant; None where the damage applies to no case of the operation."""
    primitive, rule = mutant.primitive, mutant.rule
    if rule == "definition" and primitive.impl is None:
        return judged_by_value(mutant, deep, lowered_anew=True)
    if rule == "impl":
        return judged_by_value(mutant, deep, lowered_anew=False)
    if rule == "definition" and primitive.kind != "composite":
        return judged_by_reading(mutant, deep)
    noticed: set[str] = set()
    for it in trials(primitive.name, deep):
        if not it.differentiable:
            continue
        try:
            with mutant.installed():
                found = it.gradient()
        except (GradcliError, ValueError, TypeError, IndexError, AssertionError):
            return {"refused by the builder", "refused by the type rule"}
        noticed |= it.notices(found)
    if rule == "definition" and not primitive.symbolic and not primitive.entries:
        noticed -= {"symbols"}  # that reading follows the definition too
    return noticed if mutant.applied else None


def judged_by_value(mutant: Mutant, deep: bool, lowered_anew: bool) -> set[str] | None:
    """Oracles that contradict the value; those that follow the damaged definition themselves do not count."""
    noticed: set[str] = set()
    for it in trials(mutant.primitive.name, deep):
        try:
            with mutant.installed():
                outputs = it.case.nodes()[0] if lowered_anew else it.outputs
                found = Tape(outputs).run(it.points, backend="numpy")
            if [output.type for output in outputs] != [output.type for output in it.outputs]:
                return {"digits", "numpy"}  # another shape than both have
        except (GradcliError, ValueError, TypeError, IndexError):
            return {"refused by the builder", "refused by the type rule"}
        noticed |= it.value_notices(found)
    if lowered_anew:
        noticed -= {"symbols", "balls"}
    noticed |= judged_by_examples(mutant)
    return noticed if mutant.applied else None


def judged_by_examples(mutant: Mutant) -> set[str]:
    """Whether the examples of the declaration notice; those without an operand are read by NumPy and in digits too."""
    noticed: set[str] = set()
    for text, expected in mutant.primitive.examples:
        try:
            with mutant.installed():
                value = calculator.evaluate(text, backend="numpy").value
        except (GradcliError, ValueError, TypeError, IndexError):
            value = np.nan
        if differ(value, expected):
            noticed.add("examples")
        for oracle, table, number in (
            ("numpy", numpy_reading.FLOATS, np.float64),
            ("digits", reference_arrays.CALLS, reference.number),
        ):
            try:
                with np.errstate(all="ignore"):
                    right = numpy_reading.read(text, {}, table, number)
            except KeyError:
                continue
            if differ(value, np.asarray(right, dtype=object).astype(float)):
                noticed.add(oracle)
    return noticed


def judged_by_reading(mutant: Mutant, deep: bool) -> set[str] | None:
    """A definition that only exact readings follow: symbols and balls against float values and digits."""
    noticed: set[str] = set()
    for it in trials(mutant.primitive.name, deep):
        for number in range(it.count):
            floats = [
                np.broadcast_to(v, (it.count, *o.shape))[number] for v, o in zip(it.values, it.outputs, strict=True)
            ]
            for oracle, reading in (("symbols", symbols_read), ("balls", balls_read)):
                try:
                    with mutant.installed():
                        found = reading(it, it.point(number))
                except Silent as reason:
                    if "2x2" not in str(reason):
                        noticed.add(f"{oracle} refuses")
                    continue
                except (GradcliError, ArithmeticError, ValueError, TypeError, IndexError):
                    noticed.add(f"{oracle} refuses")
                    continue
                if mutant.primitive.name in UP_TO_SIGN:
                    found, floats = [aligned(x) for x in found], [aligned(x) for x in floats]
                if any(differ(a, b) for a, b in zip(found, floats, strict=True)):
                    noticed.add(oracle)
    return noticed if mutant.applied else None


def all_mutants(primitive: Primitive) -> Iterator[Mutant]:
    yield from value_mutants(primitive)
    yield from rule_mutants(primitive)


DEPTHS = [pytest.param(False, id="some"), pytest.param(True, id="all", marks=pytest.mark.deep)]


@pytest.mark.parametrize("deep", DEPTHS)
@pytest.mark.parametrize("name", NAMES)
def test_right_rules_pass(name: str, deep: bool) -> None:
    """No oracle contradicts an operation that is not damaged: else a mutant would be noticed for nothing."""
    for it in trials(name, deep):
        assert not it.value_notices(it.values), it.case
        if it.differentiable:
            contradicting = it.notices(it.gradient())
            assert not contradicting, (it.case, contradicting)


@pytest.mark.parametrize("deep", DEPTHS)
@pytest.mark.parametrize("name", [name for name in NAMES if name not in UNJUDGED])
def test_mutants_are_noticed(name: str, deep: bool) -> None:
    """Two independent oracles notice every damage to every rule of an operation."""
    survivors = []
    for mutant in all_mutants(catalogue()[name]):
        noticed = judged(mutant, deep)
        if noticed is None:
            SCORE["not applicable"] += 1
            continue
        if mutant.key in EQUIVALENT:
            assert not noticed, f"{mutant} is noticed by {noticed}: it is not equivalent"
            SCORE["equivalent"] += 1
            continue
        SCORE["mutants"] += 1
        SCORE["noticed"] += len(noticed) >= 2
        for oracle in noticed:
            SCORE[f"by {oracle}"] += 1
        if len(noticed) < 2:
            survivors.append((mutant, sorted(noticed)))
    assert not survivors, survivors


@pytest.mark.parametrize("name", SYMMETRIC)
def test_symmetric(name: str) -> None:
    """What is called symmetric is symmetric, to 80 digits."""
    it = trials(name)[0]
    leaves = list(it.points)
    point = it.point(0)
    if len(leaves) < 2:
        assert name in ("and", "or")
        return
    turned = {**point, leaves[0]: point[leaves[1]], leaves[1]: point[leaves[0]]}
    for one, other in zip(it.exact(point), it.exact(turned), strict=True):
        assert not differ(np.asarray(one, dtype=object).astype(float), np.asarray(other, dtype=object).astype(float))


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("peak", "logsumexp([1000, 1000])", 1000.6931471805599),
        ("peak", "softmax([1000, 1000])", [0.5, 0.5]),
        ("magnitude", "norm([3e200, 4e200])", 5e200),
    ],
)
def test_what_keeps_numbers_in_range(name: str, text: str, expected: Any) -> None:
    """Without the shift or the scale the value overflows."""
    assert not differ(calculator.evaluate(text).value, expected)
    primitive = catalogue()[name]
    nothing = Mutant(primitive, "impl", "none", lambda damaged: lambda xp, x, **p: primitive_neutral(xp, x, name, **p))
    users = [catalogue()[user] for user in ("logsumexp", "softmax", "norm")]
    right = [user.impl for user in users]
    try:
        for user in users:  # their own routines shift too: only the definitions are asked
            user.impl = None
        with nothing.installed():
            assert not np.isfinite(calculator.evaluate(text).value).all()
    finally:
        for user, impl in zip(users, right, strict=True):
            user.impl = impl


def primitive_neutral(xp: Any, x: Any, name: str, *, ranks: Any, axis: Any) -> Any:
    shape = xp.sum(x, axis=axis)
    return shape * 0 + (name == "magnitude")


@pytest.mark.parametrize(("name", "method"), [("rand", "random"), ("randn", "standard_normal")])
def test_random_arrays(name: str, method: str) -> None:
    """Seeded arrays are those of NumPy's PCG64; without a seed each call has numbers of its own, the same every time."""
    right = getattr(np.random.Generator(np.random.PCG64(7)), method)((2, 3))
    assert np.array_equal(calculator.evaluate(f"{name}(2, 3, seed=7)").value, right)
    two = calculator.evaluate(f"[{name}(3), {name}(3)]").value
    assert not np.array_equal(two[0], two[1])
    assert np.array_equal(two, calculator.evaluate(f"[{name}(3), {name}(3)]").value)
