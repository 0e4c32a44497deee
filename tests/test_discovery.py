"""Which files a check of folders takes: what git ignores is left out, what is named never, patterns narrow it down.

`git check-ignore` is the referee where git is installed.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gradcli import cli
from gradcli.batch.discovery import matching_files
from gradcli.diagnostics import GradcliError

FILES = ["a.grad", "b.grad", "b.txt", "build/c.grad", "deep/d.grad", "deep/er/e.grad", "deep/er/keep.grad", ".x/f.grad"]


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with scripts, which is the current one."""
    for name in FILES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x**2")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_without_rules_every_script_is_taken(tree: Path) -> None:
    assert matching_files(["."]) == ["a.grad", "b.grad", "build/c.grad", "deep/d.grad", "deep/er/e.grad", "deep/er/keep.grad"]


RULES = [
    ({".gitignore": "build/\n"}, "build/c.grad"),
    ({".gitignore": "*.grad\n!keep.grad\n"}, "a.grad b.grad build/c.grad deep/d.grad deep/er/e.grad"),
    ({".gitignore": "/b.grad\n"}, "b.grad"),
    ({".gitignore": "deep/er/\n", "deep/er/.gitignore": "!e.grad\n"}, "deep/er/e.grad deep/er/keep.grad"),
    ({".gitignore": "e.grad\n", "deep/.gitignore": "!e.grad\nd.grad\n"}, "deep/d.grad"),
    ({"deep/.gitignore": "/er/*\n!/er/keep.grad\n"}, "deep/er/e.grad"),
    ({".gitignore": "**/er\n"}, "deep/er/e.grad deep/er/keep.grad"),
    ({".gitignore": "\\#x\n# a.grad\n\nb.grad  \n"}, "b.grad"),
]


def ignored_by_git(tree: Path) -> set[str]:
    subprocess.run(["git", "init", "-q", "."], cwd=tree, check=True)
    known = [
        str(path.relative_to(tree)) for path in tree.rglob("*.grad") if not str(path.relative_to(tree)).startswith(".")
    ]
    found = subprocess.run(["git", "check-ignore", *known], cwd=tree, capture_output=True, text=True)
    return set(found.stdout.split())


@pytest.mark.parametrize(("files", "without"), RULES, ids=[" ".join(files) for files, _ in RULES])
def test_what_git_ignores_is_left_out(files: dict[str, str], without: str, tree: Path) -> None:
    everything = set(matching_files(["."]))
    for name, text in files.items():
        (tree / name).write_text(text)
    assert everything - set(matching_files(["."])) == set(without.split())
    if shutil.which("git"):
        assert ignored_by_git(tree) == set(without.split())


PATTERN = st.sampled_from(
    ["*", "**", "a.grad", "*.grad", "er", "deep", "deep/er", "/deep", "d*", "**/er", "er/", "e.grad", "?.grad", "deep/**",
     "**/er/**", "[a-d].grad", "[!a]*", "[^b-z].grad", "deep/*/k*", "*/er", "\\*", "\\a.grad", "deep/**/keep.grad", "[]a].grad",
     "***", "deep//er", "/", "//", "*/", "/*", "/**", "**/", "k**p.grad", "[", "[a", "a]", "!!a.grad", "er "]
)  # fmt: skip
RULE = st.tuples(st.sampled_from(["", "!"]), PATTERN).map("".join)


@pytest.mark.skipif(not shutil.which("git"), reason="git is the referee")
@settings(max_examples=25, deadline=None)
@given(outer=st.lists(RULE, max_size=4), inner=st.lists(RULE, max_size=3))
def test_rules_mean_what_git_means(
    outer: list[str], inner: list[str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    tree = tmp_path_factory.mktemp("rules")
    for name in FILES:
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text("x")
    (tree / ".gitignore").write_text("\n".join(outer))
    (tree / "deep" / ".gitignore").write_text("\n".join(inner))
    ignored = ignored_by_git(tree)
    everything = {name for name in FILES if name.endswith(".grad") and not name.startswith(".")}
    found = {str(Path(path).relative_to(tree)) for path in matching_files([str(tree)])}
    assert found == everything - ignored


def test_the_rules_of_a_repository_hold_in_its_folders(tree: Path) -> None:
    (tree / ".gitignore").write_text("e.grad\n")
    assert matching_files(["deep/er"]) == [
        "deep/er/e.grad",
        "deep/er/keep.grad",
    ]  # no repository: the folder above says nothing
    (tree / ".git").mkdir()
    assert matching_files(["deep/er"]) == ["deep/er/keep.grad"]


def test_a_file_that_is_named_is_always_taken(tree: Path) -> None:
    (tree / ".gitignore").write_text("*\n")
    assert matching_files(["a.grad", "deep"], exclude=["*"]) == ["a.grad"]


def test_patterns(tree: Path) -> None:
    assert matching_files(["."], select=["deep"]) == ["deep/d.grad", "deep/er/e.grad", "deep/er/keep.grad"]
    assert matching_files(["."], select=["/a.grad", "**/er/*"]) == ["a.grad", "deep/er/e.grad", "deep/er/keep.grad"]
    assert matching_files(["."], exclude=["deep", "build"]) == ["a.grad", "b.grad"]
    assert matching_files(["."], select=["deep"], exclude=["e.grad"]) == ["deep/d.grad", "deep/er/keep.grad"]


def test_a_pattern_that_cannot_be_read_is_an_error(tree: Path) -> None:
    with pytest.raises(GradcliError) as caught:
        matching_files(["."], select=["a", "!"])
    assert caught.value.diagnostics[0].code == "GC721"


def test_on_the_command_line(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line = ["check", ".", "--jobs", "1", "--select", "deep/er", "--exclude", "e.grad", "--format", "csv"]
    assert cli.main(line) == 0
    rows = capsys.readouterr().out.splitlines()[1:]
    assert {row.split(",")[1] for row in rows} == {"deep/er/keep.grad"}
    assert cli.main(["check", ".", "--select", "nothing"]) == 5
