"""The prompt: what is typed on a terminal, with readline and without, and what it says."""

from __future__ import annotations

import io
import os
import pty
import re
import select
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gradcli.interfaces import cli, prompt

ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def told(lines: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """What the prompt says to these lines."""
    rest = iter(lines)

    def ask(text: str) -> str:
        line = next(rest, None)
        if line is None:
            raise EOFError
        return line

    assert prompt.converse(cli.guarded, ask) == 0
    captured = capsys.readouterr()
    return captured.out.partition("\n")[2] + captured.err


@pytest.fixture(autouse=True)
def history(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return tmp_path / "gradcli" / "history"


@pytest.mark.parametrize(
    ("lines", "shown"),
    [
        (["1 + 2", "ans*2", "ans + ans"], ["3.0\n6.0\n12.0\n"]),
        (["x**2", "ans + 1"], ["`ans` has no value yet"]),
        (["x = 3", "x**2", ":grad"], ["9.0", "6.0"]),
        (["def f(x):", "    return x**2 + 1", "", "f(2)"], ["5.0"]),
        (["f(t) = t² + 1", "f(4)"], ["17.0"]),
        (["f(t) = t", "g(t) = 2*f(t)", "f(t) = t²", "g(4)", ":names"], ["32.0", "f(t) = t²\ng(t) = 2*f(t)\n"]),
        (["def f(x): return x**2", "", "def f.vjp(x, ct): return 3*ct", "", ":grad f(x) --at x=1"], ["3.0"]),
        (["x = 3", "y = x + 1", "x = y*2", "x"], ["8.0"]),
        (["x = 3", "2*y"], ["2*y\nd/dy     2\nverdict"]),  # x is not in it
        (["sum([1,", "2, 3])"], ["6.0"]),
        (["x**2"], ["2*x"]),
        ([":derive x**3"], ["3*x**2"]),
        ([":grad x*y --at x=2,y=3"], ["gradient", "3.0", "2.0"]),
        ([':check x**2 --claim "x = 2*x"'], ["PROVED"]),
        ([":trace x*sin(x) --at x=2"], ["Backward"]),
        ([":graph x*y"], ["mul"]),
        ([":plot x**2"], ["d/dx", "┤"]),
        ([":ops tanh"], ["tanh"]),
        (["x = 3", ":names", ":forget", ":names", "x"], ["x = 3\n"]),
        (["def f(u):", "    return u**2", "", ":names"], ["def f(u):\n    return u**2\n"]),
        ([":help"], [":grad", ":quit", "ans"]),
        (["help"], [":grad", ":quit", "ans"]),
        (["help grad"], ["Usage: gradcli grad"]),
        (["f = x**3", "derive f"], ["3*x**2"]),
        (["f = x**3", "grad f --at x=2"], ["12.0"]),
        (["derive x", ":derive -x"], ["d/dx     1", "d/dx     -1"]),
        (["help = 3", "help + 4"], ["7.0"]),
        ([":gradd x"], ["GC721", "did you mean", ":help"][:1]),
        ([":grad"], ["GC721", "needs an expression"]),
        (["1 +", "2"], ["GC", "2.0"]),
        (["y = nope(3)", "4"], ["GC", "4.0"]),
        (["1/0"], ["inf"]),
        (["1 + 1", ":quit", "5 + 5"], ["2.0"]),
    ],
    ids=str,
)
def test_what_is_typed_is_answered(lines: list[str], shown: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    found = told(lines, capsys)
    for text in shown:
        assert text in found
    assert "Traceback" not in found and "GC999" not in found
    if ":quit" in lines:
        assert "10.0" not in found


def test_a_line_that_fails_is_not_kept(capsys: pytest.CaptureFixture[str]) -> None:
    found = told(["y = nope(3)", "z = 2", ":names"], capsys)
    assert found.startswith("z = 2\n") and "unknown function" in found  # what `:names` shows, then the error


@pytest.mark.parametrize(
    ("text", "more"),
    [("x + 1", False), ("sin(", True), ("[1, 2", True), ("def f(x):", True), ("def f(x):\n  return x", True),
     ("def f(x):\n  return x\n", False), ("x \\", True), ("f)(", True), (")", False)],
)  # fmt: skip
def test_what_is_not_complete_goes_on(text: str, more: bool) -> None:
    assert prompt.unfinished(text) == more


def test_completion_knows_commands_functions_and_names(capsys: pytest.CaptureFixture[str]) -> None:
    one = prompt.Prompt(cli.guarded)
    one.answer("speed = 3")
    assert prompt.completions(one, ":de", ":de") == [":derive "]
    assert "softmax(" in prompt.completions(one, "softm", "softm")
    assert prompt.completions(one, "2*spe", "spe") == ["speed"]
    assert prompt.completions(one, "", "") == []


# --- on a real terminal ----------------------------------------------------------------------------------------------


def conversation(keys: list[str], folder: Path, *, readline: bool = True) -> str:
    """What a terminal of 80 columns shows; each text is typed when the prompt stands there."""
    ours, theirs = pty.openpty()
    code = "" if readline else "import sys; sys.modules['readline'] = None; "
    root = str(Path(cli.__file__).parents[2])
    environment = {**os.environ, "PYTHONPATH": root, "COLUMNS": "80", "TERM": "xterm", "XDG_STATE_HOME": str(folder)}
    process = subprocess.Popen(
        [sys.executable, "-c", f"{code}import sys; from gradcli.interfaces import cli; sys.exit(cli.main([]))"],
        stdin=theirs, stdout=theirs, stderr=theirs, env=environment, close_fds=True, start_new_session=True, cwd=folder,
    )  # fmt: skip
    os.close(theirs)
    shown, waiting, seen = "", list(keys), 0
    ends = time.monotonic() + 60
    while time.monotonic() < ends:
        ready, _, _ = select.select([ours], [], [], 0.2)
        if ready:
            try:
                read = os.read(ours, 65536)
            except OSError:
                break
            if not read:
                break
            shown += read.decode()
        prompts = len(re.findall(r"(?:>>>|\.\.\.) ", shown))
        if waiting and prompts > seen:
            seen = prompts
            os.write(ours, waiting.pop(0).encode())
    assert process.wait(timeout=20) == 0
    os.close(ours)
    return ESCAPE.sub("", shown)


@pytest.mark.parametrize("readline", [True, False])
def test_a_conversation_on_a_terminal(readline: bool, tmp_path: Path) -> None:
    shown = conversation(["x = 3\r", "x**2\r", ":grad\r", "\x04"], tmp_path, readline=readline)
    assert "gradcli" in shown and "9.0" in shown and re.search(r"x\s+3.0\s+6.0", shown)
    assert "Traceback" not in shown


def test_history_outlives_the_conversation(tmp_path: Path) -> None:
    pytest.importorskip("readline")
    conversation(["1 + 41\r", ":quit\r"], tmp_path)
    assert "1 + 41" in (tmp_path / "gradcli" / "history").read_text()
    assert "42.0" in conversation(["\x1b[A\x1b[A\r", ":quit\r"], tmp_path)  # the line before the last


def test_completion_on_a_terminal(tmp_path: Path) -> None:
    pytest.importorskip("readline")
    assert "3*x**2" in conversation([":der\tx**3\r", ":quit\r"], tmp_path)


def piped(text: bytes, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text)))
    return cli.main([])


@pytest.mark.parametrize("text", [b"", b"\n", b" \n\n"])
def test_the_help_is_shown_where_nothing_is_typed(
    text: bytes, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert piped(text, monkeypatch) == 0
    assert "Usage" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "code", "shown"),
    [
        ("f = x**3\n:derive f\n", 0, "d/dx     3*x**2"),
        ("f = x**3\nderive f", 0, "d/dx     3*x**2"),
        (">>> x = 3\n>>> x**2\n", 0, "9.0\n"),
        ("\ufeffx = 3\r\nx**2\r\n", 0, "9.0\n"),
        ("def f(u):\n    return u**2\n\nf(3)\n", 0, "9.0\n"),
        ("def f(u):\n    return u**2", 0, ""),
        ("sum([1,\n2])", 0, "3.0\n"),
        ("sum([1,\n2", 2, "GC113"),
        ("1 +\n2\n", 2, "2.0\n"),
        ("nope\nnope(3)\n:gradd x\n5", 2, "5.0\n"),
        ('check x**2 --claim "x = 3*x"\n1+1\n', 1, "2.0\n"),
        ("check nothing-there\n", 0, "gradient nothing"),
        (":quit\n1 +\n", 0, ""),
        ("# a comment\n\n2*3\n", 0, "6.0\n"),
        ("\udcff\n", 2, "GC"),
    ],
)
def test_the_lines_of_a_file_are_answered(
    text: str, code: int, shown: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert piped(text.encode("utf-8", "surrogateescape"), monkeypatch) == code
    out, err = capsys.readouterr()
    assert shown in out + err
    assert "Usage" not in out and "Traceback" not in err and "GC999" not in err and ">>>" not in out


COMMANDLIKE = [
    ("derive f", "derive"), ("grad f", "grad"), ("grad (x*y)**2", "grad"), ("grad -x**2", "grad"), ("check", "check"),
    ("eval --at x=2", "eval"), ("help", "help"), ("help()", "help"), ("names", "names"), ("ops tanh", "ops"),
    ("plot\tx", "plot"), ("trace [1,2]", "trace"), ("grad(f, x)", None), ("grad - x", None), ("grad + 1", None),
    ("check == 3", None), ("eval = 3", None), ("plot*x", None), ("graph / 2", None), ("hessian @ v", None),
    ("grad, x", None), ("grads x", None), ("Grad x", None), ("x grad", None),
]  # fmt: skip


@pytest.mark.parametrize(("line", "command"), COMMANDLIKE)
def test_a_command_needs_no_colon(line: str, command: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """But where a name of the session is meant, or the word is part of an expression or of an assignment."""
    asked: list[str] = []
    monkeypatch.setattr(prompt.Prompt, "command", lambda self, text: bool(asked.append(text)) or True)
    monkeypatch.setattr(prompt.Prompt, "statement", lambda self, text: 0)
    one = prompt.Prompt(cli.guarded)
    one.answer(line)
    assert [text.split()[0] for text in asked] == ([command] if command else [])
    asked.clear()
    one.names.update(dict.fromkeys(["derive", "grad", "check", "eval", "help", "names", "ops", "plot", "trace"]))
    one.answer(line)
    assert not asked


def test_a_fault_is_no_traceback(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*asked: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("gradcli.calculator.evaluate", fails)
    assert "GC999" in told(["x = 3"], capsys)
    assert piped(b"1+1", monkeypatch) == 4
