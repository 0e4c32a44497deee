"""Configuration: the nearest file wins, unknown keys are refused, personal settings never touch `check`."""

from __future__ import annotations

from pathlib import Path

import pytest

from gradcli.cli import main
from gradcli.commands import declaration
from gradcli.commands._settings import Settings, load
from gradcli.diagnostics import GradcliError


def settings(command: str, folder: Path, home: Path | None = None) -> Settings:
    environment = {"XDG_CONFIG_HOME": str(home or folder / "nobody")}
    return load(command, declaration(command), str(folder), environment)


def codes(command: str, folder: Path) -> list[str]:
    with pytest.raises(GradcliError) as caught:
        settings(command, folder)
    return [one.code for one in caught.value.diagnostics]


def test_nearest_file_wins(tmp_path: Path) -> None:
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    (tmp_path / "gradcli.toml").write_text('format = "csv"\ndigits = 4\n')
    assert settings("grad", inner).values == {"format": "csv", "digits": 4}
    (tmp_path / "a" / "pyproject.toml").write_text('[tool.gradcli]\nformat = "json"\n')
    found = settings("grad", inner)
    assert found.values == {"format": "json"}
    assert found.origins == {"format": str(tmp_path / "a" / "pyproject.toml")}
    (tmp_path / "a" / "gradcli.toml").write_text("digits = 9\n")
    assert settings("grad", inner).values == {"digits": 9}


def test_a_project_file_without_our_table_is_passed_over(tmp_path: Path) -> None:
    inner = tmp_path / "a"
    inner.mkdir()
    (tmp_path / "gradcli.toml").write_text("digits = 4\n")
    (inner / "pyproject.toml").write_text('[project]\ndependencies = ["gradcli"]\n')
    assert settings("grad", inner).values == {"digits": 4}
    (inner / "pyproject.toml").write_text("this is no TOML, and not ours\n")
    assert settings("grad", inner).values == {"digits": 4}


def test_tables_of_commands(tmp_path: Path) -> None:
    (tmp_path / "gradcli.toml").write_text(
        'digits = 4\n[check]\nsamples = 5\nallow-kink = true\ndigits = 6\n[limits]\ntext = "1MiB"\n'
    )
    assert settings("check", tmp_path).values == {
        "digits": 6,
        "samples": 5,
        "allow_kink": True,
        "limits": {"text": "1MiB"},
    }
    assert settings("grad", tmp_path).values == {"digits": 4, "limits": {"text": "1MiB"}}


def test_a_format_that_a_command_lacks_does_not_concern_it(tmp_path: Path) -> None:
    (tmp_path / "gradcli.toml").write_text('format = "json"\n')
    assert settings("batch", tmp_path).values == {}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("digit = 3", ["GC722"]),
        ("at = 'x=2'", ["GC722"]),
        ("digits = 'many'", ["GC723"]),
        ("digits = 0", ["GC723"]),
        ("digits = true", ["GC723"]),
        ("format = 'pdf'", ["GC723"]),
        ("check = 3", ["GC723"]),
        ("limits = 3", ["GC723"]),
        ("[check]\nsample = 3\nseed = -1", ["GC722", "GC723"]),
        ("[limits]\nnode = 3", ["GC702"]),
        ("digits = ", ["GC724"]),
    ],
)
def test_mistakes_are_refused(text: str, expected: list[str], tmp_path: Path) -> None:
    (tmp_path / "gradcli.toml").write_text(text + "\n")
    assert codes("grad", tmp_path) == expected
    assert codes("check", tmp_path) == expected


def test_the_users_own_file_never_touches_check(tmp_path: Path) -> None:
    project, home = tmp_path / "project", tmp_path / "home"
    project.mkdir()
    (home / "gradcli").mkdir(parents=True)
    (home / "gradcli" / "gradcli.toml").write_text('digits = 4\ndtype = "float32"\n[check]\nlenient = true\n')
    assert settings("grad", project, home).values == {"digits": 4, "dtype": "float32"}
    assert settings("check", project, home).values == {}
    (project / "gradcli.toml").write_text("digits = 7\n")
    assert settings("grad", project, home).values == {"digits": 7, "dtype": "float32"}


def test_show_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "gradcli.toml").write_text("digits = 4\n[check]\nlenient = true\n[limits]\nnodes = 10\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "nobody"))
    assert main(["--show-settings"]) == 0
    shown = capsys.readouterr().out
    origin = tmp_path / "gradcli.toml"
    assert f"digits = 4  # {origin}\n" in shown
    assert 'dtype = "float64"  # default\n' in shown
    assert f"nodes = 10  # {origin}\n" in shown
    assert f"lenient = true  # {origin}\n" in shown


def test_a_wrong_setting_is_exit_2(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "gradcli.toml").write_text("digit = 4\n")
    monkeypatch.chdir(tmp_path)
    assert main(["explain", "GC301"]) == 2
    assert "did you mean `digits`?" in capsys.readouterr().err
