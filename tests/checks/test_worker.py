"""The oracle's process: it may hang, die, grow or be killed, and no report shows it."""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gradcli.base.diagnostics import GradcliError
from gradcli.checks import check_script
from gradcli.checks.oracle import oracle_client
from gradcli.checks.oracle.oracle_client import Oracle, TimeOver

ROOT = Path(__file__).parents[2]


@pytest.fixture
def oracle() -> Iterator[Oracle]:
    made = Oracle()
    yield made
    made.close()


def verdicts(text: str, oracle: Oracle, **options: Any) -> list[str]:
    return [check.verdict for check in check_script(text, at={"x": 1.3, "y": 0.4}, oracle=oracle, **options).checks]


def test_a_killed_process_is_started_again(oracle: Oracle) -> None:
    assert verdicts("x**2*y", oracle) == ["PROVED", "PROVED"]
    assert oracle._process is not None
    oracle._process.kill()
    oracle._process.wait()
    assert verdicts("x**2*y", oracle) == ["PROVED", "PROVED"]


TEXTS = (  # proofs in each way, refutations with a diagnosis, ties, several programs for one script
    ("x**2*sin(y)", {}),
    ("abs(x - 1.3)*y", {}),
    ("x**3 - y", {"claims": {"x": "3*x", "y": "-1"}}),
    ("log(exp(x) + 1)*y", {"claims": {"x": "y*exp(x)/(exp(x) + 2)"}}),
    ("assert gamma(2*x) == 2**(2*x - 1)*gamma(x)*gamma(x + 1/2)/sqrt(pi)\nx*y", {}),
    ("(1 - cos(x*1e-5))/(x*1e-5)**2 + y", {}),
)


@pytest.mark.parametrize(
    ("text", "options", "answered"),
    [(*one, False) for one in TEXTS[1:3]]
    + [pytest.param(*one, True, marks=pytest.mark.deep) for one in TEXTS]
    + [pytest.param(*one, False, marks=pytest.mark.deep) for one in (TEXTS[0], *TEXTS[3:])],
)
def test_a_process_that_is_lost_does_not_show(
    oracle: Oracle, monkeypatch: pytest.MonkeyPatch, text: str, options: Any, answered: bool
) -> None:
    """Killed at question k, before or after it could have answered, for every k: the report is the same."""
    exchange = Oracle._exchange
    number, victim = 0, -1

    def deadly(self: Oracle, op: str, timeout: float, question: dict[str, Any]) -> dict[str, Any]:
        nonlocal number
        number += 1
        process = self._process
        assert process is not None
        if number == victim and not answered:
            process.kill()
        found = exchange(self, op, timeout, question)
        if number == victim:
            process.kill()
        return found

    monkeypatch.setattr(Oracle, "_exchange", deadly)
    at = {"x": 1.3, "y": 0.4}
    wanted = repr(check_script(text, at=at, oracle=oracle, **options))
    count = number
    assert "unanswered" not in wanted and count > 1
    for victim in range(1, count + 1):
        number = 0
        assert repr(check_script(text, at=at, oracle=oracle, **options)) == wanted, victim
        assert number > count or answered, victim


def test_a_question_over_which_two_processes_die_is_inconclusive(
    oracle: Oracle, monkeypatch: pytest.MonkeyPatch
) -> None:
    exchange = Oracle._exchange

    def deadly(self: Oracle, op: str, timeout: float, question: dict[str, Any]) -> dict[str, Any]:
        return exchange(self, "die" if op == lost else op, timeout, question)  # no such operation: the process ends

    monkeypatch.setattr(Oracle, "_exchange", deadly)
    for lost in ("judge", "prove", "load"):
        checks = check_script("x**2*sin(y)", at={"x": 1.3, "y": 0.4}, oracle=oracle).checks
        assert [check.verdict for check in checks] == ["INCONCLUSIVE", "INCONCLUSIVE"], lost
        assert "ended twice on the same question" in checks[0].message
        assert checks[0].evidence["unanswered"] == "lost"
        assert not checks[0].passed


def test_a_process_that_has_grown_is_replaced_between_scripts(oracle: Oracle, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "f = x**2*sin(y)\nassert grad(f, x) == 2*x*sin(y)\nassert grad(f, y) == 0\nf"
    wanted = repr(check_script(text, at={"x": 1.3, "y": 0.4}, oracle=oracle))
    first = oracle._process
    assert first is not None
    assert 10 < oracle.memory() < 300 or not Path("/proc/self/statm").exists()
    monkeypatch.setattr(Oracle, "memory", lambda self: 1e6)
    assert repr(check_script(text, at={"x": 1.3, "y": 0.4}, oracle=oracle)) == wanted
    assert oracle._process is not first and first.poll() is not None
    monkeypatch.undo()
    monkeypatch.setattr(oracle_client, "MOST_PROGRAMS", 0)
    second = oracle._process
    assert repr(check_script(text, at={"x": 1.3, "y": 0.4}, oracle=oracle)) == wanted
    assert oracle._process is not second


def test_the_graph_of_a_script_is_let_go_when_its_check_is_over(oracle: Oracle) -> None:
    assert verdicts("x**2*y", oracle) == ["PROVED", "PROVED"]
    assert oracle._programs == 1 and oracle._held is None


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_child_has_an_oracle_of_its_own(capfd: pytest.CaptureFixture[str]) -> None:
    wanted = check_script("x**2", at={"x": 3.0})
    mine = oracle_client.shared()._process
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Python warns of forks beside threads
        child = os.fork()
    if not child:
        os._exit(0 if check_script("x**2", at={"x": 3.0}) == wanted else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert mine is not None and mine.poll() is None and oracle_client.shared()._process is mine
    assert check_script("x**2", at={"x": 3.0}) == wanted


def test_no_answer_in_time(oracle: Oracle) -> None:
    oracle.warm()
    with pytest.raises(TimeOver):
        oracle.ask("values", 0.0, nodes=[], point={})
    assert oracle._process is None


def test_a_process_that_cannot_start_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """Weaker verdicts from differences alone must not hide a broken installation."""
    monkeypatch.setattr("gradcli.base.child_process.CODE", "import a_module_that_does_not_exist_{module}  # {paths}")
    made = Oracle()
    with pytest.raises(GradcliError, match="GC999"):
        check_script("x**2", at={"x": 1.0}, oracle=made)
    made.close()


def test_a_hang_is_inconclusive_at_the_timeout(oracle: Oracle, monkeypatch: pytest.MonkeyPatch) -> None:
    ask = Oracle.ask

    def stopped(self: Oracle, op: str, timeout: float, **question: Any) -> dict[str, Any]:
        if op == "prove" and self._process is not None:
            os.kill(self._process.pid, signal.SIGSTOP)
        return ask(self, op, timeout, **question)

    monkeypatch.setattr(Oracle, "ask", stopped)
    checks = check_script("x**2*sin(y)", at={"x": 1.3, "y": 0.4}, oracle=oracle, timeout=0.5).checks
    assert {(check.verdict, check.message) for check in checks} == {
        ("INCONCLUSIVE", "not decided: 0.5 s ran out; a longer --timeout may help")
    }
    assert {check.evidence["unanswered"] for check in checks} == {"timeout"}


@pytest.mark.parametrize("timeout", [1e300, math.inf])
def test_a_timeout_without_end(oracle: Oracle, timeout: float) -> None:
    assert check_script("x**2", at={"x": 1.0}, oracle=oracle, timeout=timeout).checks[0].verdict == "PROVED"


def test_what_the_oracle_cannot_do_is_an_answer(oracle: Oracle) -> None:
    answer = oracle.ask("values", 5.0, nodes=[{"node": 12345}], point={})
    assert answer["problem"] == "unsupported"
    assert oracle.ask("values", 5.0, nodes=[], point={}) == {"entries": []}


def test_the_process_ends_with_its_owner() -> None:
    code = (
        "from gradcli.checks.oracle.oracle_client import Oracle; import os, sys; o = Oracle(); "
        "o.ask('values', 9.0, nodes=[], point={}); print(o._process.pid, flush=True); os.kill(os.getpid(), 9)"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=False)
    pid = int(done.stdout)
    for _ in range(50):
        if not _alive(pid):
            return
        time.sleep(0.1)
    pytest.fail("the oracle's process outlives its owner")


def _alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def test_a_module_in_the_current_folder_is_not_imported(tmp_path: Path) -> None:
    (tmp_path / "sympy.py").write_text("raise SystemExit('imported')", encoding="utf-8")
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); from gradcli.checks import check_script; "
        "sys.path[:] = [p for p in sys.path if p]; "
        "print([c.verdict for c in check_script('x**2', at={'x': 3.0}).checks])"
    )
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    command = [sys.executable, "-P", "-c", code, str(ROOT)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=True, env=environment)
    assert done.stdout.strip() == "['PROVED']"


def test_names_of_leaves_are_never_read_as_code(oracle: Oracle) -> None:
    for name in ("S", "N", "E1", "beta", "gamma", "lambda_", "__import__", "pi_"):
        found = check_script(f"{name}**2 + sin({name})", at={name: 1.3}, oracle=oracle).checks
        assert [check.verdict for check in found] == ["PROVED"], name


def test_one_oracle_is_shared() -> None:
    assert oracle_client.shared() is oracle_client.shared()
