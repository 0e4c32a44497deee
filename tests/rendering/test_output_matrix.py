"""Terminals, encodings, colours, widths and build servers: numbers and JSON are the same everywhere, and nothing breaks.

`test_streams.py` does the same for streams that are closed, full, or given up by their reader.
"""

from __future__ import annotations

import json
import os
import pty
import re
import shlex
import subprocess
import sys
from functools import cache
from pathlib import Path
from threading import Thread
from typing import Any, NamedTuple

import pytest

from gradcli.interfaces import cli

ROOT = str(Path(cli.__file__).parents[2])
SETTINGS = [
    {},
    {"NO_COLOR": "1"},
    {"FORCE_COLOR": "1"},
    {"TERM": "dumb"},
    {"COLUMNS": "20"},
    {"COLUMNS": "80"},
    {"COLUMNS": "400"},
    {"PYTHONIOENCODING": "cp1252"},
    {"LC_ALL": "C"},
    {"GITHUB_ACTIONS": "true"},
]
CASES = [(terminal, settings) for terminal in (False, True) for settings in SETTINGS]
NAMES = [f"{'terminal' if terminal else 'pipe'} {'='.join(*one.items()) if one else ''}" for terminal, one in CASES]
ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
GRADIENT = ["grad", "exp(sin(θ))*x**3 + log(x)", "--at", "θ=0.7,x=1.3"]
# right, right in Greek letters, and wrong
SCRIPTS = {
    "a.grad": "x = 1.3\nassert grad(x**3, x) == 3*x**2\nx**3\n",
    "b.grad": "θ = 0.7\nexp(sin(θ))\n",
    "c.grad": "x = 1.3\nassert grad(exp(x), x) == 3.75\nexp(x)\n",
}


class Shown(NamedTuple):
    """What a command wrote: text without escape sequences, and whether there were colours on standard output."""

    code: int
    out: str
    err: str
    coloured: bool


def run(words: list[str], settings: dict[str, str], terminal: bool, folder: Path, code: str = "") -> Shown:
    """One command with standard streams of one kind; `code` is what runs behind it in a shell, such as `| head -1`."""
    unset = ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "PYTHONIOENCODING", "PYTHONUTF8", "GITHUB_ACTIONS", "LC_ALL")
    environment = {name: value for name, value in os.environ.items() if name not in unset}
    environment |= {"TERM": "xterm-256color", "LANG": "C.UTF-8", "PYTHONPATH": ROOT, **settings}
    environment.pop("GITHUB_STEP_SUMMARY", None)
    line = [sys.executable, "-m", "gradcli", *words]
    command = ["bash", "-c", f"{shlex.join(line)} {code}; exit ${{PIPESTATUS[0]}}"] if code else line
    ends = [pty.openpty() if terminal else os.pipe() for _ in range(2)]
    texts = [b"", b""]

    def read(position: int) -> None:
        reading = ends[position][0]
        while True:
            try:
                part = os.read(reading, 65536)
            except OSError:  # a terminal whose other side is closed
                return
            if not part:
                return
            texts[position] += part

    process = subprocess.Popen(
        command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=ends[0][1], stderr=ends[1][1]
    )
    for _, writing in ends:
        os.close(writing)
    readers = [Thread(target=read, args=(position,)) for position in range(2)]
    for reader in readers:
        reader.start()
    status = process.wait(timeout=120)
    for reader in readers:
        reader.join()
    for reading, _ in ends:
        os.close(reading)
    encoding = settings.get("PYTHONIOENCODING", "utf-8")
    out, err = (text.decode(encoding, "backslashreplace").replace("\r\n", "\n") for text in texts)
    return Shown(status, ESCAPE.sub("", out), ESCAPE.sub("", err), "\x1b[" in out)


def numbers(payload: Any) -> list[str]:
    """All floats of a JSON document as they are written."""
    if isinstance(payload, dict):
        return [text for value in payload.values() for text in numbers(value)]
    if isinstance(payload, list):
        return [text for value in payload for text in numbers(value)]
    return [repr(payload)] if isinstance(payload, float) else []


def coloured(terminal: bool, settings: dict[str, str]) -> bool:
    """Whether there are to be colours."""
    if "NO_COLOR" in settings:
        return False
    return "FORCE_COLOR" in settings or (terminal and settings.get("TERM") != "dumb")


@cache
def plain_gradient() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(run([*GRADIENT, "--format", "json"], {}, False, Path.cwd()).out)
    return found


@pytest.mark.parametrize(("terminal", "settings"), CASES, ids=NAMES)
def test_a_gradient_has_the_same_digits_everywhere(terminal: bool, settings: dict[str, str], tmp_path: Path) -> None:
    expected = plain_gradient()
    digits = {*numbers(expected["gradient"]), *numbers(expected["value"])}
    assert len(digits) == 3
    shown = run(GRADIENT, settings, terminal, tmp_path)
    assert (shown.code, shown.err) == (0, "")
    assert digits <= set(re.split(r"[^0-9.e+-]+", shown.out)), shown.out  # whole, on one line each
    assert "Traceback" not in shown.out
    if terminal:
        assert shown.coloured == coloured(terminal, settings)
    else:
        assert not shown.coloured  # plain text has no colours to force
    machine = run([*GRADIENT, "--format", "json"], settings, terminal, tmp_path)
    assert (machine.code, machine.err, machine.coloured) == (0, "", False)
    assert json.loads(machine.out) == expected


def test_a_gradient_on_a_terminal_says_how_to_check_it(tmp_path: Path) -> None:
    words = ["grad", "(x*y+x)**2", "--at", "x=2,y=3", "--wrt", "x"]
    shown = run(words, {"COLUMNS": "80"}, True, tmp_path)
    assert shown.out.split("\n")[-3].strip() == "checked? gradcli check '(x*y+x)**2' --at x=2,y=3 --wrt x"
    for terminal, more in ((False, []), (True, ["-f", "plain"]), (True, ["--format", "json"])):
        assert "checked?" not in run([*words, *more], {}, terminal, tmp_path).out


PICTURES = [
    ["plot", "sin(x)"],
    ["plot", "x**2 + sin(3*y)"],
    ["plot", "exp(x)", "--at", "x=1", "--steps"],
    ["graph", "sum(softmax(A@x))", "--at", "A=randn(2,2),x=[1,2]", "--view", "backward"],
    ["trace", "(x*y+x)**2", "--at", "x=2,y=3", "--why-topo"],
]


@pytest.mark.parametrize("encoding", ["cp1252", "ascii"])
@pytest.mark.parametrize("words", PICTURES, ids=" ".join)
def test_pictures_have_the_characters_that_an_encoding_has(words: list[str], encoding: str, tmp_path: Path) -> None:
    """One for one, so that columns stay under each other."""
    whole = run(words, {}, False, tmp_path).out.splitlines()
    shown = run(words, {"PYTHONIOENCODING": encoding}, False, tmp_path)
    lines = shown.out.splitlines()
    assert shown.code == 0 and not re.search(r"\\u[0-9a-f]{4}|\\x[0-9a-f]{2}", shown.out)
    assert [len(line) for line in lines] == [len(line) for line in whole]
    for line, other in zip(lines, whole, strict=True):
        assert all(a == b or not b.isascii() for a, b in zip(line, other, strict=True))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "scripts").mkdir()
    for name, text in SCRIPTS.items():
        (tmp_path / "scripts" / name).write_text(text, encoding="utf-8")
    return tmp_path


def judged(folder: Path, terminal: bool, settings: dict[str, str], code: str = "") -> Shown:
    """One check of the folder; its JSON report beside the output has the verdicts and digits of every other run."""
    words = ["check", "scripts", "--jobs", "1", "--json", "report.json"]
    shown = run(words, settings, terminal, folder, code)
    report = json.loads((folder / "report.json").read_text(encoding="utf-8"))
    verdicts = [(one["file"], one["id"], one["verdict"], one["passed"]) for one in report["checks"]]
    assert verdicts == [
        ("scripts/a.grad", "gradient:x", "PROVED", True),
        ("scripts/a.grad", "claim:2", "PROVED", True),
        ("scripts/b.grad", "gradient:θ", "PROVED", True),
        ("scripts/c.grad", "gradient:x", "PROVED", True),
        ("scripts/c.grad", "claim:2", "DISAGREES", False),
    ]
    assert "3.6692966676" in json.dumps(report["checks"][-1]["evidence"])
    assert "Traceback" not in shown.out + shown.err
    assert "Exception ignored" not in shown.out + shown.err
    return shown


def look(shown: Shown, terminal: bool, settings: dict[str, str]) -> None:
    """What one check of the folder shows, whatever the width: the file, the verdict, both numbers, the counts."""
    assert shown.code == 1
    flat = re.sub(r"\s+", "", shown.out)
    for text in ("scripts/c.grad", "DISAGREES", "3.6692966676", "3.75", "5checksin3scripts:4passed,1failed"):
        assert text in flat, shown.out
    assert "gradcli check: 1 check failed" in shown.err
    assert ("::error file=scripts/c.grad,line=2" in shown.err) == ("GITHUB_ACTIONS" in settings)
    if terminal:
        assert shown.coloured == coloured(terminal, settings)


FEW = [NAMES.index(name) for name in ("pipe PYTHONIOENCODING=cp1252", "terminal COLUMNS=20")]


@pytest.mark.parametrize(("terminal", "settings"), [CASES[i] for i in FEW], ids=[NAMES[i] for i in FEW])
def test_a_check_says_the_same_in_a_few_places(terminal: bool, settings: dict[str, str], folder: Path) -> None:
    look(judged(folder, terminal, settings), terminal, settings)


@pytest.mark.deep
@pytest.mark.parametrize(("terminal", "settings"), CASES, ids=NAMES)
def test_a_check_says_the_same_everywhere(terminal: bool, settings: dict[str, str], folder: Path) -> None:
    look(judged(folder, terminal, settings), terminal, settings)


@pytest.mark.deep
@pytest.mark.parametrize("form", ["json", "jsonl", "csv", "plain", "table", "markdown", "latex"])
@pytest.mark.parametrize("settings", [{"PYTHONIOENCODING": "cp1252"}, {"LC_ALL": "C"}, {"FORCE_COLOR": "1"}], ids=str)
def test_every_format_of_a_check(form: str, settings: dict[str, str], folder: Path) -> None:
    shown = run(["check", "scripts", "--jobs", "1", "--format", form], settings, True, folder)
    assert shown.code == 1
    assert "Traceback" not in shown.out + shown.err
    assert "DISAGREES" in shown.out
    if form.startswith("json"):
        assert not shown.coloured
        checks = [json.loads(line) for line in shown.out.splitlines()]
        assert "gradient:θ" in json.dumps(checks, ensure_ascii=False)


CLOSED = ["<&-", ">&-", "2>&-", "<&- >&- 2>&-", "| head -1"]


@pytest.mark.deep
@pytest.mark.parametrize("closed", CLOSED)
@pytest.mark.parametrize(("terminal", "settings"), CASES, ids=NAMES)
def test_a_check_with_closed_streams(closed: str, terminal: bool, settings: dict[str, str], folder: Path) -> None:
    """The streams that are left may be terminals; what is left of standard error has the reason of the code."""
    shown = judged(folder, terminal, settings, closed)
    assert shown.code in ((1, 141) if "head" in closed else (1,))
    if "2>&-" not in closed and shown.code == 1:
        assert "gradcli check: 1 check failed" in shown.err


def test_the_head_of_a_check_is_enough(folder: Path) -> None:
    """A reader that takes one line ends the command quietly; the report beside the output is whole."""
    shown = judged(folder, False, {}, "| head -1")
    assert shown.code in (1, 141)  # all of it may be written before the reader goes away
    assert shown.out.count("\n") == 1
