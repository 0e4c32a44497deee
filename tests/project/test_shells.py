"""Every example of the help texts, the documents and the samples means in bash and in zsh what it says."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest

from gradcli.interfaces.commands import COMMANDS, declaration
from gradcli.interfaces.options import typer_reader

ROOT = Path(__file__).parents[2]
FENCES = re.compile(r"^```(\{gradcli\}|console|)[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"(?:.* \| )?(?:\w+=\S+ )*gradcli .*")
SHELLS = {"bash": ["bash", "--norc", "-c"], "zsh": ["zsh", "-f", "-c"]}
STUB = """gradcli() { printf '%s\\0' "$@" __END__ >> "$ARGUMENTS"; }\n"""


def examples() -> dict[str, list[str]]:
    """The lines that call gradcli, by where they stand."""
    texts = {"overview": typer_reader.OVERVIEW}
    texts |= {f"{name} --help": declaration(name).function.__doc__ or "" for name in COMMANDS}
    for path in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        blocks = [re.sub(r"\\\n\s*", "", block) for _, block in FENCES.findall(path.read_text(encoding="utf-8"))]
        texts[str(path.relative_to(ROOT))] = "\n".join(blocks)
    for path in sorted((ROOT / "samples").rglob("*.*")):
        if path.suffix in (".grad", ".py", ".md"):
            lines = path.read_text(encoding="utf-8").splitlines()
            texts[str(path.relative_to(ROOT))] = "\n".join(line for line in lines if re.match(r"\W*\$ ", line))
    found = {}
    for name, text in texts.items():
        lines = [re.sub(r"^[#> ]*(\$ )?", "", line) for line in text.splitlines()]
        found[name] = [whole(lines[at:]) for at, line in enumerate(lines) if COMMAND.match(line)]
    return {name: lines for name, lines in found.items() if lines}


def whole(lines: list[str]) -> str:
    """The first command of some lines: it ends where its quotes do."""
    for count in range(1, len(lines) + 1):
        with suppress(ValueError):
            return shlex.join(shlex.split(text := "\n".join(lines[:count]))) and text
    raise AssertionError(lines[0])


EXAMPLES = examples()


def called(shell: str, line: str, folder: Path) -> list[list[str]]:
    """The arguments of each call of gradcli when a shell runs a line in an empty folder."""
    written = folder / "arguments"
    written.write_text("")
    (folder / "empty").mkdir(exist_ok=True)
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(folder), "ARGUMENTS": str(written), "LC_ALL": "C.UTF-8"}
    done = subprocess.run(
        [*SHELLS[shell], STUB + line], cwd=folder / "empty", env=environment, capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, ""), line
    return [call.split("\0")[:-1] for call in written.read_text().split("__END__\0")[:-1]]


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("place", EXAMPLES)
def test_a_shell_passes_on_what_an_example_says(shell: str, place: str, tmp_path: Path) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"needs {shell}")
    for example in EXAMPLES[place]:
        line = re.sub(r""" [<>] ([^\s"']+|"[^"]+")$""", "", example)  # files that are read and written
        assert "!" not in line and " #" not in line, line  # at a prompt these have meanings of their own
        words = shlex.split(line.rpartition("| ")[2])
        expected = words[words.index("gradcli") + 1 :]
        assert called(shell, line, tmp_path) == [expected], line


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("line", ["gradcli grad x**2 --at x=[1,2]", "gradcli eval f(x)", "gradcli eval x # y"])
def test_a_bare_example_is_found_out(shell: str, line: str, tmp_path: Path) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"needs {shell}")
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / "x=1").write_text("")  # which bash puts in the place of x=[1,2]
    with pytest.raises(AssertionError):
        assert called(shell, line, tmp_path) == [shlex.split(line)[1:]]


def test_no_command_of_a_document_has_a_comment_behind_it() -> None:
    """At a prompt of zsh `#` is a word like any other."""
    paths = [
        ROOT / "README.md",
        ROOT / "CONTRIBUTING.md",
        *(ROOT / "docs").rglob("*.md"),
        *(ROOT / "samples").rglob("*.md"),
    ]
    shown = [
        line for path in paths for _, block in FENCES.findall(path.read_text("utf-8")) for line in block.splitlines()
    ]
    assert len(shown) > 100
    assert not [
        line for line in shown if re.match(r"\S*(python3?|pip|pytest|ruff|bash|source|git|gradcli) .*\s#", line)
    ]


def test_examples_are_found() -> None:
    assert set(EXAMPLES) >= {"overview", "README.md", *(f"{name} --help" for name in COMMANDS)}
    assert sum(map(len, EXAMPLES.values())) > 150
