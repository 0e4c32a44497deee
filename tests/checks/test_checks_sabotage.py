"""Rules of the engine are damaged one at a time: a checker that is worth anything must notice."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from gradcli.checks import check_script
from gradcli.graph.primitive import Primitive
from gradcli.primitives import catalogue
from tests.support.rows import all_rows

POINTS: dict[str, Any] = {"x": 1.3, "y": 0.7}
SCRIPTS = {
    "sin": "sin(x)*y",
    "exp": "exp(x*y)",
    "log": "log(x)/y",
    "sqrt": "sqrt(x*y)",
    "tanh": "tanh(x)**2",
    "div": "x/(y + x)",
    "mul": "x*y*x",
    "pow": "x**y",
    "erf": "erf(x*y)",
    "abs": "abs(x)*y",
    "maximum": "maximum(x, y)**2",
}


@contextmanager
def damaged(primitive: Primitive, damage: Callable[[Any], Any]) -> Iterator[None]:
    """The primitive with its first partial changed."""
    right = primitive.partials
    assert right is not None

    def wrong(*xs: Any, out: Any, **params: Any) -> tuple[Any, ...]:
        first, *rest = right(*xs, out=out, **params)
        return (damage(first), *rest)

    primitive.partials = wrong
    try:
        yield
    finally:
        primitive.partials = right


DAMAGES: dict[str, Callable[[Any], Any]] = {
    "sign": lambda p: -p,
    "factor": lambda p: p * 2,
    "zero": lambda p: 0,
    "a millionth": lambda p: p * 1.000001,
    "a trillionth": lambda p: p * 1.000000000001,
}


@all_rows("damage", DAMAGES)
@all_rows("name", SCRIPTS)
def test_a_damaged_rule_is_refuted(name: str, damage: str) -> None:
    with damaged(catalogue()[name], DAMAGES[damage]):
        verdicts = {check.verdict for check in check_script(SCRIPTS[name], at=POINTS).checks}
    assert "DISAGREES" in verdicts, verdicts


@pytest.mark.parametrize("name", SCRIPTS)
def test_the_same_scripts_pass_undamaged(name: str) -> None:
    assert {check.verdict for check in check_script(SCRIPTS[name], at=POINTS).checks} == {"PROVED"}


def test_a_damaged_transpose_is_refuted() -> None:
    matmul = catalogue()["matmul"]
    right = matmul.transpose
    matmul.transpose = {0: lambda ct, x, y: ct @ y, 1: lambda ct, x, y: x.mT @ ct}
    try:
        at = {"A": [[1.0, 2.0], [3.0, 4.0]], "B": [[0.5, -1.0], [2.0, 1.0]]}
        found = {check.leaf: check.verdict for check in check_script("sum(A@B*[[1, 2], [3, 5]])", at=at).checks}
    finally:
        matmul.transpose = right
    assert found == {"A": "DISAGREES", "B": "PROVED"}


def test_a_damaged_spectrum_is_refuted() -> None:
    """Where SymPy has no form and the floats come from LAPACK, series still enclose the derivative."""
    at = {"X": [[2.0, 1.0, 0.0], [1.0, 3.0, 0.5], [0.0, 0.5, 1.0]]}
    eigh = catalogue()["eigvalsh"]
    script = f"{eigh.name}(X)[0]"
    right = eigh.pushforward
    if right is None:
        pytest.skip("eigvalsh is declared another way")
    eigh.pushforward = [lambda *args, rule=right[0], **named: rule(*args, **named) * 2]  # type: ignore[misc]
    try:
        found = {check.verdict for check in check_script(script, at=at).checks}
    finally:
        eigh.pushforward = right
    assert found == {"DISAGREES"}
