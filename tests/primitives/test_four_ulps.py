"""Every operation on single numbers is within 4 ulp of the exact value, which balls enclose: by each way to compute it.

Machine code has functions of its own, whose errors `test_native.py` measures.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import flint
import numpy as np
import pytest

import gradcli
from gradcli.checks.evaluate import balls
from gradcli.checks.evaluate.interpretation import Unsupported
from gradcli.execution.evaluate import Tape
from gradcli.execution.namespaces import Unavailable
from gradcli.graph.node import reachable
from gradcli.language.parser import parse
from gradcli.lowering import lower
from tests.support.cases import public, script_cases

if TYPE_CHECKING:
    from gradcli.graph.node import Node
    from tests.support.cases import Case

LIMIT, COUNT = 4, 40
BITS = 256
HARD = [  # zeros, large arguments and tails: where SciPy's routines lose their digits
    ("lgamma(x)", [0.51, 0.9999999, 1.0000001, 1.4, 1.99999, 2.0, 50.5, -2.457024738220801, -0.5]),
    ("betaln(x, 0.25)", [0.7, 1, 1e5, 1e300]),
    ("jn(2, x)", [1e-200, 1e-3, 5.135622301840683, 1e10]),
    ("jn(50, x)", [0.001, 3, 30, -70]),
    ("gammainc(0.125, x)", [1e-300, 0.05, 0.2, 30]),
    ("gammainc(50, x)", [0.5, 30, 50, 200]),
    ("gammaincc(0.375, x)", [0.05, 0.2, 30, 600]),
    ("betainc(2.5, 0.375, x)", [1e-50, 0.1, 0.5, 0.999999999]),
    ("betainc(30, 20, x)", [0.001, 0.5, 0.99]),
]


def exactly(function: str, *xs: float) -> Any:
    """The value as a ball."""
    before, flint.ctx.prec = flint.ctx.prec, BITS
    try:
        first, *rest = map(flint.arb, xs)
        return first ** rest[0] if function == "pow" else getattr(first, function)()
    finally:
        flint.ctx.prec = before


def ulps(found: float, exact: Any) -> float:
    """The distance in units of the last place of the exact value."""
    before, flint.ctx.prec = flint.ctx.prec, BITS
    try:
        unit = math.ulp(abs(float(exact)))
        return float(abs(flint.arb(found) - exact) / flint.arb(unit))
    finally:
        flint.ctx.prec = before


def alone(case: Case) -> bool:
    """Whether a case is one operation on single numbers."""
    outputs, leaves = case.nodes()
    nodes = reachable(outputs)
    single = not any(node.shape for node in nodes) and outputs[0].type.kind == "float"
    return single and len(leaves) > 0 and len([node for node in nodes if node.args]) == len(outputs) == 1


CASES = [case for name in public() for case in script_cases(name) if alone(case)]


def exact(outputs: list[Node], point: dict[str, float]) -> Any:
    """The ball of the value at a point."""
    return balls.enclose(outputs, {name: ([value], ()) for name, value in point.items()})[0].flat[0]


def each_way(case: Case, outputs: list[Node], points: dict[str, Any]) -> dict[str, Any]:
    """The values at all points: by the evaluator on Python's floats and on arrays, and by a plan."""
    tape = Tape(outputs)
    found = {"arrays": tape.run(points, backend="numpy")[0], "plan": gradcli.compile(case.text).at_points(**points)[0]}
    each = [{name: float(values[at]) for name, values in points.items()} for at in range(COUNT)]
    try:
        found["floats"] = [tape.run(point, backend="math")[0] for point in each]
    except Unavailable:  # some have no function in `math`
        pass
    return found


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.text)
def test_within_four_ulp(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRADCLI_FAST", "0")
    outputs, _ = case.nodes()
    points = case.points(COUNT)
    try:
        balls_at = [exact(outputs, {name: float(values[at]) for name, values in points.items()}) for at in range(COUNT)]
    except Unsupported:
        pytest.skip("no balls")
    for way, values in each_way(case, outputs, points).items():
        for at, (value, ball) in enumerate(zip(np.broadcast_to(values, COUNT).tolist(), balls_at, strict=True)):
            place = {name: float(column[at]) for name, column in points.items()}
            assert ulps(value, ball) <= LIMIT, (way, place, value, ball)


@pytest.mark.parametrize(("text", "points"), HARD, ids=[text for text, _ in HARD])
def test_within_four_ulp_where_digits_are_lost(text: str, points: list[float]) -> None:
    outputs = lower(parse(text), at={"x": 0.5}).program.outputs
    values = Tape(outputs).run({"x": np.array(points)}, backend="numpy")[0]
    for point, value in zip(points, values.tolist(), strict=True):
        assert ulps(value, exact(outputs, {"x": point})) <= LIMIT, (point, value)
        alone = Tape(outputs).run({"x": point})[0]
        assert alone == value  # the same bits for any number of entries


@pytest.mark.parametrize("power", [5, 6, 7, 12, -1, -2, -3, 31])
def test_whole_powers_of_both_signs(power: int) -> None:
    """A negative base goes by way of the positive one."""
    random = np.random.default_rng(abs(power))
    x = np.concatenate([random.choice([-1.0, 1.0], 3_000) * 2.0 ** random.uniform(-20, 20, 3_000), [-1.0, 1.0, -3.0]])
    value, _ = gradcli.compile(f"x**{power}").at_points(x=x)
    assert max(ulps(v, exactly("pow", b, power)) for b, v in zip(x.tolist(), value.tolist(), strict=True)) <= 2.5
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan])
    value, _ = gradcli.compile(f"x**{power}").at_points(x=special)
    with np.errstate(all="ignore"):
        expected = special**power
    assert np.array_equal(value, expected, equal_nan=True) and np.array_equal(
        np.signbit(value[:4]), np.signbit(expected[:4])
    )
