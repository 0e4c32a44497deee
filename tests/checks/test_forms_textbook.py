"""Derivatives and identities of textbooks are proved in milliseconds and without SymPy; disturbed ones never are."""

from __future__ import annotations

import subprocess
import sys
from statistics import median

import pytest

from tests.support.proofs import WRONG, derivative_script, identity_script, proofs
from tests.support.rows import all_rows
from tests.support.textbook import BLACK_SCHOLES, DERIVATIVES, IDENTITIES

PRICE = {"s": 100, "k": 95, "r": 0.03, "v": 0.2, "t": 0.75}


def test_true_derivatives_are_proved(capsys: pytest.CaptureFixture[str]) -> None:
    found = [one for row in DERIVATIVES for one in proofs(derivative_script(*row[:3]), row[3])]
    found += proofs(BLACK_SCHOLES, PRICE)
    proved = [one for one in found if one.proved]
    share, typical = len(proved) / len(found), median(one.seconds for one in found)
    with capsys.disabled():
        print(f"\n  proved {len(proved)} of {len(found)} textbook derivatives, {typical * 1e3:.1f} ms each (median)")
    assert len(found) >= 120
    assert share >= 0.95, [(one.text, one.answer["reason"]) for one in found if not one.proved]
    assert typical < 0.05


@all_rows(("left", "right", "at"), IDENTITIES, ids=lambda part: part if isinstance(part, str) else "")
def test_identities_are_proved(left: str, right: str, at: dict[str, float]) -> None:
    (proof,) = proofs(identity_script(left, right, at), at)
    assert proof.proved, proof.answer["reason"]


@pytest.mark.parametrize("wrong", WRONG)
def test_disturbed_derivatives_are_never_proved(wrong: str) -> None:
    for function, variable, derivative, at in DERIVATIVES:
        for one in proofs(derivative_script(function, variable, wrong.format(derivative)), at):
            assert not one.proved, one.text


@pytest.mark.parametrize("wrong", WRONG)
def test_disturbed_identities_are_never_proved(wrong: str) -> None:
    for left, right, at in IDENTITIES:
        for one in proofs(identity_script(left, wrong.format(right), at), at):
            assert not one.proved, one.text


@pytest.mark.parametrize("wrong", ["{} - 1e-6", "{} + exp(-700)", "-abs({})", "({})**2", "exp(log({}))*(1 - 2**-50)"])
def test_disturbed_price_sensitivities_are_never_proved(wrong: str) -> None:
    lines = BLACK_SCHOLES.splitlines()
    for i, line in enumerate(lines):
        if line.startswith("assert"):
            left, right = line.split(" == ")
            script = "\n".join([*lines[:i], f"{left} == {wrong.format(right)}", "price"])
            assert not proofs(script, PRICE)[-1].proved


SIGNS = [
    ("sqrt(x**2) == x", 1.3, True),
    ("sqrt(x**2) == x", -1.3, False),
    ("log(x**2) == 2*log(x)", 1.3, True),
    ("abs(x) == x", -0.1, False),
    ("sqrt(1 - cos(x)**2) == sin(x)", 1.3, True),
    ("sqrt(1 - cos(x)**2) == sin(x)", -1.3, False),
    ("asin(sin(x)) == x", 1.3, True),
    ("asin(sin(x)) == x", 1.7, False),
    ("atan(tan(x)) == x", -1.5, True),
    ("atan(tan(x)) == x", 1.6, False),
    ("atan(x) + atan(1/x) == pi/2", -1.3, False),
    ("2*atan(x) == atan(2*x/(1 - x**2))", 1.3, False),
    ("cbrt(x**3) == x", -1.3, True),
    ("acosh(cosh(x)) == x", -1.3, False),
    ("maximum(x, 1) == x", 1.3, True),
    ("maximum(x, 1) == x", 0.9, False),
    ("floor(x) == 2", 2.5, True),
    ("floor(x) == 2", 3.5, False),
    ("sqrt(x - 2)*sqrt(x - 3) == sqrt((x - 2)*(x - 3))", 4.5, True),
]


@pytest.mark.parametrize(("claim", "x", "proved"), SIGNS)
def test_the_point_decides_signs(claim: str, x: float, proved: bool) -> None:
    (proof,) = proofs(f"assert {claim}\nx", {"x": x})
    assert proof.proved is proved


REGIONS = [
    ("sqrt(x**2) == -x", {"x": -2.5}, ["x < 0"]),
    ("sqrt((1 - cos(x))/2) == sin(x/2)", {"x": 1.3}, ["sin(1/2*x) > 0"]),
    ("log(x*y) == log(-x) + log(-y)", {"x": -1.0, "y": -2.0}, ["x < 0", "y < 0"]),
    ("log(exp(x) + 1) == x + log(1 + exp(-x))", {"x": 1.3}, []),
    ("atan(x) + atan(1/x) == pi/2", {"x": 1.3}, ["x > 0"]),
]


@pytest.mark.parametrize(("claim", "at", "region"), REGIONS)
def test_the_region_is_told(claim: str, at: dict[str, float], region: list[str]) -> None:
    (proof,) = proofs(f"assert {claim}\n{' + '.join(at)}", at)
    assert proof.proved
    assert sorted(proof.assumed("sign")) == sorted(region)
    assert (proof.assumed("connected") != []) is ("atan" in claim)


def test_sympy_is_not_loaded() -> None:
    script = (
        "import sys\n"
        "from tests.support.proofs import derivative_script, proofs\n"
        "from tests.support.textbook import DERIVATIVES\n"
        "assert all(one.proved for row in DERIVATIVES for one in proofs(derivative_script(*row[:3]), row[3]))\n"
        "assert 'sympy' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=120)
