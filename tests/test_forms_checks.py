"""Proofs as `check` has them: without SymPy but for the last resort, within their time, step by step, for rules too."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from gradcli.checks import worker
from gradcli.checks.forms import proving, tower
from gradcli.checks.gradcheck import check_script
from gradcli.language.parser import parse
from gradcli.language.source import Source
from gradcli.lowering import lower

RULE = """
def f(x, y):
    return x**2*sin(y)

def f.vjp(x, y, ct):
    return (ct*2*x*sin(y), ct*x**2*{})

f(x, y)
"""
STEPS = [
    "assert 1 - tanh(x)**2 == (cosh(x)**2 - sinh(x)**2)/cosh(x)**2",
    "assert (cosh(x)**2 - sinh(x)**2)/cosh(x)**2 == 1/cosh(x)**2",
    "assert 1/cosh(x)**2 == 2/(cosh(2*x) - 1)",
    "assert 2/(cosh(2*x) - 1) == 4/(exp(x) - exp(-x))**2",
]


def test_a_usual_check_does_not_load_sympy() -> None:
    script = (
        "import sys\n"
        "from gradcli.checks.oracle import Session, room\n"
        "from gradcli.graph.flat import Table\n"
        "from gradcli.language.parser import parse\n"
        "from gradcli.language.source import Source\n"
        "from gradcli.lowering import lower\n"
        "from gradcli.primitives import catalogue\n"
        "low = lower(parse(Source('f = exp(-x)*sin(x)\\nassert grad(f, x) == exp(-x)*(cos(x) - sin(x))\\nf')), at={'x': 1.5})\n"
        "claim = low.claims[0]\n"
        "output, target = claim.derivative\n"
        "table = Table([claim.right, output, target], catalogue())\n"
        "session = Session()\n"
        "session.answer({'op': 'load', 'flat': table.flat})\n"
        "rows = {'right': claim.right, 'output': output, 'target': target}\n"
        "answer = session.answer({'op': 'prove', 'moving': ['x'], 'entries': [0], 'point': {'x': [[1.5], []]},\n"
        "                         **{side: table.rows[node] for side, node in rows.items()}})\n"
        "assert answer['proved'] and answer['how'] != 'sympy', answer\n"
        "assert 'sympy' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)


def test_sympy_is_the_last_resort() -> None:
    claim = "assert gamma(2*x) == 2**(2*x - 1)*gamma(x)*gamma(x + 1/2)/sqrt(pi)\nx"
    _, check = check_script(claim, at={"x": 1.3}).checks
    assert check.verdict == "PROVED"
    assert "proved (sympy)" in str(check.evidence["oracles"])
    wrong = check_script(claim.replace("sqrt(pi)", "sqrt(pi + 1e-15)"), at={"x": 1.3}).checks[1]
    assert wrong.verdict in ("DISAGREES", "INCONCLUSIVE")


def test_a_proof_ends_with_its_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    low = lower(parse(Source("assert sin(2*x) == 2*sin(x)*cos(x)\nx")), at={"x": 1.5})
    (claim,) = low.claims
    point = {"x": ([1.5], ())}
    assert proving.prove_equal(claim.left, claim.right, ["x"], point)["proved"]
    monkeypatch.setattr(tower.Tower.__init__, "__defaults__", (16, 0))
    ended = proving.prove_equal(claim.left, claim.right, ["x"], point)
    assert not ended["proved"] and ended["reason"] == "a proof that is too long"


def test_a_proof_that_hangs_is_inconclusive(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not CERTIFIED: on a machine that is faster the claim would be PROVED."""
    script = "assert grad(logdet(X), X) == inv((X + X.T)/2)\n1"
    at = {"X": [[9, 1, 2, 0.5], [1, 8, 0.25, 1.5], [2, 0.25, 7, 1], [0.5, 1.5, 1, 6]]}
    asked = worker.Oracle.ask

    def impatient(self: worker.Oracle, op: str, timeout: float, **question: Any) -> dict[str, Any]:
        return asked(self, op, 0.0 if op == "prove" else timeout, **question)

    monkeypatch.setattr(worker.Oracle, "ask", impatient)
    slow = check_script(script, at=at).checks[-1]
    assert (slow.verdict, slow.evidence["unanswered"]) == ("INCONCLUSIVE", "timeout")
    monkeypatch.undo()
    (usual,) = check_script("x**2", at={"x": 3.0}).checks
    assert usual.verdict == "PROVED"


def test_the_first_wrong_step_is_named() -> None:
    checks = check_script("\n".join([*STEPS, "tanh(x)"]), at={"x": 1.3}).checks[1:]
    assert [check.verdict for check in checks] == ["PROVED", "PROVED", "DISAGREES", "PROVED"]
    assert checks[2].message.startswith("step 3 of 4 is the first that is wrong")
    assert (checks[2].evidence["step"], checks[2].evidence["steps"]) == (3, 4)
    assert checks[2].line == 3
    right = [STEPS[0], STEPS[1], STEPS[2].replace("- 1", "+ 1"), STEPS[3].replace(" - ", " + ")]
    assert all("step" not in check.message for check in check_script("\n".join([*right, "x"]), at={"x": 1.3}).checks)


def test_two_claims_about_one_gradient_are_no_derivation() -> None:
    script = "f = x**2\nassert grad(f, x) == 2*x\nassert grad(f, x) == 3*x  # expect: fail\nf"
    assert all("step" not in check.message for check in check_script(script, at={"x": 1.5}).checks)


def test_a_derivation_may_start_at_a_gradient() -> None:
    script = (
        "f = x**x\n"
        "assert grad(f, x) == exp(x*log(x))*(log(x) + 1)\n"
        "assert exp(x*log(x))*(log(x) + 1) == x**x*log(x) + x\n"
        "f"
    )
    *_, last = check_script(script, at={"x": 1.5}).checks
    assert last.verdict == "DISAGREES"
    assert last.message.startswith("step 2 of 2")


@pytest.mark.parametrize(("slope", "verdict"), [("cos(y)", "PROVED"), ("cos(y)*(1 + 1e-9)", "DISAGREES")])
def test_hand_written_rules_are_proved(slope: str, verdict: str) -> None:
    checks = check_script(RULE.format(slope), at={"x": 1.5, "y": 0.5}).checks
    assert [check.verdict for check in checks if check.kind == "vjp"] == ["PROVED", verdict]
