"""Which files a check of folders takes: what git ignores is left out, what is named never, patterns narrow it down.

`git check-ignore` is the referee where git is installed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gradcli.base.diagnostics import GradcliError
from gradcli.batch.discovery.cases import BatchCase
from gradcli.batch.discovery.walk import find_cases, find_files, nothing_found
from gradcli.interfaces import cli

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
    assert find_files(["."]) == [
        "a.grad",
        "b.grad",
        "build/c.grad",
        "deep/d.grad",
        "deep/er/e.grad",
        "deep/er/keep.grad",
    ]


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
    everything = set(find_files(["."]))
    for name, text in files.items():
        (tree / name).write_text(text)
    assert everything - set(find_files(["."])) == set(without.split())
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
    found = {str(Path(path).relative_to(tree)) for path in find_files([str(tree)])}
    assert found == everything - ignored


def test_the_rules_of_a_repository_hold_in_its_folders(tree: Path) -> None:
    (tree / ".gitignore").write_text("e.grad\n")
    assert find_files(["deep/er"]) == [
        "deep/er/e.grad",
        "deep/er/keep.grad",
    ]  # no repository: the folder above says nothing
    (tree / ".git").mkdir()
    assert find_files(["deep/er"]) == ["deep/er/keep.grad"]


def test_a_file_that_is_named_is_always_taken(tree: Path) -> None:
    (tree / ".gitignore").write_text("*\n")
    assert find_files(["a.grad", "deep"], exclude=["*"]) == ["a.grad"]


def test_patterns(tree: Path) -> None:
    assert find_files(["."], select=["deep"]) == ["deep/d.grad", "deep/er/e.grad", "deep/er/keep.grad"]
    assert find_files(["."], select=["/a.grad", "**/er/*"]) == ["a.grad", "deep/er/e.grad", "deep/er/keep.grad"]
    assert find_files(["."], exclude=["deep", "build"]) == ["a.grad", "b.grad"]
    assert find_files(["."], select=["deep"], exclude=["e.grad"]) == ["deep/d.grad", "deep/er/keep.grad"]


def test_a_pattern_that_cannot_be_read_is_an_error(tree: Path) -> None:
    with pytest.raises(GradcliError) as caught:
        find_files(["."], select=["a", "!"])
    assert caught.value.diagnostics[0].code == "GC721"


def test_on_the_command_line(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line = ["check", ".", "--jobs", "1", "--select", "deep/er", "--exclude", "e.grad", "--format", "csv"]
    assert cli.main(line) == 0
    rows = capsys.readouterr().out.splitlines()[1:]
    assert {row.split(",")[1] for row in rows} == {"deep/er/keep.grad"}
    assert cli.main(["check", ".", "--select", "nothing"]) == 5


def test_names_that_start_with_a_dot_are_left_out(tree: Path) -> None:
    (tree / ".#a.grad").write_text("x")
    assert ".#a.grad" not in find_files(["."])
    assert find_files([".#a.grad"]) == [".#a.grad"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes")
def test_pipes_in_folders_are_left_out(tree: Path) -> None:
    """Nobody may ever write to one, so a run would wait for it; a broken link is an error of its own."""
    before = find_cases(["."])
    os.mkfifo("pipe.grad")
    os.symlink("nowhere", "link.grad")
    assert {case.path for case in find_cases(["."])} == {"link.grad", *(case.path for case in before)}
    assert find_cases(["pipe.grad"]) == [BatchCase("pipe.grad")]


def test_a_folder_that_cannot_be_read_is_an_error(
    tree: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It was skipped, so that a check of the others passed."""
    scan = os.scandir

    def closed(path: str) -> Any:
        if os.path.basename(path) == "deep":
            raise PermissionError(13, "Permission denied", path)
        return scan(path)

    monkeypatch.setattr(os, "scandir", closed)
    assert find_files(["."]) == ["a.grad", "b.grad", "build/c.grad", "deep"]
    assert find_files(["."], ["a.grad"]) == ["a.grad", "deep"]
    assert find_files(["."], exclude=["deep"]) == ["a.grad", "b.grad", "build/c.grad"]
    assert cli.main(["check", ".", "--select", "a.grad", "--no-cache"]) == 2
    assert "GC601" in capsys.readouterr().err


BLOCK = "text\n\n```gradcli\nx**2\n```\n"


@pytest.fixture
def documents(tree: Path) -> Path:
    """The tree with documents: two with blocks, one of which is ignored by git, and two without."""
    files = {
        "guide.md": BLOCK + BLOCK,
        "deep/notes.rst": ".. code:: gradcli\n\n   x**3\n",
        "README.markdown": "none",
        "c.txt": BLOCK,
        "build/x.md": BLOCK,
        ".x/y.md": BLOCK,
        ".gitignore": "build/",
    }
    for name, text in files.items():
        (tree / name).write_text(text)
    return tree


def test_documents_are_searched_on_demand(documents: Path) -> None:
    scripts = ["a.grad", "b.grad", "deep/d.grad", "deep/er/e.grad", "deep/er/keep.grad"]
    assert find_cases(["."]) == [BatchCase(path) for path in scripts]
    names = [case.name for case in find_cases([".", "guide.md"], docs=True)]
    blocks = ["guide.md (block 1)", "guide.md (block 2)"]
    assert names == [*scripts[:4], scripts[4], "deep/notes.rst (block 1)", *blocks]
    assert [case.name for case in find_cases(["."], select=["*.md"], docs=True)] == blocks
    assert [case.name for case in find_cases(["."], exclude=["*.grad", "guide*"], docs=True)] == [
        "deep/notes.rst (block 1)"
    ]
    assert [(case.block, case.line) for case in find_cases(["guide.md"], docs=True)] == [(1, 4), (2, 9)]
    assert find_cases(["README.markdown"], docs=True) == []


def test_a_document_needs_the_option(documents: Path) -> None:
    with pytest.raises(GradcliError) as caught:
        find_cases(["a.grad", "guide.md"])
    (problem,) = caught.value.diagnostics
    assert (problem.code, problem.message) == ("GC721", "guide.md is a document, not a script")
    assert problem.help == "add --docs to check its blocks"


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ((["empty"],), "no .grad files in empty; name a file or folder that has some"),
        ((["docs"],), "no .grad files in docs; add --docs for blocks in documents"),
        ((["plain"],), "no .grad files in plain; name a file or folder that has some"),
        ((["empty", "docs"],), "no .grad files in empty and docs; add --docs for blocks in documents"),
        ((["empty"] * 4,), "no .grad files in empty and empty and empty and others; name a file or folder that has some"),
        ((["empty"], (), (), True), "no .grad files and no documents with gradcli blocks in empty; name a file or folder that has some"),
        ((["."], ["nothing"]), "--select nothing takes none of the scripts in this folder (5); write it as in .gitignore: a/b or *.grad"),
        ((["."], ["no", "thing"], (), True), "--select no --select thing takes none of the scripts and blocks in this folder (9); write it as in .gitignore: a/b or *.grad"),
        ((["."], (), ["*"]), "--exclude * leaves out all scripts in this folder (5)"),
        ((["."], ["a.grad"], ["a*"]), "--exclude a* leaves out all scripts in this folder (1)"),
        ((["empty"], ["a"], ["b"]), "no .grad files in empty; name a file or folder that has some"),
        ((["README.markdown"], (), (), True), "no gradcli blocks in README.markdown; a block begins with ```gradcli or .. code-block:: gradcli"),
    ],
)  # fmt: skip
def test_why_nothing_was_found(arguments: tuple[Any, ...], text: str, documents: Path) -> None:
    (documents / "empty").mkdir()
    (documents / "docs").mkdir()
    (documents / "docs" / "a.md").write_text(BLOCK)
    (documents / "plain").mkdir()
    (documents / "plain" / "a.md").write_text("```python\n```\n")
    assert find_cases(*arguments) == []
    assert nothing_found(*arguments) == text
