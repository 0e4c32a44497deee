"""The command line as a whole: formats, errors, exit codes and signals, with a calculator that answers from a table."""

from __future__ import annotations

import gc
import io
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from gradcli.base.diagnostics import Span, error
from gradcli.interfaces import cli
from gradcli.language.source import Source
from tests.support import handmade

DOCUMENTED = (
    '{"schema_version": 1, "command": "grad", "expression": "(x*y + x)**2", "at": {"x": 2.0, "y": 3.0}, '
    '"value": 64.0, "gradient": {"x": 64.0, "y": 32.0}}\n'
)


class Calculator(ModuleType):
    """Answers with results made by hand and remembers what it was asked."""

    def __init__(self) -> None:
        super().__init__("gradcli.calculator")
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.result: Any = handmade.gradient

    def grad(self, source: Source, **told: Any) -> Any:
        self.asked.append((source.text, told))
        if isinstance(self.result, BaseException):
            raise self.result
        return self.result

    evaluate = hessian = jacobian = trace = grad


@pytest.fixture
def calculator(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Calculator]:
    """A fake calculator, an empty folder to stand in, and the process left as it was."""
    fake = Calculator()
    monkeypatch.setitem(sys.modules, "gradcli.calculator", fake)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))
    for name in ("NO_COLOR", "FORCE_COLOR", "GRADCLI_DEBUG", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)
    thresholds, handler = gc.get_threshold(), signal.getsignal(signal.SIGTERM)
    yield fake
    gc.set_threshold(*thresholds)
    signal.signal(signal.SIGTERM, handler)


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def test_documented_json(calculator: Calculator, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["grad", "(x*y+x)**2", "--at", "x=2,y=3", "--format", "json"]) == 0
    assert capsys.readouterr() == (DOCUMENTED, "")
    text, told = calculator.asked[0]
    assert text == "(x*y+x)**2"
    assert told == {
        "at": ("x=2,y=3",),
        "wrt": None,
        "dtype": "float64",
        "backend": "auto",
        "limits": None,
        "order": 1,
        "relax": False,
        "exact": True,
    }


def test_plain_off_a_terminal_and_table_on_it(
    calculator: Calculator, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert cli.main(["grad", "x", "--at", "x=2"]) == 0
    assert capsys.readouterr().out.splitlines()[:2] == ["(x*y + x)**2", "value  64.0"]
    monkeypatch.setattr(sys, "stdout", Terminal())
    monkeypatch.setenv("COLUMNS", "80")
    assert cli.main(["grad", "x", "--at", "x=2"]) == 0
    shown = sys.stdout.getvalue()  # type: ignore[attr-defined]
    assert "─" in shown
    assert "\x1b[" in shown


@pytest.mark.parametrize("command", ["eval", "grad", "hessian", "jacobian", "trace"])
@pytest.mark.parametrize("form", ["plain", "table", "json", "jsonl", "csv", "markdown", "latex"])
def test_every_command_in_every_format(
    command: str, form: str, calculator: Calculator, capsys: pytest.CaptureFixture[str]
) -> None:
    name = {"eval": "evaluation", "grad": "gradient"}.get(command, command)
    calculator.result = getattr(handmade, name)
    assert cli.main([command, "x", "--format", form]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert out.strip()
    assert "\x1b" not in out
    if form.startswith("json"):
        assert all(json.loads(line)["command"] == command for line in out.splitlines())


def test_minus_expression(calculator: Calculator) -> None:
    assert cli.main(["grad", "-x**2", "--at", "x=3"]) == 0
    assert cli.main(["grad", "--at", "x=3", "-x**2", "-f", "json"]) == 0
    assert [text for text, _ in calculator.asked] == ["-x**2", "-x**2"]


def test_digits_are_for_people(calculator: Calculator, capsys: pytest.CaptureFixture[str]) -> None:
    calculator.result = handmade.hessian
    cli.main(["hessian", "x", "--digits", "3"])
    assert "0.479\n" in capsys.readouterr().out
    cli.main(["hessian", "x", "--digits", "3", "--format", "json"])
    assert "0.479425538604203" in capsys.readouterr().out


def test_output_file_chooses_its_format(calculator: Calculator, tmp_path: Path) -> None:
    assert cli.main(["grad", "x", "--output", "a.json"]) == 0
    assert (tmp_path / "a.json").read_text() == DOCUMENTED
    assert cli.main(["grad", "x", "-o", "b.csv"]) == 0
    assert (tmp_path / "b.csv").read_text().startswith("quantity,row,column,value\n")
    assert cli.main(["grad", "x", "--output", "c.csv", "--format", "plain"]) == 0
    assert (tmp_path / "c.csv").read_text().startswith("(x*y + x)**2\n")


def test_output_file_that_cannot_be_written(calculator: Calculator, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["grad", "x", "--output", "nowhere/a.json"]) == 2
    assert "GC690" in capsys.readouterr().err


def test_refusal(calculator: Calculator, capsys: pytest.CaptureFixture[str]) -> None:
    source = Source("y = a + b", name="loss.grad")
    calculator.result = error("GC301", "cannot add f64[3] and f64[4]", Span(1, 7, 1, 8), source=source)
    assert cli.main(["grad", "y", "--at", "y=1", "--format", "json"]) == 2
    out, err = capsys.readouterr()
    assert json.loads(out)["error"] == {
        "code": "GC301",
        "message": "cannot add f64[3] and f64[4]",
        "span": [1, 7, 1, 8],
        "file": "loss.grad",
    }
    place = " --> loss.grad:1:7\n  1 | y = a + b\n    |       ^\n"
    assert err == f"error[GC301]: cannot add f64[3] and f64[4]\n{place}help: gradcli explain GC301\n"
    assert cli.main(["grad", "y", "--at", "y=1"]) == 2
    assert capsys.readouterr().out == ""


def test_notes_go_to_standard_error(calculator: Calculator, capsys: pytest.CaptureFixture[str]) -> None:
    calculator.result = handmade.noted
    assert cli.main(["grad", "log(x)", "--at", "x=-2", "--format", "json"]) == 0
    out, err = capsys.readouterr()
    answer = json.loads(out)
    assert answer["value"] == "nan"
    assert answer["diagnostics"] == [{"code": "GC401", "message": "log is not defined at -2.0", "span": [1, 1, 1, 7]}]
    assert err == "warning[GC401]: log is not defined at -2.0\n"


def test_usage_error_as_json(calculator: Calculator, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["grad", "x", "--fromat", "csv", "--format", "json"]) == 2
    out, err = capsys.readouterr()
    assert json.loads(out)["error"]["code"] == "GC721"
    assert "--fromat" in err


@pytest.mark.parametrize(
    ("arguments", "told", "step"),
    [
        (["check", "x", "--format", "github"], "'github' is not one of", "write --github"),
        (["eval", "2", "+", "3"], "extra argument", 'an expression with spaces stands in quotes: gradcli eval "x + 1"'),
        (["grad", "x", "--format", "pdf"], "'pdf' is not one of", "gradcli grad --help"),
        (["grad", "x", "--digits", "few"], "it should be a valid integer\n", "gradcli grad --help"),
    ],
)
def test_a_bad_value_of_an_option(
    arguments: list[str], told: str, step: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(arguments) == 2
    err = capsys.readouterr().err
    assert told in err and f"help: {step}" in err and "Value error" not in err


def test_internal_error_is_no_failed_check(
    calculator: Calculator, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    calculator.result = ZeroDivisionError("somewhere \x1b[31mdeep")
    assert cli.main(["grad", "x"]) == 4
    err = capsys.readouterr().err
    assert "ZeroDivisionError" in err
    assert "Traceback" not in err
    assert "\x1b" not in err
    monkeypatch.setenv("GRADCLI_DEBUG", "1")
    with pytest.raises(ZeroDivisionError):
        cli.main(["grad", "x"])


@pytest.mark.parametrize(
    ("problem", "code"), [(KeyboardInterrupt(), 130), (cli.Terminated(signal.SIGTERM), 143), (MemoryError(), 4)]
)
def test_interruptions(
    problem: BaseException, code: int, calculator: Calculator, capsys: pytest.CaptureFixture[str]
) -> None:
    calculator.result = problem
    assert cli.main(["grad", "x"]) == code
    assert capsys.readouterr().err


def test_version_and_bare_call(
    calculator: Calculator, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from gradcli import __version__

    monkeypatch.setattr(sys, "stdin", None)

    assert cli.main(["--version"]) == 0
    assert capsys.readouterr().out == f"gradcli {__version__}\n"
    assert cli.main([]) == 0
    assert "Compute:" in capsys.readouterr().out


def test_missing_file(calculator: Calculator, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["grad", "missing.grad"]) == 2
    assert "GC601" in capsys.readouterr().err
    (tmp_path / "notes.txt").write_text("x**2")
    assert cli.main(["grad", "notes.txt"]) == 2
    assert "ends in .grad" in capsys.readouterr().err
    (tmp_path / "snip.py").write_text("import torch\n")
    for command in ("grad", "trace", "derive", "check"):
        assert cli.main([command, "snip.py"]) == 2
        assert "Python file" in (told := capsys.readouterr().err) and (
            "gradcli why snip.py" in told or command == "check"
        )
    assert cli.main(["grad", str(tmp_path)]) == 2
    assert "takes a folder" in capsys.readouterr().err


def test_script_file_and_standard_input(
    calculator: Calculator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.grad").write_text("x = 2\nx**2\n")
    assert cli.main(["grad", "a.grad"]) == 0
    for name in ("-", "/dev/stdin"):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"y**2")))
        assert cli.main(["grad", name]) == 0
    assert [text for text, _ in calculator.asked] == ["x = 2\nx**2\n", "y**2", "y**2"]


def test_progress_is_for_terminals(calculator: Calculator, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = {"output": None, "format": "plain", "color": "auto", "digits": None}
    for stream in (io.StringIO(), Terminal()):
        monkeypatch.setattr(sys, "stderr", stream)
        output = cli.Output(settings, ("plain",), (), {})
        output.progress(1, 4, "a\x1b.grad")
        output.close()
        shown = stream.getvalue()
        assert shown == ("" if not stream.isatty() else "\r[#####...............]  1/4  a\\x1b.grad\x1b[K\r\x1b[K")


@pytest.mark.parametrize(
    ("choice", "environment", "terminal", "expected"),
    [
        ("auto", {}, True, True),
        ("auto", {}, False, False),
        ("auto", {"NO_COLOR": "1"}, True, False),
        ("auto", {"NO_COLOR": ""}, True, True),
        ("auto", {"FORCE_COLOR": "1"}, False, True),
        ("auto", {"FORCE_COLOR": "0"}, True, False),
        ("auto", {"NO_COLOR": "1", "FORCE_COLOR": "1"}, True, False),
        ("auto", {"TERM": "dumb"}, True, False),
        ("always", {"NO_COLOR": "1"}, False, True),
        ("never", {"FORCE_COLOR": "1"}, True, False),
    ],
)
def test_colour_is_decided_once(
    choice: str,
    environment: dict[str, str],
    terminal: bool,
    expected: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert cli.colourful(choice, Terminal() if terminal else io.StringIO()) is expected


def run(*arguments: str, **more: Any) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "PYTHONPATH": str(Path(cli.__file__).parents[2])}
    return subprocess.Popen(
        [sys.executable, "-m", "gradcli", *arguments],
        env=environment,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # background jobs start with it ignored
        **more,
    )


def test_a_reader_that_goes_away_ends_the_command_quietly() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    process = run("explain", stdout=writing, stderr=subprocess.PIPE)
    os.close(writing)
    assert process.communicate(timeout=60)[1] == b""
    assert process.returncode == 141


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_is_exit_4() -> None:
    with open("/dev/full", "wb") as full:
        process = run("explain", stdout=full, stderr=subprocess.PIPE)
        err = process.communicate(timeout=60)[1]
    assert process.returncode == 4
    assert b"Traceback" not in err
    assert b"Exception ignored" not in err
    assert b"no space left on device" in err


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_signals(number: int, code: int) -> None:
    process = run("grad", "-", stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdin is not None
    assert process.stderr is not None
    wait_until_reading(process.pid)
    process.send_signal(number)
    assert process.wait(timeout=60) == code
    assert process.stderr.read().startswith(b"gradcli: ")
    for stream in (process.stdin, process.stdout, process.stderr):
        stream.close()  # type: ignore[union-attr]


def wait_until_reading(pid: int) -> None:
    """Wait until a process blocks on its standard input."""
    wait = Path(f"/proc/{pid}/syscall")
    if not wait.exists() or os.uname().machine != "x86_64":
        pytest.skip("needs /proc and the numbers of x86-64's system calls")
    for _ in range(2000):
        try:
            if wait.read_text().startswith("0 0x0 "):  # read(0, ...)
                return
        except OSError:
            pytest.skip("/proc does not tell system calls here")
        signal.sigtimedwait([], 0.01)
    raise AssertionError("the command does not read standard input")


def test_a_file_named_like_a_module_of_python_is_named(tmp_path: Path) -> None:
    """`python -m` imports from the current folder first: what is imported in place of a module of Python's is the user's."""
    (tmp_path / "bisect.py").write_text("x = 1\n")
    command = [sys.executable, "-m", "gradcli", "grad", "x**2", "--at", "x=2"]
    env = {**os.environ, "PYTHONPATH": str(Path(cli.__file__).parents[2])}
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 2
    assert "error[GC748]" in done.stderr and "bisect.py" in done.stderr and "fault in gradcli" not in done.stderr
