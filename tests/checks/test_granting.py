"""One file grants PROVED and CERTIFIED, and only where what a proof assumes holds."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import pytest

from gradcli.checks import challenge, check_script
from gradcli.checks.decide import boxes, granting
from gradcli.checks.decide.case import Outcome
from gradcli.checks.derivatives import claim_comparison, subdivision
from gradcli.checks.evaluate.interpretation import Unsupported
from gradcli.checks.expansions import exact_reals
from gradcli.checks.oracle.oracle_server import Session
from tests.support.oracle_in_process import answering_in_process

GRANTING = "checks/decide/granting.py"
GRANTED = {"PROVED", "CERTIFIED"}


def written_verdicts(source: str) -> set[str]:
    """The granted verdicts that a module makes the verdict of something: by a call, a keyword or a conditional."""
    written: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call):
            values = [*node.args[:1], *(keyword.value for keyword in node.keywords if keyword.arg == "verdict")]
        elif isinstance(node, ast.IfExp):
            values = [node.body, node.orelse]
        else:
            continue
        constants = [one.value for value in values for one in ast.walk(value) if isinstance(one, ast.Constant)]
        written |= GRANTED.intersection(one for one in constants if isinstance(one, str))
    return written


def test_one_file_grants_proofs_and_certificates() -> None:
    package = Path(__file__).parents[2] / "gradcli"
    files = {path: written_verdicts(path.read_text(encoding="utf-8")) for path in sorted(package.rglob("*.py"))}
    assert {path.relative_to(package).as_posix() for path, written in files.items() if written} == {GRANTING}
    assert files[package / GRANTING] == GRANTED


def test_the_reader_of_sources_finds_them() -> None:
    assert written_verdicts('Outcome("PROVED", text, {})') == {"PROVED"}
    assert written_verdicts('outcome._replace(verdict="CERTIFIED")') == {"CERTIFIED"}
    assert written_verdicts('verdict = "PROVED" if proved else "CERTIFIED"') == GRANTED
    assert not written_verdicts('outcome.verdict in ("PROVED", "CERTIFIED")')


# --- every discharge is needed --------------------------------------------------------------------------------------


def unsupported(*_: Any, **about: Any) -> Any:
    raise Unsupported("an operation without a rule")


def first_branch(field: Any, _: Any) -> Any:
    """The sign close to a place, whether or not it stays the same."""
    return next(field.decided)[0]


Check = tuple[str, dict[str, Any], str | None, tuple[float, float] | None]  # a script, a point, a claim and a box of x
SMOOTH_TIE: Check = ("sum(elu(x))", {"x": [0.1 * k for k in range(32)]}, None, None)
HIDDEN_TIE: Check = ("sum(elu(sqrt(x)**2 - 2))", {"x": [2.0] * 20}, None, None)  # in floats 4e-16
TIE: Check = ("abs(log(exp(x)) - y)", {"y": 0.3, "x": 0.3}, None, None)
JUMP: Check = ("where(x < 0.3, x, x + 1e-300)", {"x": 0.5}, "1 + 0*x", (-1, 1))
TWO_REGIONS: Check = ("where(x < 0.3, x**2, x**2 + (x - 0.3)**2*1e-30)", {"x": 0.1}, "2*x", (-1, 1))
HIDDEN_JUMP: Check = ("x*abs(x) + where((x - 1e-9)**2 < 1e-30, 1e-30, 0)", {"x": 0.5}, "2*abs(x)", (-1, 1))
REMOVABLE: Check = ("where(x == 0, 1, sin(x)/x)", {"x": 0.5}, None, (-1, 1))
Off = tuple[Any, str, Any]  # what replaces an attribute of something
NO_TIES: Off = (claim_comparison.ClaimComparison, "decided", lambda *_: {})
NO_DOUBT: Off = (granting, "doubted", lambda *_: None)
NO_JUDGE: Off = (Session, "on_judge", unsupported)
DISCHARGES: dict[str, tuple[Check, list[Off], str, list[Off], str]] = {  # with and without a discharge: off, verdict
    "a tie, of index notation": (SMOOTH_TIE, [], "CERTIFIED", [NO_DOUBT], "PROVED"),
    "a tie, where nothing was enclosed": (
        HIDDEN_TIE, [NO_JUDGE], "AGREES", [NO_JUDGE, (granting, "undecided_surface", lambda _: None)], "PROVED",
    ),
    "a tie, in exact numbers": (TIE, [], "KINK", [NO_TIES], "INCONCLUSIVE"),
    "a sign that is open": (TIE, [NO_TIES], "INCONCLUSIVE", [NO_TIES, NO_DOUBT], "PROVED"),
    "a number that is 0": (TIE, [], "KINK", [(exact_reals, "vanishes", lambda _: False)], "INCONCLUSIVE"),
    "what lies between floats": (
        JUMP, [], "DISCONTINUOUS",
        [(boxes.BoxCheck, "at_bracket", lambda *_: (Outcome("AGREES", "", {}), True))], "PROVED",
    ),
    "other branches of free leaves": (
        ("relu(x)", {}, "1 + 0*x", None), [], "DISAGREES", [(challenge, "members", lambda *_, **__: ())], "PROVED",
    ),
    "every region": (TWO_REGIONS, [], "DISAGREES", [(boxes.BoxCheck, "is_proved", lambda *_: True)], "PROVED"),
    "all branches beside a place": (
        HIDDEN_JUMP, [], "INCONCLUSIVE", [(subdivision.FollowedField, "sign", first_branch)], "PROVED",
    ),
    "all values beside a place": (
        REMOVABLE, [], "AGREES", [(subdivision.Join, "side", lambda *_: (True, True))], "PROVED",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", DISCHARGES)
def test_a_discharge_that_is_switched_off_changes_a_verdict(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    (text, at, claim, box), before, verdict, off, weaker = DISCHARGES[name]
    options: dict[str, Any] = {"at": at, "wrt": ["x"], "claims": None if claim is None else {"x": claim}}
    options |= {} if box is None else {"box": {"x": box}}
    for patches, expected in ((before, verdict), (off, weaker)):
        with monkeypatch.context() as patched, answering_in_process(patched):
            for patch in patches:
                patched.setattr(*patch)
            check = check_script(text, **options).checks[-1]
        assert check.verdict == expected, check.message


@pytest.mark.parametrize(
    ("script", "wrong", "right"),
    [
        ("relu(x)", "1", "where(x > 0, 1, 0)"),
        ("abs(x)*y", "y", "sign(x)*y"),
        ("where(x > 3, 2*x, x**2)", "2*x", "where(x > 3, 2, 2*x)"),
        ("clamp(x, -1, 1)**2", "2*x", "2*x*(abs(x) < 1)"),
        ("relu(x - 20)", "0", "x > 20"),
        ("maximum(x, 2*x)", "2", "where(x > 0, 2, 1)"),
        ("sqrt(x**2)", "1", "x/sqrt(x**2)"),
        ("sqrt(x*y)", "sqrt(y/x)/2", "y/(2*sqrt(x*y))"),
        ("x[20] in real; y[20] in real; sum(sqrt(x*y))", "sqrt(y/x)/2", "y/(2*sqrt(x*y))"),
        ("x in [1, 4]; abs(x - 3)", "-1", "sign(x - 3)"),
        ("x[20] in real; sum(relu(x - 50))", "0*x", "x > 50"),
        ("x[n] in real; sum(relu(x - 50)*x)", "0*x", "where(x > 50, 2*x - 50, 0)"),
        ("x[20] in real; sum(floor(x/50)*x)", "-(x < 0)", "floor(x/50)"),
        ("where(x > 1000, x**2, x)", "1", "where(x > 1000, 2*x, 1)"),
        ("where(abs(x - 200) < 1, x**2, x)", "1", "where(abs(x - 200) < 1, 2*x, 1)"),
        ("where(log(abs(x)) > 9, x**2, x)", "1", "where(log(abs(x)) > 9, 2*x, 1)"),
        ("x[3] in real; where(sum(x) > 1e5, sum(x**2), sum(x))", "1 + 0*x", "where(sum(x) > 1e5, 2*x, 1)"),
        ("x in (0, 10) = 0.5; abs(x - 5)", "-1", "sign(x - 5)"),
        ("x in (0, 10) = 0.5; abs(x - 50)*x", "2*x", "50 - 2*x"),
        ("x in positive = 2; minimum(x, 1e-6)", "0*x", "where(x < 1e-6, 1, 0)"),
        ("sin(2*pi*abs(x))", "2*pi*cos(2*pi*x)", "2*pi*cos(2*pi*x)*sign(x)"),
        (
            "sin(2*pi*x)*relu(x + 9)",
            "0*x",
            "6.283185307179586*cos(6.283185307179586*x)*relu(x + 9) + sin(2*pi*x)*(x > -9)",
        ),
        ("x in unit = 0.5; maximum(x, 0.99999)**2", "0*x", "where(x > 0.99999, 2*x, 0)"),
    ],
)
def test_a_claim_about_free_leaves_is_for_every_branch(script: str, wrong: str, right: str) -> None:
    for claim, verdict in ((wrong, "DISAGREES"), (right, "PROVED")):
        for seed in (None, 0, 1):
            check = check_script(script, wrt=["x"], claims={"x": claim}, seed=seed).checks[-1]
            assert check.verdict in (verdict, "CERTIFIED"[: 9 * (verdict == "PROVED")]), (claim, check.message)
            assert "wrong sign" not in check.message
    for claim, verdict in (("1", "DISAGREES"), ("z/sqrt(z**2)", "CERTIFIED")):
        assert check_script("sqrt(z**2)", dtype="complex128", claims={"z": claim}).checks[-1].verdict == verdict
    there = check_script("relu(x)", at={"x": 2.0}, claims={"x": "1"}).checks[-1]
    assert there.verdict == "PROVED" and there.message.endswith("where x > 0"), "a point says which branch is meant"


@pytest.mark.parametrize("proved", [True, False])
def test_imprecise_floats_stay_imprecise_on_a_set(proved: bool) -> None:
    """A formula that is right on a box has no more digits than at the point."""
    outcome = Outcome("IMPRECISE", "3 digits are lost", {"digits": 12, "region": "x > 0"})
    on_set = granting.granted_on_set(outcome, proved, "equal on the box")
    assert on_set == Outcome("IMPRECISE", "equal on the box", {"digits": 12})
