"""A part of the corpus as files goes in: `check` gives the same bytes whatever the jobs, the order, the process.

Files hold right claims and planted errors, so that reports have counterexamples and diagnoses in them too.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from gradcli.interfaces import cli
from tests.checks.test_corpus import claims_of
from tests.checks.test_diagnosis_realistic import ARRAYS, SCALARS
from tests.support.callable_cases import cases
from tests.support.corpus import corpus

FORMULAS = corpus()[11::50]
PLANTED = (0, 1, 7, 9)  # of the claims of a leaf: the right one, 1e-12, the sign, a term dropped


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One file per formula, in two folders."""
    root = tmp_path_factory.mktemp("corpus")
    for formula in FORMULAS:
        point = formula.points(2)[1]
        wanted = claims_of(formula, point)
        chosen = [(one.leaf, one.text) for i, one in enumerate(wanted) if i % 11 in PLANTED][:8]
        path = root / formula.theme[:4] / f"{formula.name}.grad"
        path.parent.mkdir(exist_ok=True)
        path.write_text(formula.script(point, chosen), encoding="utf-8")
    return root


def report(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    code = cli.main(["check", *arguments, "--format", "json"])
    out, _ = capsys.readouterr()
    return code, out


def by_file(text: str) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for check in json.loads(text)["checks"]:
        found.setdefault(check["file"], []).append(check)
    return found


def test_the_number_of_jobs_does_not_show(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder)
    code, alone = report(capsys, ".", "--jobs", "1")
    assert code == 1  # there are planted errors
    verdicts = {check["verdict"] for check in json.loads(alone)["checks"]}
    assert {"PROVED", "DISAGREES"} <= verdicts
    assert len(by_file(alone)) == len(FORMULAS)
    for jobs in ("2", "3"):
        assert report(capsys, ".", "--jobs", jobs) == (code, alone)


def test_order_and_company_do_not_show(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is said of a file does not depend on the other files: any part of a run can be done again by itself."""
    monkeypatch.chdir(folder)
    paths = sorted(str(path.relative_to(folder)) for path in folder.rglob("*.grad"))[:6]
    together = by_file(report(capsys, *paths, "--jobs", "2")[1])
    turned = by_file(report(capsys, *reversed(paths), "--jobs", "2")[1])
    first = by_file(report(capsys, *paths[:2], "--jobs", "1")[1])
    rest = by_file(report(capsys, *paths[2:], "--jobs", "1")[1])
    assert together == turned == {**first, **rest}


def test_a_fresh_process_says_the_same(folder: Path) -> None:
    """Twice with different hash seeds: every refutation replays, digit for digit."""
    path = sorted(folder.rglob("*.grad"))[3]
    found = []
    for seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        command = [sys.executable, "-m", "gradcli", "check", path.name, "--format", "json"]
        run = subprocess.run(command, cwd=path.parent, env=environment, capture_output=True, timeout=120, check=False)
        assert run.returncode == 1, run.stderr.decode()
        found.append(run.stdout)
    assert found[0] == found[1]
    assert b"counterexample" in found[0]


def test_the_figures_of_the_documentation_are_those_of_the_tests() -> None:
    """How many formulas, functions and derivations there are; how the verdicts fell is printed by the deep suite."""
    text = (Path(__file__).parents[2] / "docs" / "guide" / "verdicts.md").read_text(encoding="utf-8")
    assert f"| {len(corpus())} formulas from textbooks" in text
    assert f"| {len(cases())} Python functions as black boxes" in text
    assert f"| {len(SCALARS) + len(ARRAYS)} wrong derivations" in text
