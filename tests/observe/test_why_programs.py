"""Faulty programs after real questions, and right ones: `why` names the cause, the line and a fix that works, or is silent.

The programs stand in `why_programs/` (`why_corpus.py` reads them), on the installed PyTorch and JAX.
"""

from __future__ import annotations

import os
import re
import warnings
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from gradcli import why
from gradcli.base.results.findings import Finding
from gradcli.recording import runs
from gradcli.why.fixes import FIXES
from tests.support.healthy_snippets import HEALTHY
from tests.support.why_corpus import Case, cases

pytestmark = pytest.mark.peers
WATCHES = {
    "torch": ("gradcli.recording.libraries.torch_recorder", "TorchWatch"),
    "jax": ("gradcli.recording.libraries.jax_recorder", "JaxWatch"),
}
CASES = cases()
EVERY = 8  # of the faulty programs one in so many belongs to the normal suite
BENIGN = {"flat"}  # says itself that nothing is wrong
OUTSIDE = "inside a transform of torch.func nothing is recorded"


def some(programs: list[Case]) -> list[Any]:
    """Cases as parameters: most of them only for the long laws."""
    parameters = []
    for at, case in enumerate(programs):
        missing = pytest.mark.skipif(find_spec(case.kind) is None, reason=f"{case.kind} is not installed")
        marks = [missing] if at % EVERY == 0 else [missing, pytest.mark.deep]
        parameters.append(pytest.param(case, id=f"{case.kind}: {case.title}", marks=marks))
    return parameters


def explained(kind: str, tmp_path: Path, text: str) -> tuple[tuple[Finding, ...], BaseException | None]:
    """What `why` finds in a program, and the exception that ended it."""
    path = tmp_path / "file.py"
    path.write_text(text, encoding="utf-8")
    module, name = WATCHES[kind]
    library = import_module(kind)
    watch = getattr(import_module(module), name)(library, str(tmp_path) + os.sep)
    # other tests ask for it: programs start as they do by themselves
    wide = kind == "jax" and library.config.jax_enable_x64
    try:
        if wide:
            library.config.update("jax_enable_x64", False)
        with runs.silenced(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            outcome = runs.run_file(str(path), watch=watch, tell=False)
    finally:
        if kind == "torch":
            library.set_grad_enabled(True)
        if wide:
            library.config.update("jax_enable_x64", True)
    assert [note for note in watch.notes if note != OUTSIDE] == []
    return why.explain(watch, str(path), outcome.error).findings, outcome.error


def lines_of(finding: Finding) -> set[int]:
    """All lines that a finding gives."""
    text = f"{finding.message} {finding.cure}"
    return {int(number) for number in re.findall(r"\bline (\d+)", text)} | {finding.line or 0}


def is_right(kind: str, tmp_path: Path, text: str) -> None:
    """Fail where a program stops or is accused."""
    findings, problem = explained(kind, tmp_path, text)
    assert problem is None
    assert [finding for finding in findings if finding.reason not in BENIGN] == []


@pytest.mark.parametrize("case", some([case for case in CASES if case.reason]))
def test_the_cause_of_a_fault_is_named_with_its_line_and_a_fix_that_works(case: Case, tmp_path: Path) -> None:
    findings, _ = explained(case.kind, tmp_path, case.faulty)
    assert {finding.reason for finding in findings} == {case.reason}
    assert any(lines_of(finding) & case.lines for finding in findings)
    assert re.search(case.words, " ".join(f"{finding.message} / {finding.cure}" for finding in findings))
    if case.kind == "jax":
        assert not re.search(r"torch|clip_grad_norm_", " ".join(finding.cure for finding in findings))
    is_right(case.kind, tmp_path, case.right)
    patches = findings[0].patches  # the first that helps is the fix, as for `--fix`
    for last, patch in enumerate(patches, 1):
        if last == len(patches) or not explained(case.kind, tmp_path, patch.applied(case.faulty))[0]:
            is_right(case.kind, tmp_path, patch.applied(case.faulty))
            break


@pytest.mark.parametrize("case", some([case for case in CASES if not case.reason]))
def test_right_programs_are_left_alone(case: Case, tmp_path: Path) -> None:
    is_right(case.kind, tmp_path, case.right)


@pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed")
@pytest.mark.parametrize("name", HEALTHY)
def test_programs_of_tutorials_are_left_alone(name: str, tmp_path: Path) -> None:
    is_right("torch", tmp_path, HEALTHY[name])


def test_the_tutorial_has_a_question_for_every_reason() -> None:
    text = (Path(__file__).parents[2] / "docs" / "tutorials" / "why.md").read_text(encoding="utf-8")
    asked = re.findall(r"^\| `([\w-]+)` \| .+ \|$", text, re.MULTILINE)
    assert sorted(asked) == sorted(FIXES)
