"""The oracle's process: it may hang, die or be killed; exactly one question suffers, and the check goes on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gradcli.checks import check_script, worker
from gradcli.checks.worker import NoAnswer, Oracle
from gradcli.diagnostics import GradcliError

ROOT = Path(__file__).parent.parent


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


def test_a_process_that_dies_over_a_question_costs_that_question(
    oracle: Oracle, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask = Oracle.ask

    def deadly(self: Oracle, op: str, timeout: float, **question: Any) -> dict[str, Any]:
        return ask(self, "die" if op == "judge" else op, timeout, **question)  # no such operation: the process ends

    monkeypatch.setattr(Oracle, "ask", deadly)
    checks = check_script("x**2*sin(y)", at={"x": 1.3, "y": 0.4}, oracle=oracle).checks
    assert [check.verdict for check in checks] == ["AGREES", "AGREES"]
    told: Any = checks[0].evidence["oracles"]
    assert "ended with code" in told["series"]


def test_no_answer_in_time(oracle: Oracle) -> None:
    oracle.warm()
    with pytest.raises(NoAnswer, match="no answer within"):
        oracle.ask("values", 0.0, rows=[], point={})
    assert oracle._process is None


def test_a_process_that_cannot_start_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """Weaker verdicts from differences alone must not hide a broken installation."""
    monkeypatch.setattr("gradcli.checks.child.CODE", "import a_module_that_does_not_exist_{module}  # {paths}")
    made = Oracle()
    with pytest.raises(GradcliError, match="GC999"):
        check_script("x**2", at={"x": 1.0}, oracle=made)
    made.close()


def test_a_hang_ends_at_the_timeout(oracle: Oracle, monkeypatch: pytest.MonkeyPatch) -> None:
    ask = Oracle.ask

    def stopped(self: Oracle, op: str, timeout: float, **question: Any) -> dict[str, Any]:
        if op == "prove" and self._process is not None:
            os.kill(self._process.pid, signal.SIGSTOP)
        return ask(self, op, timeout, **question)

    monkeypatch.setattr(Oracle, "ask", stopped)
    started = time.monotonic()
    assert verdicts("x**2*sin(y)", oracle, timeout=1.5) == ["CERTIFIED", "CERTIFIED"]
    assert time.monotonic() - started < 12


def test_what_the_oracle_cannot_do_is_an_answer(oracle: Oracle) -> None:
    answer = oracle.ask("values", 5.0, rows=[12345], point={})
    assert answer["problem"] == "unsupported"
    assert oracle.ask("values", 5.0, rows=[], point={}) == {"entries": []}


def test_the_process_ends_with_its_owner() -> None:
    code = (
        "from gradcli.checks.worker import Oracle; import os, sys; o = Oracle(); "
        "o.ask('values', 9.0, rows=[], point={}); print(o._process.pid, flush=True); os.kill(os.getpid(), 9)"
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
    assert worker.shared() is worker.shared()
