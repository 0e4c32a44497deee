"""Determinism: a report hangs on the script, the point and the options alone, however fast or busy the machine is."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from gradcli.checks import Check, check_script
from gradcli.checks.evaluate.interpretation import Unsupported
from gradcli.checks.oracle import oracle_client, sympy_witness
from gradcli.checks.oracle.oracle_client import Oracle
from gradcli.checks.oracle.sympy_witness import limited
from gradcli.language.parser import parse
from gradcli.language.source import Source
from gradcli.lowering import lower
from tests.checks.test_corpus import claims_of
from tests.support.corpus import corpus

ROOT = Path(__file__).parents[2]
FORMULAS = corpus()[13::150]
SAMPLES = sorted((ROOT / "samples" / "gradbench").glob("*.grad"))
CERTIFIED = "assert gamma(2*x) == 2**(2*x - 1)*gamma(x)*gamma(x + 1/2)/sqrt(pi)\nx"
SUBSETS = tuple(
    f"checks/{room}*.py"
    for room in (
        "",
        "decide/",
        "derivatives/",
        "diagnosis/",
        "evaluate/",
        "expansions/",
        "algebra/",
        "oracle/",
    )
)


def scripts(formulas: Any) -> list[tuple[str, dict[str, Any]]]:
    """Scripts with right and wrong claims: proofs, refutations, diagnoses."""
    found: list[tuple[str, dict[str, Any]]] = [(CERTIFIED, {"x": 1.3})]
    for formula in formulas:
        point = formula.points(2)[1]
        claims = [(one.leaf, one.text) for i, one in enumerate(claims_of(formula, point)) if i % 11 in (0, 7)][:4]
        found.append((formula.script(point, claims), {}))
    return found


def report(script: str, at: dict[str, Any], oracle: Oracle | None = None, **options: Any) -> str:
    return repr(check_script(script, at=at, oracle=oracle, **options))


@contextmanager
def busy() -> Iterator[None]:
    """Two endless loops for each processor."""
    count = 2 * (os.cpu_count() or 1)
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
        for loop in loops:
            loop.wait()


def test_no_check_looks_at_a_clock() -> None:
    """One clock is left: the deadline of a check, after which it is INCONCLUSIVE."""
    package = ROOT / "gradcli"
    found = {
        str(path.relative_to(package))
        for pattern in SUBSETS
        for path in package.glob(pattern)
        if any(
            word in path.read_text(encoding="utf-8") for word in ("monotonic", "perf_counter", "import time", "time()")
        )
    }
    # how long a check took is noted for JUnit; the limit of a process ends a run, and its case has crashed then
    assert found == {"checks/oracle/oracle_client.py", "checks/scripts.py"}


def test_reports_beside_busy_processors_are_the_same() -> None:
    """On a loaded machine, with an oracle that has answered before, and with a fresh one for each script."""
    chosen = scripts(FORMULAS)
    alone = [report(*one) for one in chosen]
    with busy():
        for wanted, one in zip(alone, chosen, strict=True):
            oracle = Oracle()
            assert report(*one, oracle=oracle) == wanted
            oracle.close()


@pytest.mark.deep
def test_reports_of_the_whole_corpus_beside_busy_processors_are_the_same() -> None:
    chosen = scripts(corpus()) + [(path.read_text(encoding="utf-8"), {}) for path in SAMPLES]
    alone = [report(*one) for one in chosen]
    with busy():
        for wanted, one in zip(alone, chosen, strict=True):
            assert report(*one) == wanted


def said(check: Check) -> tuple[object, ...]:
    """All that a check says; diagnostics compare by identity."""
    shown = [one.as_json() for one in check.diagnostics]
    return check.id, check.verdict, check.message, check.evidence, check.passed, shown


@pytest.mark.parametrize("speed", [100.0, 10_000.0])
def test_a_fast_clock_leaves_a_report_as_it_is_or_inconclusive(monkeypatch: pytest.MonkeyPatch, speed: float) -> None:
    """Never another verdict, and never the same one with less evidence."""
    chosen = scripts(FORMULAS[::2])
    usual = [check_script(script, at=at) for script, at in chosen]
    clock = oracle_client.monotonic
    monkeypatch.setattr(oracle_client, "monotonic", lambda: speed * clock())
    ask = Oracle.ask

    def hurried(self: Oracle, op: str, timeout: float, **question: Any) -> Any:
        return ask(self, op, timeout / speed, **question)

    monkeypatch.setattr(Oracle, "ask", hurried)
    ended = 0
    for wanted, (script, at) in zip(usual, chosen, strict=True):
        found = check_script(script, at=at, timeout=10.0)
        assert len(found.checks) == len(wanted.checks)
        for one, other in zip(found.checks, wanted.checks, strict=True):
            if said(one) != said(other):
                assert (one.verdict, one.evidence["unanswered"], one.passed) == ("INCONCLUSIVE", "timeout", False)
                assert "10 s ran out" in one.message
                ended += 1
    assert ended or speed < 1000


# --- SymPy --------------------------------------------------------------------------------------------------------


def calls(number: int) -> int:
    return 0 if not number else calls(number - 1)


def test_calls_are_counted_and_imports_are_not() -> None:
    sys.modules.pop("colorsys", None)
    with limited(200) as own:
        pass
    with limited(200) as count:
        import colorsys  # noqa: F401  # some hundred calls of Python's own
    assert count == own
    with limited(200) as count:
        calls(100)
    assert count[0] == own[0] + 101
    with pytest.raises(Unsupported, match="more than 200 calls"), limited(200):
        calls(300)
    assert sys.getprofile() is None


def test_no_handler_of_errors_goes_on_over_the_limit() -> None:
    reached = []

    def stubborn() -> None:
        try:
            calls(300)
        except Exception:
            reached.append("SymPy's own handlers")

    with pytest.raises(Unsupported), limited(200):
        stubborn()
    assert not reached


def test_sympys_calls_hardly_depend_on_what_was_asked_before(monkeypatch: pytest.MonkeyPatch) -> None:
    counts, answers = [], []

    @contextmanager
    def counted(most: int) -> Iterator[list[int]]:
        with limited(most) as count:
            yield count
        counts.append(count[0])

    monkeypatch.setattr(sympy_witness, "limited", counted)
    lowered = lower(parse(Source("gamma(2*x)*erf(x)**3")))
    (output,), leaf = lowered.program.outputs, lowered.program.leaves["x"].node
    for _ in range(3):
        answers.append(sympy_witness.derivative(output, leaf, 0, {"x": ([1.3], ())}))
    assert answers[1:] == answers[:2]
    assert min(counts) > 10_000 and max(counts) - min(counts) < sympy_witness.MOST_CALLS // 50  # tables of mpmath
