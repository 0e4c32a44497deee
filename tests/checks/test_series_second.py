"""Claims about second derivatives: what is exact comes from the value itself, not from the engine's first derivative."""

from __future__ import annotations

import pytest

from gradcli.checks import check_script
from gradcli.primitives import catalogue
from tests.checks.test_checks_sabotage import damaged

CLAIMS = [
    ("sin(x)*y", "x", "x", "-sin(x)*y"),
    ("x**3*y", "x", "y", "3*x**2"),
    ("exp(x*y)", "y", "y", "x**2*exp(x*y)"),
    ("x + y**2", "x", "y", "0*y"),
    ("log(x)/y", "x", "x", "-1/(x**2*y)"),
]


def verdict(text: str, first: str, then: str, claim: str) -> str:
    script = f"assert grad(grad({text}, {first}), {then}) == {claim}\n{text}"
    found = [one for one in check_script(script, at={"x": 1.3, "y": 0.7}).checks if one.kind == "claim"]
    assert len(found) == 1
    return found[0].verdict


@pytest.mark.parametrize(("text", "first", "then", "claim"), CLAIMS)
def test_right_claims(text: str, first: str, then: str, claim: str) -> None:
    assert verdict(text, first, then, claim) in ("PROVED", "CERTIFIED")


@pytest.mark.parametrize(("text", "first", "then", "claim"), CLAIMS[:3])
def test_wrong_claims(text: str, first: str, then: str, claim: str) -> None:
    assert verdict(text, first, then, f"1.000001*({claim})") == "DISAGREES"


def test_a_damaged_first_derivative_does_not_stand_for_the_truth() -> None:
    """With sin' = 2 cos the engine's second derivative is -2 sin; a claim of that is no less wrong for it."""
    with damaged(catalogue()["sin"], lambda p: p * 2):
        assert verdict("sin(x)", "x", "x", "-2*sin(x)") != "CERTIFIED"
        assert verdict("sin(x)", "x", "x", "-2*sin(x)") != "PROVED"


@pytest.mark.parametrize(
    ("text", "claim"),
    [
        ("sum(cumprod(stack([x, y, 3*x])))", "0*x + 6*y"),
        ("det(stack([stack([x, 2*x]), stack([y, 2*y + x])]))", "2 + 0*x"),
    ],
)
def test_second_derivatives_at_zeros(text: str, claim: str) -> None:
    script = f"assert grad(grad({text}, x), x) == {claim}\n{text}"
    found = [one for one in check_script(script, at={"x": 0.0, "y": 0.7}).checks if one.kind == "claim"]
    assert [one.verdict for one in found] in (["PROVED"], ["CERTIFIED"])
