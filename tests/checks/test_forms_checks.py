"""Proofs as `check` has them: without SymPy but for the last resort, within their time, step by step, for rules too."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from gradcli.checks.algebra import differential_field, proof
from gradcli.checks.oracle import oracle_client
from gradcli.checks.scripts import check_script
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
        "from gradcli.checks.oracle.oracle_server import Session, room\n"
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
        "answer = session.answer({'op': 'prove', 'moving': ['x'], 'entries': [0], 'point': {'x': ([1.5], ())},\n"
        "                         **{side: session.nodes[table.rows[node]] for side, node in rows.items()}})\n"
        "assert answer['proved'], answer\n"
        "assert 'sympy' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)


def test_an_identity_beyond_normal_forms_is_certified() -> None:
    claim = "assert gamma(2*x) == 2**(2*x - 1)*gamma(x)*gamma(x + 1/2)/sqrt(pi)\nx"
    _, check = check_script(claim, at={"x": 1.3}).checks
    assert check.verdict == "CERTIFIED"
    wrong = check_script(claim.replace("sqrt(pi)", "sqrt(pi + 1e-15)"), at={"x": 1.3}).checks[1]
    assert wrong.verdict in ("DISAGREES", "INCONCLUSIVE")


def test_a_proof_ends_with_its_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    low = lower(parse(Source("assert sin(2*x) == 2*sin(x)*cos(x)\nx")), at={"x": 1.5})
    (claim,) = low.claims
    point = {"x": ([1.5], ())}
    assert proof.prove_equal(claim.left, claim.right, ["x"], point)["proved"]
    for budget in ("MOST_WORK", "MOST_APART"):
        monkeypatch.setattr(proof, budget, 0)
    ended = proof.prove_equal(claim.left, claim.right, ["x"], point)
    assert not ended["proved"] and ended["reason"] == "a proof that is too long"


LONG = "y = " + "*".join(f"sin(x + {n})*exp(x**{n})" for n in range(2, 40))  # more generators than a ring has
ASKED = (
    "f = x**2*sin(y)\nassert grad(f, x) == 2*x*sin(y)\nassert grad(f, y) == x**2*cos(y)\nassert grad(f, y) == x\nf",
    "f = detach(x)*x*y\nassert grad(f, x) == detach(x)*y\nassert grad(f, x) == x*y\nassert grad(f, x) == 2*x*y\nf",
    "f = abs(x - 1.3) + x*abs(y)\nassert grad(f, y) == x\nassert grad(f, y) == x*sign(y)\nf",
    "f = exp(x/2) + exp(x) + y\nassert grad(f, x) == exp(x/2)/2 + exp(x)\nassert grad(f, x) == exp(x/3)**3 + exp(x/2)/2\nf",
    "u = x*y\nf = sin(u)*u\nassert grad(f, u) == u*cos(u) + sin(u)\nassert grad(f, u) == cos(x*y)\nf",
    "f = hypot(x, x) + atan2(x, x)\nassert grad(f, x) == sqrt(2)\nassert grad(f, x) == 2/sqrt(2)\nf",
    f"{LONG}\nassert grad(y, x) == 1\nassert grad(y, x) == 2\ny",
)


def asked(script: str, failed: proof.Failed | None = None) -> list[dict[str, Any]]:
    """The answers to all claims about derivatives of a script, one after the other."""
    low = lower(parse(Source(script)), at={"x": 1.3, "y": 0.4})
    point = {name: ([value], ()) for name, value in (("x", 1.3), ("y", 0.4)) if name in low.program.leaves}
    found = []
    for claim in low.claims:
        assert claim.derivative is not None
        output, target = claim.derivative
        found.append(proof.prove_derivative(output, target, claim.right, low.wrt, point, [0], failed))
    return found


@pytest.mark.parametrize("script", ASKED)
def test_answers_do_not_depend_on_what_is_read_only_once(script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once with parts that both sides share; once with every side read by itself."""
    shared = asked(script)
    plain = differential_field.Tower.__init__

    def never_shared(self: differential_field.Tower, *args: Any) -> None:
        plain(self, *args)
        self.refined = 1

    monkeypatch.setattr(differential_field.Tower, "__init__", never_shared)
    assert asked(script) == shared


def test_a_value_that_cannot_be_read_is_tried_once(monkeypatch: pytest.MonkeyPatch) -> None:
    reads: list[int] = []
    read = proof.FieldEvaluation.read

    def counted(self: proof.FieldEvaluation, outputs: Any) -> Any:
        reads.append(len(outputs))
        return read(self, outputs)

    monkeypatch.setattr(proof.FieldEvaluation, "read", counted)
    failed: proof.Failed = {}
    first = asked(ASKED[-1], failed)
    tried = len(reads)
    assert not first[0]["proved"] and first[0]["reason"] == first[1]["reason"] and failed
    assert tried == len(failed), "each ring and reader once for both claims"
    assert asked(ASKED[-1]) == first and len(reads) == 3 * tried


def test_a_proof_that_hangs_is_inconclusive(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not CERTIFIED: on a machine that is faster the claim would be PROVED."""
    script = "assert grad(logdet(X), X) == inv((X + X.T)/2)\n1"
    at = {"X": [[9, 1, 2, 0.5], [1, 8, 0.25, 1.5], [2, 0.25, 7, 1], [0.5, 1.5, 1, 6]]}
    asked = oracle_client.Oracle.ask

    def impatient(self: oracle_client.Oracle, op: str, timeout: float, **question: Any) -> dict[str, Any]:
        return asked(self, op, 0.0 if op == "prove" else timeout, **question)

    monkeypatch.setattr(oracle_client.Oracle, "ask", impatient)
    slow = check_script(script, at=at).checks[-1]
    assert (slow.verdict, slow.evidence["unanswered"]) == ("INCONCLUSIVE", "timeout")
    monkeypatch.undo()
    (usual,) = check_script("x**2", at={"x": 3.0}).checks
    assert usual.verdict == "PROVED"


def test_the_first_wrong_step_is_named() -> None:
    checks = check_script("\n".join([*STEPS, "tanh(x)"]), at={"x": 1.3}).checks[1:]
    assert [check.verdict for check in checks] == ["PROVED", "PROVED", "DISAGREES", "PROVED"]
    assert checks[2].message.startswith("step 3 of 4 is the first wrong one")
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
