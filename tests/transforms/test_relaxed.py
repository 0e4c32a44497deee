"""--relax: equal in exact arithmetic, near in floats, cheaper in nodes; nothing of it without being asked, none in checks."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gradcli
from gradcli import calculator
from gradcli.calculator.questions import prepare
from gradcli.interfaces.cli import main
from gradcli.lowering.relaxed import relaxed
from tests.support.rows import all_rows

DISTANCES = [
    "sum((x[:, None, :] - c[None, :, :])**2, axis=2)",
    "sum((c[None, :, :] - x[:, None, :])**2, axis=2)",
    "sum((x[None, :, :] - c[:, None, :])**2, axis=2)",
    "sum((x.T[:, :, None] - c.T[:, None, :])**2, axis=0)",
    "sum((x[:, :, None] - c.T[None, :, :])*(x[:, :, None] - c.T[None, :, :]), axis=1)",
]


def names(script: str, point: Any, relax: bool) -> list[str]:
    return [node.primitive.name for node in prepare(script, point, None, relax=relax).program.nodes()]


@pytest.mark.parametrize("script", DISTANCES)
def test_distances_become_a_matrix_product(script: str) -> None:
    random = np.random.default_rng(0)
    point = {"x": random.normal(size=(7, 3)), "c": random.normal(size=(4, 3))}
    assert "matmul" in names(script, point, True) and "matmul" not in names(script, point, False)
    weighed = f"sum({script} * [{', '.join(map(str, range(1, 5)))}])" if "x[None" not in script else f"sum({script}**2)"
    plain, fast = calculator.grad(weighed, at=point), calculator.grad(weighed, at=point, relax=True)
    assert plain.value != 0 and abs(plain.value - fast.value) <= 1e-12 * abs(plain.value)
    for name in point:
        np.testing.assert_allclose(fast.gradient[name], plain.gradient[name], rtol=1e-11, atol=1e-11)
    value = calculator.evaluate(script, at=point, relax=True).value
    np.testing.assert_allclose(value, calculator.evaluate(script, at=point).value, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize(
    "script",
    [
        "sum((x[:, None, :] - c[None, :, :])**2, axis=1)",
        "sum((x[:, None, :] - c[None, :, :])**4, axis=2)",
        "sum((x[:, None, :] + c[None, :, :])**2, axis=2)",
        "sum((x[:, None, :] - 3)**2, axis=2)",
        "sum((x - 1)**2, axis=1)",
    ],
)
def test_other_sums_stay(script: str) -> None:
    point = {"x": np.ones((7, 3)), "c": np.ones((4, 3))}
    point = {name: value for name, value in point.items() if name in script}
    assert "matmul" not in names(script, point, True)


@all_rows("power", [*range(5, 40), 63, 64, -5, -7, -64])
def test_powers_become_products(power: int) -> None:
    assert "power" not in names(f"x**{power}", {"x": 1.5}, True)
    exact = Fraction(3, 2) ** power
    value = calculator.evaluate(f"x**{power}", at={"x": 1.5}, relax=True).value
    assert abs(Fraction(value) - exact) <= abs(power) * Fraction(1, 2**52) * exact
    slope = calculator.grad(f"x**{power}", at={"x": 1.5}, relax=True).gradient["x"]
    assert abs(Fraction(slope) - power * Fraction(3, 2) ** (power - 1)) <= 4 * abs(power) * Fraction(1, 2**52) * abs(
        slope
    )


@pytest.mark.parametrize("power", [2, 3, 4, 65, 1000, -1, -3])
def test_other_powers_stay(power: int) -> None:
    assert "power" in names(f"x**{power}", {"x": 1.5}, True)


def test_it_is_as_unsafe_as_it_says() -> None:
    """Far from the origin the product form loses what the plain form keeps."""
    point = {"x": np.full((2, 3), 1e9) + [[0.0], [1.0]], "c": np.full((2, 3), 1e9 + 0.5)}
    plain = calculator.evaluate(DISTANCES[0], at=point).value
    fast = calculator.evaluate(DISTANCES[0], at=point, relax=True).value
    assert np.array_equal(plain, np.full((2, 2), 0.75)) and np.abs(fast - plain).max() > 1


def test_a_program_without_such_forms_is_the_same() -> None:
    program = prepare("sin(x)*y + x**3", {"x": 1.0, "y": 2.0}).program
    assert all(one is other for one, other in zip(relaxed(program).outputs, program.outputs, strict=True))


def test_the_option(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["grad", "x**9", "--at", "x=1.1", "--relax", "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert abs(found["gradient"]["x"] - 9 * 1.1**8) < 1e-13
    points = tmp_path / "p.csv"
    points.write_text("x\n1.5\n2\n")
    assert main(["eval", "x**7", "--points", str(points), "--relax"]) == 0
    assert capsys.readouterr().out.split() == ["value", repr(1.5**7), "128.0"]
    assert main(["check", "x**7", "--at", "x=1.5", "--relax"]) == 2  # never in a check
    f = gradcli.compile("x**7", relax=True)
    assert f(x=2.0) == 128.0
