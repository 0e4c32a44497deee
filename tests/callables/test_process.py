"""Python files that behave badly go in: each ends in a verdict of its own, an exit code, and never a traceback."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np
import pytest

from gradcli.interfaces import cli
from tests.rendering.test_schema import validator

CODE = """
import ctypes, os, signal, sys, threading, time
import numpy as np
import helper  # stands beside this file

print("loading")
calls = []

def f(x):
    return np.sum(x**3)

def df(x):
    return 3*x**2

def wrong(x):
    return 2*x**2

def pair(x):
    return f(x), df(x)

def linear(x, k, power=1):
    return helper.scale * k * np.sum(x**power)

def linear_slope(x, k, power=1):
    return {"x": helper.scale * k * np.ones_like(x)}

def segfault(x):
    ctypes.string_at(0)

def killed(x):
    os.kill(os.getpid(), signal.SIGKILL)

def leaves(x):
    os._exit(7)

def exits(x):
    sys.exit("done")

def interrupts(x):
    raise KeyboardInterrupt

def interrupts_later(x):
    calls.append(x)
    if len(calls) > 3:
        raise KeyboardInterrupt
    return branches(x)

def hangs(x):
    while True:
        pass

def sleeps(x):
    time.sleep(60)

def hangs_later(x):
    calls.append(x)
    while len(calls) > 8:
        pass
    return branches(x)

def branches(x):
    return f(x) if x[0] > -100 else 0.0

def reads(x):
    return float(input("number? "))

def raises(x):
    return helper.fail(x)

def deep(x):
    return deep(x)

def shouts(x):
    print("y" * 1000)
    os.write(1, b"z" * 1000)
    return f(x)

def floods(x):
    if not calls:
        calls.append(1)
        os.write(2, b"z" * 50_000_000)
    return f(x)

def lingers(x):
    threading.Thread(target=time.sleep, args=(60,)).start()
    return f(x)

def wanders(x):
    os.chdir("/")
    return f(x)

def affine(x, w):
    return x @ w

def affine_backward(x, w, dout):
    return dout @ w.T, x.T @ dout

class Scale:
    def forward(self, x):
        self.x = x
        return np.sin(x)

    def backward(self, dout):
        return dout * np.cos(self.x)

layer = Scale()

class Box:
    class Inner:
        f = staticmethod(f)

if __name__ == "__main__":
    raise SystemExit("this is not run")
"""
HELPER = "scale = 2.0\n\ndef fail(x):\n    raise ArithmeticError('in the helper')\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder, beside one with the code."""
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "losses.py").write_text(CODE)
    (tmp_path / "code" / "helper.py").write_text(HELPER)
    (tmp_path / "code" / "broken.py").write_text("import numpy as np\nx = 1/0\n")
    (tmp_path / "code" / "syntax.py").write_text("def f(x:\n")
    (tmp_path / "code" / "endless.py").write_text("while True:\n    pass\n")
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__init__.py").write_text("")
    (tmp_path / "package" / "inner.py").write_text("from package import other\nf = other.f\ndf = other.df\n")
    (tmp_path / "package" / "other.py").write_text("def f(x):\n    return x**2\n\ndef df(x):\n    return 2*x\n")
    np.save(tmp_path / "x0.npy", np.array([1.0, 2.0]))
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GITHUB_ACTIONS", raising=False)
    return tmp_path


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, dict[str, Any], str]:
    """Exit code, JSON and standard error of a check."""
    code = cli.main(["check", *arguments, "--format", "json"])
    told = capsys.readouterr()
    return code, json.loads(told.out), told.err


# name, options, verdict, exit code, in the message
BEHAVIOUR: list[tuple[str, str, int, str]] = [
    ("f", "PROVED", 0, "equal by algebra"),
    ("Box.Inner.f", "PROVED", 0, "equal by algebra"),
    ("segfault", "ERROR", 2, "f ended the process with signal SIGSEGV"),
    ("killed", "ERROR", 2, "f ended the process with signal SIGKILL"),
    ("leaves", "ERROR", 2, "f ended the process with exit code 7"),
    ("exits", "ERROR", 2, "f calls sys.exit('done')"),
    ("interrupts", "ERROR", 2, "f raises KeyboardInterrupt"),
    ("interrupts_later", "ERROR", 2, "f raises KeyboardInterrupt"),
    ("reads", "ERROR", 2, "f raises EOFError"),
    ("raises", "ERROR", 2, "f raises ArithmeticError: in the helper"),
    ("deep", "ERROR", 2, "f raises RecursionError"),
    ("hangs", "INCONCLUSIVE", 3, "f did not return within 1 s"),
    ("sleeps", "INCONCLUSIVE", 3, "f did not return within 1 s"),
    ("hangs_later", "INCONCLUSIVE", 3, "f did not return within 4 s"),
    ("branches", "AGREES", 0, "differences agree"),
    ("shouts", "PROVED", 0, "equal by algebra"),
    ("floods", "PROVED", 0, "equal by algebra"),
    ("lingers", "PROVED", 0, "equal by algebra"),
    ("wanders", "PROVED", 0, "equal by algebra"),
]


@pytest.mark.parametrize(("name", "verdict", "code", "told"), BEHAVIOUR, ids=[row[0] for row in BEHAVIOUR])
def test_behaviour(
    name: str, verdict: str, code: int, told: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    started = monotonic()
    seconds = "4" if name == "hangs_later" else "1" if verdict == "INCONCLUSIVE" else "30"
    target = f"code/losses.py:{name}"
    given = ["--python", target, "--grad", "code/losses.py:df", "--at", "x=@x0.npy", "--timeout", seconds]
    found, payload, err = run(capsys, *given)
    (check,) = payload["checks"]
    assert (check["verdict"], found) == (verdict, code), payload
    assert told in check["message"]
    assert check["kind"] == "callable" and check["file"] == "code/losses.py"
    assert "Traceback" not in err
    validator("check").validate(payload)
    assert monotonic() - started < 25
    if name == "shouts":
        assert "f prints: yyy" in err and "writes to standard output: zzz" in err
    if verdict != "INCONCLUSIVE" and check["verdict"] != "ERROR":
        assert "the module prints: loading" in err


def test_a_crash_names_the_line(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line = CODE.splitlines().index("    ctypes.string_at(0)") + 1
    given = ["--python", "code/losses.py:segfault", "--grad", "code/losses.py:df", "--at", "x=1"]
    _, payload, err = run(capsys, *given)
    assert payload["checks"][0]["evidence"]["place"].endswith(f"losses.py:{line}")
    assert f"losses.py:{line}" in err


def test_a_crash_of_the_gradient_is_its_own(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = ["--python", "code/losses.py:f", "--grad", "code/losses.py:leaves", "--at", "x=1"]
    _, payload, _ = run(capsys, *given)
    assert "df ended the process with exit code 7" in payload["checks"][0]["message"]


@pytest.mark.parametrize(
    ("name", "verdict", "code", "told"),
    [
        ("broken", "ERROR", 2, "the module raises ZeroDivisionError"),
        ("syntax", "ERROR", 2, "the module raises SyntaxError"),
        ("endless", "INCONCLUSIVE", 3, "the module did not return within 1 s"),
    ],
)
def test_modules_that_do_not_load(
    name: str, verdict: str, code: int, told: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found, payload, _ = run(capsys, "--python", f"code/{name}.py:f", "--at", "x=1", "--timeout", "1")
    assert (payload["checks"][0]["verdict"], found) == (verdict, code)
    assert told in payload["checks"][0]["message"]


def test_a_wrong_gradient_fails_and_is_reported(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = ["--python", "code/losses.py:f", "--grad", "code/losses.py:wrong", "--at", "x=@x0.npy"]
    code, payload, err = run(capsys, *given, "--junit", "report.xml", "--json", "report.json")
    assert code == 1 and "1 check failed" in err
    assert payload["expression"] == "losses.py:f"
    assert payload["summary"]["DISAGREES"] == 1
    assert json.loads((folder / "report.json").read_text()) == payload
    (failure,) = ElementTree.parse(folder / "report.xml").getroot().iter("failure")
    assert failure.get("type") == "DISAGREES" and "3/2 of the claim" in (failure.get("message") or "")
    assert cli.main(["check", *given]) == 1
    card = capsys.readouterr().out
    assert "DISAGREES" in card and "the exact derivative[0] is 3, not 2" in card and "3*x**2" in card


def test_the_report_is_the_same_every_time(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = ["--python", "code/losses.py:f", "--grad", "code/losses.py:wrong", "--at", "x=[1,2,3]"]
    assert run(capsys, *given) == run(capsys, *given)


def test_pairs_modules_and_further_arguments(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for given in (
        ["--python", "code/losses.py:pair", "--at", "x=[1,2]"],
        [
            "--python",
            "code/losses.py:affine",
            "--grad",
            "code/losses.py:affine_backward",
            "--at",
            "x=[[1,2]],w=[[3],[5]]",
        ],
        ["--python", "code/losses.py:layer.forward", "--grad", "code/losses.py:layer.backward", "--at", "x=[1,2]"],
        ["--python", "package.inner:f", "--grad", "package.inner:df", "--at", "x=3"],
        ["--python", "code/losses.py:linear", "--grad", "code/losses.py:linear_slope", "--at", "x=[1,2],k=3"],
        ["--python", "code/losses.py:f", "--grad", "code/losses.py:df", "--at", "x=randn(70)", "--samples", "1"],
    ):
        code, payload, _ = run(capsys, *given)
        assert code == 0 and {one["verdict"] for one in payload["checks"]} <= {"PROVED", "CERTIFIED"}, payload


REFUSED = [
    (["--python", "losses.py"], "GC731"),
    (["--python", "code/losses.py:"], "GC731"),
    (["--python", "code/losses.py:f x"], "GC731"),
    (["--python", "code/none.py:f"], "GC731"),
    (["--python", "code/losses.py:ff"], "GC731"),
    (["--python", "code/losses.py:f", "--grad", "code/losses.py:dg"], "GC731"),
    (["--python", "../code/losses:f"], "GC731"),
    (["--grad", "code/losses.py:f"], "GC732"),
    (["x**2", "--python", "code/losses.py:f"], "GC732"),
    (["--python", "code/losses.py:f", "--claim", "x = 2"], "GC732"),
    (["--python", "code/losses.py:f", "--backend", "jax"], "GC732"),
    (["--python", "code/losses.py:f", "--box", "x=1:2"], "GC732"),
    (["--python", "code/losses.py:f", "--dtype", "complex128"], "GC732"),
    (["--python", "code/losses.py:f", "--grad", "code/losses.py:df"], "GC732"),
    (["--python", "code/losses.py:f", "--grad", "code/losses.py:df", "--at", "z=1"], "GC732"),
    (["--python", "code/losses.py:f", "--grad", "code/losses.py:df", "--at", "x=1+2j"], "GC732"),
    (["--python", "code/losses.py:calls", "--grad", "code/losses.py:df", "--at", "x=1"], "GC732"),
    (["--python", "code/losses.py:f", "--at", "x=@none.npy"], "GC611"),
]


@pytest.mark.parametrize(("given", "code"), REFUSED, ids=[" ".join(row[0]) for row in REFUSED])
def test_refused(given: list[str], code: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found, payload, err = run(capsys, *given)
    assert found == 2 and payload["error"]["code"] == code, payload
    assert "Traceback" not in err


def test_only_check_runs_code(folder: Path) -> None:
    """A file named like a script, or a folder with Python files, is not run by anything but --python."""
    (folder / "code" / "touch.py").write_text("open('ran', 'w').close()\n")
    for arguments in (["check", "code"], ["check", "code/touch.py"], ["grad", "code/touch.py"]):
        subprocess.run([sys.executable, "-m", "gradcli", *arguments], capture_output=True, check=False)
    assert not (folder / "ran").exists()


def test_nothing_is_left_behind(folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: Any) -> None:
    monkeypatch.setenv("TMPDIR", str(folder / "package"))
    monkeypatch.setattr("tempfile.tempdir", None)
    before = set(os.listdir(folder / "package"))
    run(capsys, "--python", "code/losses.py:hangs", "--grad", "code/losses.py:df", "--at", "x=1", "--timeout", "0.2")
    assert set(os.listdir(folder / "package")) - {"__pycache__"} == before
