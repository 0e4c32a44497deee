"""Formulas of books and papers have gradients in closed form, for all sizes, equal to differences of NumPy's values."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gradcli
from gradcli import GradcliError
from tests.formulas.papers import FORMULAS, ONE_SIZE, REFUSED

STEP = 1e-3
NUMPY = {
    name: getattr(np, name)
    for name in "sum exp log cosh sqrt abs tanh cos sin maximum prod diag trace kron arange".split()
}
NUMPY |= {
    "det": np.linalg.det,
    "inv": np.linalg.inv,
    "max": np.max,
    "min": np.min,
    "range": range,
    "e": np.e,
    "pi": np.pi,
}


def point(shapes: str, seed: int) -> dict[str, Any]:
    """Values of these shapes."""
    rng, values = np.random.default_rng(seed), {}
    for text in shapes.split(", "):
        name, *rest = text.split(" ")
        sizes = [int(size) for size in rest if re.fullmatch("[1-9]", size)]
        kind = "".join(part for part in rest if not re.fullmatch("[1-9]", part))
        value = rng.normal(size=sizes)
        if kind == "+":
            value = rng.uniform(0.2, 0.9, size=sizes)
        elif kind == "apart":
            value = np.cumsum(rng.uniform(0.8, 1.5, size=sizes))
        elif kind == "s":
            value = value @ value.T + 2 * np.eye(sizes[0])
        elif kind == "01":
            value = rng.integers(0, 2, size=sizes).astype(float)
        elif kind == "-1":
            value = rng.choice([-1.0, 1.0], size=sizes)
        else:
            assert not kind, text
        values[name] = value
    return values


def differences(expression: str, at: dict[str, Any], name: str) -> Any:
    """Central differences of order 4."""
    code = compile(expression, "<numpy>", "eval")
    slopes = np.zeros(np.shape(at[name]))
    for place in np.ndindex(slopes.shape):
        total = 0.0
        for steps, weight in ((-2, 1), (-1, -8), (1, 8), (2, -1)):
            moved = np.array(at[name], dtype=float)
            moved[place] += steps * STEP
            total += weight * eval(code, {**NUMPY, **at, name: moved})
        slopes[place] = total / (12 * STEP)
    return slopes


def judge(formula: str, name: str, shapes: str, expression: str) -> None:
    derived = gradcli.derive(formula, wrt=[name])
    assert not derived.only, f"{formula}: at one size only"
    assert derived.verdict[name] in ("PROVED", "CERTIFIED", "IMPRECISE")
    for seed in (1, 2):
        at = point(shapes, seed)
        value = gradcli.evaluate(derived.formula[name], at={**at, **sizes_of(derived.formula[name], at)}).value
        wanted = differences(expression, at, name)
        np.testing.assert_allclose(np.broadcast_to(value, wanted.shape), wanted, rtol=2e-6, atol=2e-7)


def sizes_of(text: str, at: dict[str, Any]) -> dict[str, float]:
    """The names of a formula that count entries, of vectors of 4 and from 0 to 2."""
    return {name: n for name, n in (("n", 4.0), ("d", 2.0)) if re.search(rf"\b{name}\b", text) and name not in at}


@pytest.mark.parametrize("row", range(0, len(FORMULAS), 6))
def test_some_formulas_of_papers(row: int) -> None:
    judge(*FORMULAS[row][1:])


@pytest.mark.deep
@pytest.mark.parametrize("row", range(len(FORMULAS)))
def test_formulas_of_papers(row: int) -> None:
    judge(*FORMULAS[row][1:])


LONG = [  # conditions on positions that decide nothing at the sizes that stand for n
    ("sum(x[i]**2 for i in range(n) if i < 5000)", "i < 5000"),
    ("sum(x[i]**2 for i in range(n) if i == 5000)", "i == 5000"),
    ("sum(x**2*where(arange(len(x)) >= 5000, 1, 0))", "i >= 5000"),
    ("sum(x[i]**2 for i in range(n) if i != 3)", "i != 3"),
    ("sum(x[i]**2 for i in range(n) if i**2 < 5)", "i**2 < 5"),
]


@pytest.mark.parametrize(("script", "condition"), LONG)
def test_a_condition_on_positions_holds_for_long_arrays(script: str, condition: str) -> None:
    text = gradcli.derive(script, wrt=["x"]).formula["x"]
    for n in (2, 5, 5003):
        x = np.linspace(1, 2, n)
        wanted = 2 * x * eval(condition, {"i": np.arange(n)})
        np.testing.assert_allclose(gradcli.evaluate(text, at={"x": x}).value, wanted)


@pytest.mark.parametrize("row", range(len(REFUSED)))
def test_what_is_refused_has_a_reason(row: int) -> None:
    _, formula, name, reason = REFUSED[row]
    with pytest.raises(GradcliError, match=re.escape(reason)):
        gradcli.derive(formula, wrt=[name])


@pytest.mark.parametrize("row", range(len(ONE_SIZE)))
def test_what_is_written_entry_by_entry_says_so(row: int) -> None:
    _, formula, name, _, _ = ONE_SIZE[row]
    assert name in gradcli.derive(formula, wrt=[name]).only


def test_the_guide_shows_losses_of_five_fields() -> None:
    page = Path(__file__).parents[2].joinpath("docs/guide/formulas.md").read_text(encoding="utf-8")
    section = page.partition("## Formulas of papers")[2].partition("\n## ")[0]
    pictures = "".join(re.findall(r"```\{math\}\n(.*?)```", section, re.DOTALL))
    commands = re.findall(r'gradcli derive "(.*?)" --wrt (\w+)', section)
    assert len({formula for formula, _ in commands}) == len(commands) == 5
    for formula, name in commands:
        assert formula.replace(" ", "") in re.sub(r"\\left|\\right|\s", "", pictures), formula
        assert gradcli.derive(formula, wrt=[name]).verdict == {name: "PROVED"}


def test_most_formulas_have_gradients_that_are_proved() -> None:
    count = len(FORMULAS) + len(ONE_SIZE) + len(REFUSED)
    assert count >= 150
    assert len(FORMULAS) >= 0.95 * count
