"""Arguments that have no value are named all at once, with an example that can be pasted; a method needs an instance."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gradcli.base.diagnostics import GradcliError
from gradcli.interfaces import cli
from gradcli.lowering.points import read_point
from gradcli.recording.calls.call_arguments import arguments_of


def keyword(x: Any, *, w: Any) -> Any: ...
def optional(x: Any, y: Any, scale: Any = 2.0) -> Any: ...
def positional(x: Any, y: Any, /) -> Any: ...
def gathered(x: Any, **more: Any) -> Any: ...
def many(a: Any, b: Any, c: Any, d: Any, e: Any, f: Any) -> Any: ...
def letters(θ: Any, w: Any) -> Any: ...


MISSING = [
    (many, {}, ["a", "b", "c", "d", "e", "f"]), (many, {"a": 1.0}, ["b", "c", "d", "e", "f"]),
    (many, dict.fromkeys("abcde", 1.0), ["f"]), (many, {"c": 1.0, "e": 1.0}, ["a", "b", "d", "f"]),
    (keyword, {}, ["x", "w"]), (keyword, {"x": 1.0}, ["w"]), (keyword, {"w": 1.0}, ["x"]),
    (optional, {}, ["x", "y"]), (optional, {"scale": 1.0}, ["x", "y"]), (optional, {"x": 1.0}, ["y"]),
    (positional, {}, ["x", "y"]), (positional, {"y": 1.0}, ["x"]), (gathered, {"z": 1.0}, ["x"]),
    (letters, {}, ["θ", "w"]), (letters, {"w": 1.0}, ["θ"]), (lambda x, y: x, {}, ["x", "y"]),
]  # fmt: skip


@pytest.mark.parametrize(("f", "at", "missing"), MISSING)
def test_all_of_them_are_named(f: Any, at: dict[str, float], missing: list[str]) -> None:
    with pytest.raises(GradcliError) as caught:
        arguments_of(f, at, None, None)
    (problem,) = caught.value.diagnostics
    assert problem.code == "GC732" and problem.help
    assert re.findall(r"`(\w+)`", problem.message) == missing
    point = shlex.split(re.search(r'--at (".*?")', problem.help)[1])[0]  # type: ignore[index]
    values, _ = read_point([point])
    assert list(values) == missing
    complete = {**at, **{name: np.ones(2) for name in missing}}
    assert {one.name for one in arguments_of(f, complete, None, None)} >= set(missing)


FILE = """
import numpy as np
class Lin:
    W = np.array([[1.0, 2], [3, 4]])
    def forward(self, x): return self.W @ x
    def backward(self, x, dy): return self.W.T @ dy
class Other:
    def __init__(self, n): self.n = n
    def f(self, x): return x**2
    @staticmethod
    def s(x): return np.sum(x**2)
    @classmethod
    def c(cls, x): return np.sum(x**2)
class Outer:
    class Inner:
        def f(self, x): return x
lin = Lin()
def df(x): return 2*x
"""


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("Lin.forward", "--python m.py:lin.forward"),
        ("Other.f", "--python m.py:other.f, with other = Other(...) in the file"),
        ("Outer.Inner.f", "--python m.py:inner.f, with inner = Outer.Inner(...) in the file"),
    ],
)
@pytest.mark.parametrize("at", ["x=[1,2]", "x=2.0", None])
def test_a_method_needs_an_instance(
    name: str,
    shown: str,
    at: str | None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "m.py").write_text(FILE)
    monkeypatch.chdir(tmp_path)
    point = ["--at", at] if at else []
    assert cli.main(["check", "--python", f"m.py:{name}", "--grad", "m.py:df", *point]) == 2
    err = capsys.readouterr().err
    assert f"`{name}` is a method" in err and shown in err and "self=" not in err


@pytest.mark.parametrize("name", ["lin.forward", "Other.s", "Other.c"])
def test_what_has_its_instance_is_judged(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "m.py").write_text(FILE)
    monkeypatch.chdir(tmp_path)
    derivative = "lin.backward" if name == "lin.forward" else "df"
    assert cli.main(["check", "--python", f"m.py:{name}", "--grad", f"m.py:{derivative}", "--at", "x=[1,2]"]) == 0
