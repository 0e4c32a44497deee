"""The traps of gradient checking, one row each: the engine's gradient, a right claim and wrong claims, all judged.

A row names what the gradient may be called at the point, and claims that no verdict may let pass: zero, a flipped sign,
what a neighbouring branch would say. `test_checks_verdicts` holds more points; here every row is judged three ways, and
the verdict is derived again from the evidence.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pytest

from gradcli.checks import Check, check_script
from tests.support.rederive import rederive
from tests.support.rows import all_rows

RIGHT = ("PROVED", "CERTIFIED")
LOST = ("IMPRECISE",)
KINK = ("KINK",)
EDGE = ("BOUNDARY",)
JUMP = ("DISCONTINUOUS",)
NOT_REAL = ("UNDEFINED",)


class Trap(NamedTuple):
    """`verdicts` are those that the engine's gradient may have; `right` is a claim that passes, `wrong` are others."""

    name: str
    text: str
    at: dict[str, Any]
    verdicts: tuple[str, ...]
    right: str | None = None
    wrong: tuple[str, ...] = ()


def one(name: str, text: str, x: Any, verdicts: tuple[str, ...], right: str | None = None, *wrong: str) -> Trap:
    return Trap(name, text, {"x": x}, verdicts, right, wrong)


SMOOTH = [
    one("relu right of its kink", "relu(x)", 1e-9, RIGHT, "1", "0", "0.5", "-1"),
    one("relu left of its kink", "relu(x)", -1e-300, RIGHT, "0", "1", "0.5"),
    one("abs beside its kink", "abs(x)", -1e-12, RIGHT, "-1", "1", "0"),
    one("floor between its steps", "floor(x)", 0.999999, RIGHT, "0", "1"),
    one("floor times x", "x*floor(x)", 2.5, RIGHT, "2", "2.5", "0", "4.5"),
    one("sqrt at 1e-7", "sqrt(x)", 1e-7, RIGHT, "1/(2*sqrt(x))", "1/sqrt(x)", "0", "0.5/sqrt(x)*(1 + 1e-9)"),
    one("log at 2e-6", "log(x)", 2e-6, RIGHT, "1/x", "1/x + 1e-6", "-1/x", "0"),
    one("a tiny gradient", "1e-9*x**2", 3.0, RIGHT, "2e-9*x", "0", "-2e-9*x", "1e-9*x", "2e-9*x + 1e-20"),
    one("a large constant", "1e10 + x**2", 1.0, RIGHT, "2*x", "0", "-2*x", "2*x*(1 + 1e-12)"),
    one("a huge constant", "1e300 + x**2", 1.0, RIGHT, "2*x", "0", "2*x*(1 + 1e-12)"),
    one("a huge point", "x**2", 1e12, RIGHT, "2*x", "x", "-2*x", "2*x*(1 + 1e-12)"),
    one("fast oscillation", "sin(1e6*x)", 1.0, RIGHT, "1e6*cos(1e6*x)", "cos(1e6*x)", "-1e6*cos(1e6*x)", "0"),
    one("faster oscillation", "sin(1e12*x)", 1.0, (*RIGHT, *LOST), "1e12*cos(1e12*x)", "1e12*sin(1e12*x)", "0"),
    one("a cube at 0", "x**3", 0.0, RIGHT, "3*x**2", "1e-9", "3*x**2 + 1e-30"),
    one("a vanishing gradient", "x**2", 0.0, RIGHT, "2*x", "1e-15"),
    one("a flat function", "exp(-1/x**2)", 0.03, RIGHT, "2/x**3*exp(-1/x**2)", "exp(-1/x**2)", "1e-300"),
    one("an exact zero of the gradient", "cos(x)", 0.0, RIGHT, "-sin(x)", "1e-12", "sin(x) + x*1e-3 + 1e-9"),
    one("sinc at 0", "sinc(x)", 0.0, RIGHT,
        "where(x == 0, 0, (cos(pi*x) - sinc(x))/where(x == 0, 1, x))", "1", "1e-9"),
    one("power 0 at 0", "x**0", 0.0, RIGHT, "0*x", "1", "1e-12"),
    one("power 1 at 0", "x**1", 0.0, RIGHT, "1", "0", "2"),
    one("power 1.5 at 0", "x**1.5 + x", 0.0, (*RIGHT, *EDGE)),
    one("a smooth product with abs", "x*abs(x)", 0.0, RIGHT, "2*abs(x)", "1", "1e-6"),
    one("maximum of equal operands", "maximum(x, x)", 2.0, RIGHT, "1", "0.5", "2"),
    one("the same operand twice", "x*x", 3.0, RIGHT, "2*x", "x", "x*x"),
    one("the same operand three times", "hypot(x, x) + atan2(x, x)", 3.0, RIGHT, "sqrt(2)", "2*sqrt(2)", "sqrt(2)/2"),
    one("the same operand in a quotient", "x/x + x**2/x", 3.0, RIGHT, "1", "0", "2"),
    one("the branch not taken has no value", "where(x > 0, sqrt(x), 0)", -1.0, RIGHT, "0", "1"),
    one("the branch not taken is infinite", "where(x < 2, x**2, 1/(x - 1))", 1.0, RIGHT, "2*x", "1", "0"),
    one("log in the branch not taken", "where(x > 0, log(x), x)", -0.5, RIGHT, "1", "1/x", "0"),
    one("cumprod with a zero", "sum(cumprod(x))", [0.0, 2.0, 3.0], RIGHT,
        "[1 + x[1] + x[1]*x[2], x[0]*(1 + x[2]), x[0]*x[1]]", "[9, 1, 0]", "[0, 0, 0]", "[1, 0, 0]"),
    one("prod with a zero", "prod(x)", [0.0, 2.0, 3.0], RIGHT, "[x[1]*x[2], x[0]*x[2], x[0]*x[1]]",
        "[0, 0, 0]", "[0, 3, 2]"),
    one("prod with two zeros", "prod(x)", [0.0, 0.0, 3.0], RIGHT, "[x[1]*x[2], x[0]*x[2], x[0]*x[1]]",
        "[3, 3, 0]", "[0, 0, 1e-12]", "0*x"),
    one("det of a singular matrix", "det(x)", [[1.0, 2.0], [2.0, 4.0]], RIGHT,
        "[[x[1, 1], -x[1, 0]], [-x[0, 1], x[0, 0]]]", "0*x", "[[4, 2], [2, 1]]", "[[1, -2], [-2, 4]]"),
    one("det of a matrix of rank one", "det(x)", [[1.0, 2, 3], [2.0, 4, 6], [3.0, 6, 9]], (*RIGHT, *LOST),
        "[cross(x[1], x[2]), cross(x[2], x[0]), cross(x[0], x[1])]", "0*x", "0*x + 1e-9"),
    one("second derivative of cumprod", "sum(grad(sum(cumprod(x)), x))", [0.0, 2.0, 3.0], RIGHT, None, "0*x"),
    one("second derivative of det", "sum(grad(det(x), x)*[[1, 2], [3, 4]])", [[1.0, 2.0], [2.0, 4.0]], RIGHT,
        "[[4, -3], [-2, 1]]", "0*x", "[[4, -2], [-3, 1]]"),
]  # fmt: skip

LOSING = [
    one("cancellation", "(1 - cos(x))/x**2", 1e-4, LOST, "sin(x)/x**2 - 2*(1 - cos(x))/x**3", "0*x + 0.5", "x/12"),
    one("overflow in between", "log(exp(x) + 1)", 800.0, LOST, "sigmoid(x)", "0*x", "2*sigmoid(x)"),
    one("a difference of logarithms", "log(1 + x) - x", 1e-12, LOST, "-x/(1 + x)", "x/(1 + x)", "-x", "0*x"),
]

ROUGH = [
    one("relu at its kink", "relu(x)", 0.0, KINK, None, "2", "-0.5"),
    one("abs at its kink", "abs(x)", 0.0, KINK, None, "1.5"),
    one("leaky relu at its kink", "leaky_relu(x, 0.1)", 0.0, KINK, None, "2"),
    one("norm at 0", "norm(x)", [0.0, 0.0], KINK),
    one("hypot at 0", "hypot(x, 2*x)", 0.0, KINK, None, "3"),
    one("a tie of max", "max(x)", [1.0, 1.0, 0.0], KINK, None, "[2, -1, 0]"),
    one("a tie of maximum", "maximum(x, 2 - x)", 1.0, KINK, None, "3"),
    one("a tie of sort", "sort(x)[0]", [1.0, 1.0], KINK),
    one("clamp at its edge", "clamp(x, -1, 1)", 1.0, KINK, None, "2"),
    one("kinks that cancel", "relu(x) - relu(-x)", 0.0, KINK, None, "0*x + 0.25"),
    one("sqrt of a square at 0", "sqrt(x**2)", 0.0, KINK, None, "5"),
    one("sqrt at 0", "sqrt(x)", 0.0, EDGE, None, "0*x"),
    one("cbrt at 0", "cbrt(x)", 0.0, EDGE, None, "0*x", "1"),
    one("asin at 1", "asin(x)", 1.0, EDGE, None, "0*x", "1"),
    one("log in a branch that begins here", "where(x > 0, log(x), 0)", 0.0, (*EDGE, *JUMP), None, "0*x"),
    one("floor at a step", "floor(x)", 0.0, JUMP, None, "1"),
    one("round at a half", "round(x)", 0.5, JUMP),
    one("sign at 0", "sign(x)", 0.0, JUMP, None, "2"),
    one("an isolated value", "where(x == 0, 5, x)", 0.0, JUMP),
    one("heaviside at 0", "heaviside(x, 0.5)", 0.0, JUMP),
    one("the polar angle of minus 1", "atan2(0*x, x - 2)", 1.0, JUMP + EDGE + KINK + RIGHT),
    one("log at 0", "log(x)", 0.0, NOT_REAL, None, "1/x", "0*x"),
    one("exp of log at 0", "exp(log(x))", 0.0, NOT_REAL, None, "1"),
    one("sqrt of minus 1", "sqrt(x)", -1.0, NOT_REAL, None, "0*x"),
    one("0 by 0", "(x*x)/x", 0.0, NOT_REAL, None, "1"),
    one("expm1 by x at 0", "(exp(x) - 1)/x", 0.0, NOT_REAL, None, "0.5"),
    one("a pole of gamma", "gamma(x)", -1.0, NOT_REAL, None, "0*x"),
    one("infinity", "x + 1", float("inf"), NOT_REAL, None, "1"),
    one("not a number", "x*0", float("nan"), NOT_REAL, None, "0*x"),
]

TRAPS = [*SMOOTH, *LOSING, *ROUGH]
PASSING = (*RIGHT, *LOST, "AGREES")


def judged(trap: Trap, claim: str | None = None) -> Check:
    """The check of the engine's gradient, or of a claim."""
    report = check_script(trap.text, at=trap.at, claims=None if claim is None else {"x": claim})
    for check in report.checks:
        assert rederive(check) == check.verdict, (check.verdict, check.evidence)
    wanted = [check for check in report.checks if (check.kind == "claim") == (claim is not None)]
    assert len(wanted) == 1
    return wanted[0]


@all_rows("trap", TRAPS, ids=lambda trap: trap.name)
def test_the_engine_is_judged_rightly(trap: Trap) -> None:
    check = judged(trap)
    assert check.verdict in trap.verdicts, check.message
    assert check.passed == (check.verdict in PASSING)


@all_rows("trap", [trap for trap in TRAPS if trap.right], ids=lambda trap: trap.name)
def test_a_right_claim_passes(trap: Trap) -> None:
    check = judged(trap, trap.right)
    assert check.verdict in (*RIGHT, *LOST), check.message
    assert check.passed


@all_rows("trap", [trap for trap in TRAPS if trap.wrong], ids=lambda trap: trap.name)
def test_a_wrong_claim_does_not(trap: Trap) -> None:
    for claim in trap.wrong:
        check = judged(trap, claim)
        assert check.verdict not in PASSING, (claim, check.message)
        assert not check.passed, (claim, check.message)
        if trap.verdicts in (RIGHT, LOST):
            assert check.verdict == "DISAGREES", (claim, check.message)


@pytest.mark.parametrize("slope", ["0", "1", "0.5"])
def test_a_slope_between_those_of_a_kink_passes_on_request_only(slope: str) -> None:
    for options, passed in (({}, False), ({"allow_kink": True}, True)):
        report = check_script("relu(x)", at={"x": 0.0}, claims={"x": slope}, **options)
        claim = report.checks[-1]
        assert (claim.verdict, claim.passed) == ("KINK", passed)


def test_one_entry_of_a_thousand() -> None:
    """A relative error of 1e-12 in one entry, the tiniest one too, among a thousand."""
    rng = np.random.default_rng(5)
    w = rng.normal(size=1000) * 10 ** rng.uniform(-9, 3, 1000)
    at = {"w": w.tolist()}
    right = check_script("sum(sin(w)*w)", at=at, claims={"w": "sin(w) + w*cos(w)"}).checks[-1]
    assert right.verdict in RIGHT
    assert float(right.evidence.get("chance", 0.0)) < 1e-20  # type: ignore[arg-type]
    for entry in (17, int(np.argmin(np.abs(w))), int(np.argmax(np.abs(w)))):
        claim = f"(sin(w) + w*cos(w))*(1 + 1e-12*(arange(1000) == {entry}))"
        check = check_script("sum(sin(w)*w)", at=at, claims={"w": claim}).checks[-1]
        assert check.verdict == "DISAGREES", check.message
        example: Any = check.evidence["counterexample"]
        assert example["entry"] == f"[{entry}]"


def test_single_precision_is_judged_by_its_own_spacing() -> None:
    """float32: the rule is proved, the number is good to single precision and would be far off as a double."""
    for check in check_script("x**2*sin(y)", at={"x": 1.3, "y": 0.4}, dtype="float32").checks:
        assert check.verdict in RIGHT
        assert float(check.evidence["ulps"]) < 64  # type: ignore[arg-type]
    losing = check_script("(1 - cos(x))/x**2", at={"x": 0.02}, dtype="float32").checks[0]
    assert losing.verdict == "IMPRECISE"


def test_complex_gradients_are_a_convention_and_say_so() -> None:
    found = check_script("real_part*real_part", at={"real_part": 1.0}, dtype="complex128").checks
    assert {check.verdict for check in found} == {"CERTIFIED"}
    assert "dL/dx + i*dL/dy" in str(found[0].evidence["convention"])


def test_the_second_reading_of_evidence_can_fail() -> None:
    """Each number that a verdict rests on, changed: the verdict no longer follows."""

    def read(text: str, x: float, changed: dict[str, Any], claim: str | None = None) -> str:
        claims = None if claim is None else {"x": claim}
        check = check_script(text, at={"x": x}, claims=claims).checks[-1]
        assert rederive(check) == check.verdict
        return rederive(replace(check, evidence={**check.evidence, **changed}))

    certified = "sinc(x)", 0.0
    assert read(*certified, {"agree_bits": 40}) == "INCONCLUSIVE"
    assert read(*certified, {"judged": ["1e-9"]}) == "INCONCLUSIVE"
    assert read(*certified, {"ulps": 5000.0}) == "IMPRECISE"
    assert read(*certified, {"float": ["0.001"]}) == "IMPRECISE"
    assert read("sqrt(x)**3", 2.0, {"region": ["x < 0"]}) == "PROVED elsewhere"
    assert read("x**3", 2.0, {"float": ["12.00001"]}) == "IMPRECISE"
    same = {"counterexample": {"at": {"x": 2.0}, "exact": "12", "claimed": "12.0"}}
    assert read("x**3", 2.0, same, "x**2") == "INCONCLUSIVE"
    assert read("abs(x)", 0.0, {"left": [1.0], "inside": False, "node": None}) != "BOUNDARY"
    assert read("abs(x)", 0.0, {"inside": False}) != "KINK"
    assert read("floor(x)", 0.0, {"limits": [0.0, 0.0]}) != "DISCONTINUOUS"
