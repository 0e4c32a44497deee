"""The pytest plug-in: what it collects, what its tests say, and that a project without scripts pays nothing for it."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from gradcli import check, checks
from gradcli.interfaces.cli import main

pytest_plugins = ["pytester"]

ROOT = Path(__file__).parents[2]
WRONG = "x = 2\nassert grad(x**2, x) == 3*x\ny = 3\nx**2*y\n"


@pytest.fixture(scope="module", autouse=True)
def imported() -> None:
    """Import all that judging and showing need, because pytester drops what is imported inside."""
    str(check(WRONG))


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A folder with a right and a wrong script, and the plug-in of this package."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("PYTEST_ADDOPTS", "-p gradcli.pytest_plugin -p no:cacheprovider")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    pytester.makefile(".grad", right="x = 2\nassert grad(x**2, x) == 2*x\nx**2\n", wrong=WRONG)
    return pytester


def run(project: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    return project.runpytest_inprocess(*arguments)


def test_scripts_are_collected_where_that_was_asked_for(project: pytest.Pytester) -> None:
    assert run(project).ret == pytest.ExitCode.NO_TESTS_COLLECTED
    run(project, "--gradcli").assert_outcomes(passed=4, failed=1)
    run(project, "right.grad").assert_outcomes(passed=2)
    run(project, "wrong.grad::claim:2").assert_outcomes(failed=1)
    project.makeini("[pytest]\ngradcli = true\n")
    run(project, "-k", "claim").assert_outcomes(passed=1, failed=1, deselected=3)


def test_names_are_known_without_judging(project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gradcli.checks.scripts.judge", None)
    result = run(project, "--gradcli", "--collect-only", "-q")
    names = ["right.grad::gradient:x", "right.grad::claim:2"]
    names += ["wrong.grad::gradient:x", "wrong.grad::gradient:y", "wrong.grad::claim:2"]
    assert [line for line in result.outlines if "::" in line] == names


def test_a_failure_is_what_check_prints(project: pytest.Pytester) -> None:
    result = run(project, "--gradcli", "--junitxml", "report.xml")
    printed = str(check(WRONG, witnesses="none"))
    card = printed[printed.index("DISAGREES claim x, line 2") : printed.rindex("\n\n")]
    lines = [line for line in result.outlines if not line.startswith("reproduce ")]
    assert card in "\n".join(lines) and len(lines) == len(result.outlines) - 1
    text = "\n".join(result.outlines)
    assert "reproduce       gradcli check wrong.grad --seed " in text
    assert "FAILED wrong.grad::claim:2 - DISAGREES: the exact derivative is 4, not 6" in text
    assert "Traceback" not in text
    failure = ElementTree.parse(project.path / "report.xml").getroot().find(".//failure")
    assert failure is not None
    assert failure.get("message") == "DISAGREES: the exact derivative is 4, not 6"
    assert card.partition("\nat ")[0] in (failure.text or "")
    lines = run(project, "--gradcli", "--tb=line").outlines
    assert f"{project.path / 'wrong.grad'}:2: DISAGREES: the exact derivative is 4, not 6" in lines


def test_a_file_is_judged_once(project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    judged = []
    real = checks.check_script

    def counted(source: Any, **options: Any) -> Any:
        judged.append(source.path)
        return real(source, **options)

    monkeypatch.setattr("gradcli.checks.scripts.check_script", counted)
    run(project, "--gradcli").assert_outcomes(passed=4, failed=1)
    assert judged == ["right.grad", "wrong.grad"]


def test_a_script_that_cannot_be_read_is_one_failure(project: pytest.Pytester) -> None:
    project.makefile(".grad", unreadable="x**\n", expected="# expect: error GC112\nx**\n")
    project.makefile(".grad", other="# expect: error GC101\nx**\n")
    run(project, "expected.grad").assert_outcomes(passed=1)
    result = run(project, "unreadable.grad", "-v")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["unreadable.grad::error FAILED*", "error?GC112?: a value is missing*", "*1 | x[*][*]"])
    result = run(project, "other.grad")
    result.stdout.fnmatch_lines(["*expected GC101, but it fails with GC112*", "error?GC112?: a value is missing*"])


def test_what_could_not_be_decided_fails(project: pytest.Pytester) -> None:
    # the reflection formula of gamma is no normal form, and no ball tells its two sides apart
    project.makefile(".grad", open="x = 0.3\nabs(gamma(x)*gamma(1 - x) - pi/sin(pi*x))\n")
    result = run(project, "open.grad")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["FAILED open.grad::gradient:x - INCONCLUSIVE: *"])
    result = run(project, "open.grad", "-rs", "-o", "gradcli_inconclusive=skip")
    result.assert_outcomes(skipped=1)
    result.stdout.fnmatch_lines(["SKIPPED * open.grad:2: INCONCLUSIVE: *"])
    project.makepyprojecttoml("[tool.gradcli.check]\nallow = 'inconclusive'\n")
    run(project, "open.grad").assert_outcomes(passed=1)
    assert run(project, "-o", "gradcli_inconclusive=never").ret == pytest.ExitCode.USAGE_ERROR


PLACES = {
    "build": True, "dist": True, "venv": True, "node_modules": True, "x.egg": True, "CVS": True, "_darcs": True,
    "deep/build/build": True, "tests": True, ".hidden": False, "left_out": False,
}  # fmt: skip


@pytest.fixture
def tree(project: pytest.Pytester) -> pytest.Pytester:
    """Scripts in folders of many names, one that git ignores, links, a document, a script that cannot be read."""
    for place in PLACES:
        folder = project.path / place
        folder.mkdir(parents=True)
        (folder / "in.grad").write_text(WRONG)
    (project.path / ".gitignore").write_text("left_out/\n")
    (project.path / "dangling.grad").symlink_to(project.path / "gone.grad")
    (project.path / "linked.grad").symlink_to(project.path / "right.grad")
    (project.path / "linked").symlink_to(project.path / "tests", target_is_directory=True)
    (project.path / "bytes.grad").write_bytes(b"\xff")
    (project.path / "notes.md").write_text("```gradcli\nx = 2\nx**2\n```\n\n```gradcli\ny = 3\ny**2\n```\n")
    return project


@pytest.mark.parametrize(
    ("places", "settings"), [((), "docs = true"), ((".",), ""), (("build", "tests"), ""), (("deep",), "")], ids=str
)
def test_pytest_judges_what_check_judges(tree: pytest.Pytester, places: tuple[str, ...], settings: str) -> None:
    tree.makepyprojecttoml(f"[tool.gradcli.check]\n{settings}\n")
    main(["check", *places, "--json", "report.json", "--no-cache"])
    checks = json.loads((tree.path / "report.json").read_text())["checks"]
    names = [f"{check['file']}{' (block {block})'.format(**check) if 'block' in check else ''}" for check in checks]
    result = run(tree, "--gradcli", *places, "-rA")
    outcomes = {
        line.partition(" ")[2].partition(" - ")[0]: line.startswith("PASSED")
        for line in result.outlines
        if line.startswith(("PASSED ", "FAILED ", "ERROR ", "SKIPPED "))
    }
    assert outcomes == {f"{name}::{check['id']}": check["passed"] for name, check in zip(names, checks, strict=True)}
    found = {name.rpartition("/")[0] for name in names}
    assert not places or places == (".",) or found == {"deep": {"deep/build/build"}}.get(places[0], {*places})


def test_files_can_be_left_out(tree: pytest.Pytester) -> None:
    def collected(*words: str) -> set[str]:
        lines = run(tree, "--gradcli", "--collect-only", "-q", *words).outlines
        return {line.partition("::")[0] for line in lines if "::" in line}

    every = collected()
    assert collected("--ignore=build") == every - {"build/in.grad"}
    assert collected("--ignore=deep", "--ignore=bytes.grad") == every - {"deep/build/build/in.grad", "bytes.grad"}
    assert collected("--ignore-glob=d*") == every - {"deep/build/build/in.grad", "dist/in.grad", "dangling.grad"}
    assert collected("--deselect=build/in.grad") == every - {"build/in.grad"}
    assert collected("build/in.grad", "build") == {"build/in.grad"}


def test_settings_of_the_project_count(project: pytest.Pytester) -> None:
    project.makefile(".grad", kink="x = 0\nabs(x)\n")
    run(project, "kink.grad").assert_outcomes(failed=1)
    project.makepyprojecttoml("[tool.gradcli.check]\nallow = 'kink'\n")
    result = run(project, "kink.grad")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["note?GC727?: pyproject.toml permits more*"])
    project.makepyprojecttoml("[tool.gradcli.check]\nallow-kinks = true\n")
    result = run(project, "kink.grad")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["error?GC722?: unknown key `check.allow-kinks`*"])


def test_the_last_failures_run_again(project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTEST_ADDOPTS", "-p gradcli.pytest_plugin")
    run(project, "--gradcli").assert_outcomes(passed=4, failed=1)
    run(project, "--gradcli", "--lf").assert_outcomes(failed=1)
    wrong = project.path / "wrong.grad"
    wrong.write_text(wrong.read_text().replace("3*x", "2*x"))
    run(project, "--gradcli", "--lf").assert_outcomes(passed=1)


def test_workers_share_the_files(project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("xdist")
    monkeypatch.delenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD")
    words = ["-p", "no:gradcli", "-p", "no:hypothesispytest", "--gradcli", "-n", "2", "--dist", "loadfile", "-v"]
    result = project.runpytest_subprocess(*words, "--strict-markers")
    result.assert_outcomes(passed=4, failed=1)
    workers: dict[str, set[str]] = {}
    for line in result.outlines:
        if line.startswith("[gw") and "::" in line:
            workers.setdefault(line.split("::")[0].split()[-1], set()).add(line[:5])
    assert {name: len(gateways) for name, gateways in workers.items()} == {"right.grad": 1, "wrong.grad": 1}
    result.stdout.fnmatch_lines(["DISAGREES claim x, line 2", "FAILED wrong.grad::claim:2*DISAGREES: the exact *"])


def test_the_fixture_judges_functions(project: pytest.Pytester) -> None:
    project.makepyfile(
        "def test_right(assert_gradient):\n    assert_gradient(lambda x: x**3, lambda x: 3*x**2, at=2.0)\n"
        "def test_wrong(assert_gradient):\n    assert_gradient(lambda x: x**3, lambda x: 2*x**2, at=2.0)\n"
    )
    result = run(project)
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*DISAGREES*"])


PROBE = """
import sys

def test_ordinary():
    pass

def test_what_is_loaded():
    loaded = {name for name in sys.modules if name.startswith("gradcli")}
    assert loaded == {"gradcli", "gradcli.pytest_plugin"}
    assert not {"numpy", "sympy", "flint", "typer", "rich"} & set(sys.modules)

def test_asserts_of_the_package_are_its_own():
    import gradcli.base.diagnostics
    assert type(gradcli.base.diagnostics.__loader__).__name__ == "SourceFileLoader"
"""


def test_a_project_without_scripts_loads_nothing_more(project: pytest.Pytester) -> None:
    project.makepyfile(PROBE)
    command = [sys.executable, "-W", "error", "-m", "pytest"]
    project.run(*command).assert_outcomes(passed=3)


def test_warnings_that_are_errors_find_none(project: pytest.Pytester) -> None:
    result = project.runpytest_subprocess("-W", "error", "right.grad")
    result.assert_outcomes(passed=2)
    assert not result.errlines
