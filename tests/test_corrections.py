"""The formula that a refuted claim gets as `correct`: parsed and confirmed before it is shown, and in the user's terms."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

from gradcli.checks import check_script
from gradcli.checks.diagnosis import correction

if TYPE_CHECKING:
    from gradcli.checks.report import Check

PASSING = {"PROVED", "CERTIFIED", "IMPRECISE"}


def claimed(script: str, leaf: str, claim: str, at: dict[str, Any]) -> Check:
    """The check of one claim."""
    report = check_script(script, at=at, wrt=[leaf], claims={leaf: claim})
    return next(one for one in report.checks if one.kind == "claim")


def shown(script: str, leaf: str, at: dict[str, Any], claim: str | None = None) -> str | None:
    """The formula that a wrong claim gets."""
    check = claimed(script, leaf, claim or f"3*{leaf}*{leaf} + 1.25", at)
    assert check.verdict == "DISAGREES"
    found = [one.get("correction") for one in check.evidence.get("diagnosis", [])]
    return next((text for text in found if text), None)


DAMAGED = [
    "2*x",  # another number
    "3*x**2*(1 + 1e-9*x)",  # nearly right
    "3*x**2*y/y",  # of a name that is no leaf
    "3*x**2 +",  # no formula
    "3*x**2*step(x)",  # an operation that no script can call
    "3*x**2*(1 if x > 0 else 0)",
    "3*√(x**4)",
    "12",  # right at the point only
    "6*x",
    "[3*x**2, 1]",
    "3*x**2; 1",
    "f(x)",  # a function of the script
]


@pytest.mark.parametrize("text", DAMAGED)
def test_a_damaged_formula_is_never_shown(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(correction, "candidates", lambda *_: iter([text]))
    assert shown("def f(x): return 3*x**2\nx**3", "x", {"x": 2.0}) is None


def test_the_first_formula_that_holds_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(correction, "candidates", lambda *_: iter([*DAMAGED, "3*x**2", "x**2*3"]))
    assert shown("x**3", "x", {"x": 2.0}) == "3*x**2"


def test_a_name_of_the_script_is_no_library_function(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(correction, "candidates", lambda *_: iter(["exp(x)"]))
    assert shown("exp(x)", "x", {"x": 2.0}) == "exp(x)"
    assert shown("def exp(u): return u**2\nexp(x)", "x", {"x": 2.0}) is None


def test_symmetric_matrices_do_not_excuse_a_missing_transpose(monkeypatch: pytest.MonkeyPatch) -> None:
    at = {"A": [[2.0, 1.0], [1.0, 3.0]], "x": [1.0, 2.0]}
    monkeypatch.setattr(correction, "candidates", lambda *_: iter(["2*A @ x"]))
    assert shown("x @ A @ x", "x", at) is None


def test_words_are_names() -> None:
    assert correction.words("2*exp(x_1) - 1e-3*sum(A @ b)") == {"exp", "x_1", "sum", "A", "b"}
    assert all(re.fullmatch(r"\w+", word) for word in correction.words("a.T @ b"))
