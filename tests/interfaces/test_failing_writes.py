"""A disk that is full at the k-th write: a clear end with code 4, the earlier report whole, and nothing left over."""

from __future__ import annotations

import builtins
import json
from collections.abc import Iterable
from errno import ENOSPC
from pathlib import Path
from typing import Any

import pytest

from gradcli.interfaces import output
from gradcli.interfaces.cli import main

FORMATS = ("json", "junit", "sarif", "gitlab", "markdown")


class Full:
    """A file whose k-th write fails, counted over all files of a run."""

    writes = 0
    k = 0

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.file = builtins.open(*args, **kwargs)  # noqa: SIM115

    def write(self, text: str) -> None:
        Full.writes += 1
        if Full.writes == Full.k:
            raise OSError(ENOSPC, "No space left on device")
        self.file.write(text)

    def writelines(self, pieces: Iterable[str]) -> None:
        for piece in pieces:
            self.write(piece)

    def __enter__(self) -> Full:
        return self

    def __exit__(self, *problem: object) -> None:
        self.file.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.file, name)


def test_every_kth_write_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.grad").write_text("x = 2\nassert grad(x**2, x) == x\nx**2\n")
    arguments = ["check", "a.grad"]
    for form in FORMATS:
        arguments += [f"--{form}", f"r.{form}"]
    assert main(arguments) == 1
    whole = {form: (tmp_path / f"r.{form}").read_text() for form in FORMATS}
    shown = capsys.readouterr().out
    monkeypatch.setattr(output, "open", Full, raising=False)
    for k in range(1, 100):
        Full.writes, Full.k = 0, k
        for form in FORMATS:
            (tmp_path / f"r.{form}").write_text("earlier")
        code = main(arguments)
        out, told = capsys.readouterr()
        assert out == shown
        assert sorted(path.name for path in tmp_path.iterdir()) == ["a.grad", *sorted(f"r.{form}" for form in FORMATS)]
        found = {form: (tmp_path / f"r.{form}").read_text() for form in FORMATS}
        if Full.writes < k:
            assert code == 1
            break
        assert code == 4
        assert "GC692" in told and "no space left on device" in told
        assert [form for form in FORMATS if found[form] == "earlier"] == [
            form for form in FORMATS if f"cannot write r.{form}" in told
        ]
    assert k > len(FORMATS)
    for form in ("json", "sarif", "gitlab"):
        json.loads(found[form])
        assert found[form] == whole[form]
