"""Configuration: the nearest file wins, unknown keys are refused, personal settings never touch `check`."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from gradcli.base.diagnostics import GradcliError
from gradcli.interfaces.cli import main
from gradcli.interfaces.commands import declaration
from gradcli.interfaces.options.settings import CommandSettings, load


def settings(command: str, folder: Path, home: Path | None = None) -> CommandSettings:
    environment = {"XDG_CONFIG_HOME": str(home or folder / "nobody")}
    return load(command, declaration(command), str(folder), environment)


def codes(command: str, folder: Path) -> list[str]:
    with pytest.raises(GradcliError) as caught:
        settings(command, folder)
    return [one.code for one in caught.value.diagnostics]


def test_nearest_file_wins(tmp_path: Path) -> None:
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    (tmp_path / ".git").mkdir()
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
    (tmp_path / ".git").mkdir()
    (tmp_path / "gradcli.toml").write_text("digits = 4\n")
    (inner / "pyproject.toml").write_text('[project]\ndependencies = ["gradcli"]\n')
    assert settings("grad", inner).values == {"digits": 4}
    (inner / "pyproject.toml").write_text("this is no TOML, and not ours\n")
    assert settings("grad", inner).values == {"digits": 4}


@pytest.mark.parametrize(
    ("marks", "start", "expected"),
    [
        ((), "a/b", {}),  # no project: only the folder itself counts
        ((), "", {"digits": 4}),
        ((".git/",), "a/b", {"digits": 4}),
        ((".git",), "a/b", {"digits": 4}),  # of a worktree it is a file
        (("pyproject.toml",), "a/b", {"digits": 4}),
        (("a/pyproject.toml",), "a/b", {}),
        (("a/.git/",), "a/b", {}),
        ((".git/", "a/pyproject.toml"), "a/b", {"digits": 4}),  # a part of a larger project
        ((".git/", "a/.git/"), "a/b", {}),
    ],
)
def test_settings_come_from_the_root_of_the_project_downward(
    marks: tuple[str, ...], start: str, expected: dict[str, object], tmp_path: Path
) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "gradcli.toml").write_text("digits = 4\n")
    for mark in marks:
        (tmp_path / mark).mkdir() if mark.endswith("/") else (tmp_path / mark).write_text("")
    assert settings("grad", tmp_path / start).values == expected


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root gives files away")
@pytest.mark.parametrize("name", ["gradcli.toml", "pyproject.toml"])
@pytest.mark.parametrize("linked", [False, True])
def test_settings_of_another_user_do_not_count(
    name: str, linked: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    table = "check" if name == "gradcli.toml" else "tool.gradcli.check"
    (tmp_path / name).write_text(f"[{table}]\nlenient = true\n")
    if linked:
        (tmp_path / name).rename(tmp_path / "elsewhere")
        (tmp_path / name).symlink_to("elsewhere")
    os.chown(tmp_path / name, 12345, -1, follow_symlinks=False)
    found = settings("check", tmp_path)
    assert found.values == {}
    assert [one.code for one in found.notes] == ["GC727"]
    monkeypatch.chdir(tmp_path)
    assert main(["check", "x**2", "--at", "x=3"]) == 0
    assert f"{tmp_path / name} are not used" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "options", "told"),
    [
        ("[check]\nallow = 'inconclusive'", (), ['allow = ["inconclusive"]']),
        (
            "[check]\nallow = ['kink', 'empty']\navoid-kinks = true",
            (),
            ['allow = ["kink", "empty"]', "avoid-kinks = true"],
        ),
        (
            "[check]\nallow-kink = true\nlenient = true\ndodge = true",
            (),
            ['allow = ["kink", "inconclusive"]', "avoid-kinks = true"],
        ),
        ("[check]\nallow-kink = false\nlenient = false\nallow = []", (), []),
        ("[check]\nsamples = 0", (), ["samples = 0"]),
        ("dtype = 'float32'", (), ['dtype = "float32"']),
        ("[limits]\nnodes = 2000000", (), ["limits.nodes = 2000000"]),
        ("[check]\nsamples = 9\ntimeout = 20\nrequire = 'certified'", (), []),
        ("digits = 4", (), []),
        ("[check]\nallow = 'inconclusive'", ("--allow", "inconclusive"), []),  # said on the command line too
        ("[check]\nsamples = 0", ("--samples", "1"), []),
    ],
)
def test_a_setting_that_permits_more_is_named(
    text: str,
    options: tuple[str, ...],
    told: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "gradcli.toml").write_text(text + "\n")
    monkeypatch.chdir(tmp_path)
    arguments = ["check", "x**2", "--at", "x=3", *options, "--format", "json"]
    assert main([*arguments, "--json", "report.json"]) == 0
    out, err = capsys.readouterr()
    for payload in (json.loads(out), json.loads((tmp_path / "report.json").read_text())):
        notes = [one["message"] for one in payload.get("diagnostics", ()) if one["code"] == "GC727"]
        assert notes == ([f"gradcli.toml permits more than the defaults do: {', '.join(told)}"] if told else [])
    assert ("GC727" in err) == bool(told)
    assert main(["grad", "x**2", "--at", "x=3"]) == 0
    assert "GC727" not in capsys.readouterr().err


def test_a_relative_folder_of_settings_does_not_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "home" / "gradcli").mkdir(parents=True)
    (tmp_path / "home" / "gradcli" / "gradcli.toml").write_text("digits = 4\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "nobody"))
    assert load("grad", declaration("grad"), str(tmp_path), {"XDG_CONFIG_HOME": "home"}).values == {}


def test_tables_of_commands(tmp_path: Path) -> None:
    (tmp_path / "gradcli.toml").write_text(
        'digits = 4\n[check]\nsamples = 5\nallow = "kink"\ndigits = 6\n[limits]\ntext = "1MiB"\n'
    )
    assert settings("check", tmp_path).values == {
        "digits": 6,
        "samples": 5,
        "allow": ("kink",),
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
        ("digits = " + "[" * 100_000, ["GC724"]),
    ],
)
def test_mistakes_are_refused(text: str, expected: list[str], tmp_path: Path) -> None:
    (tmp_path / "gradcli.toml").write_text(text + "\n")
    assert codes("grad", tmp_path) == expected
    assert codes("check", tmp_path) == expected


@pytest.mark.parametrize(
    ("text", "encoding", "code"),
    [
        ("[tool]\ngradcli = 3\n", "utf-8", "GC723"),
        ("[[tool.gradcli]]\ndigits = 3\n", "utf-8", "GC723"),
        ("[tool.gradcli.check]\nrequire = 'certified'\n", "utf-16", "GC724"),
    ],
)
def test_settings_of_a_project_that_are_no_table_or_no_text(
    text: str, encoding: str, code: str, tmp_path: Path
) -> None:
    (tmp_path / "pyproject.toml").write_text(text, encoding=encoding)
    assert codes("check", tmp_path) == [code]


def test_a_key_of_a_command_says_where_it_belongs(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.gradcli]\nrequire = "certified"\n')
    with pytest.raises(GradcliError) as caught:
        settings("check", tmp_path)
    assert caught.value.diagnostics[0].help == "`require` is a setting of check: write it under [tool.gradcli.check]"


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
    (tmp_path / "gradcli.toml").write_text("digits = 4\n[check]\nallow = ['empty']\n[limits]\nnodes = 10\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "nobody"))
    assert main(["--show-settings"]) == 0
    shown = capsys.readouterr().out
    origin = tmp_path / "gradcli.toml"
    assert f"digits = 4  # {origin}\n" in shown
    assert 'dtype = "float64"  # default\n' in shown
    assert f"nodes = 10  # {origin}\n" in shown
    assert f'allow = ["empty"]  # {origin}\n' in shown


def test_a_wrong_setting_is_exit_2(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "gradcli.toml").write_text("digit = 4\n")
    monkeypatch.chdir(tmp_path)
    assert main(["explain", "GC301"]) == 2
    assert "did you mean `digits`?" in capsys.readouterr().err


GOOD, BAD = "x = 2\nassert grad(x**2, x) == 2*x\nx**2\n", "x = 2\nassert grad(x**2, x) == 3*x\nx**2\n"


@pytest.fixture
def scripts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Scripts of which those are wrong that have `bad` in their names."""
    for name in ("good.grad", "f1bad.grad", "sub/good2.grad", "sub/bad.grad", "sub/deep/bad2.grad"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(BAD if "bad" in name else GOOD)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GRADCLI_CACHE", str(tmp_path / ".cache"))
    monkeypatch.delenv("GITHUB_ACTIONS", raising=False)
    return tmp_path


ALL = {"good.grad", "f1bad.grad", "sub/good2.grad", "sub/bad.grad", "sub/deep/bad2.grad"}


@pytest.mark.parametrize(
    ("text", "words", "judged"),
    [
        ("", (), ALL),
        ("exclude = ['*bad*']", (), {"good.grad", "sub/good2.grad"}),
        ("exclude = '*bad*'", (), {"good.grad", "sub/good2.grad"}),
        ("exclude = ['f1bad.grad', 'sub/']", (), {"good.grad"}),
        ("exclude = ['sub/deep']", (), ALL - {"sub/deep/bad2.grad"}),
        ("exclude = ['sub/*.grad']", (), ALL - {"sub/bad.grad", "sub/good2.grad"}),
        ("exclude = ['*', '!good.grad']", (), {"good.grad"}),
        ("exclude = []", (), ALL),
        ("select = ['good*']", (), {"good.grad", "sub/good2.grad"}),
        ("select = 'good*'", (), {"good.grad", "sub/good2.grad"}),
        ("select = ['good.grad', 'sub/bad.grad']", (), {"good.grad", "sub/bad.grad"}),
        ("select = ['sub']\nexclude = ['deep']", (), {"sub/good2.grad", "sub/bad.grad"}),
        ("select = ['good*']", ("--select", "*bad.grad"), {"f1bad.grad", "sub/bad.grad"}),  # said on the command line
        ("select = ['good*']", ("-k", "sub"), {"sub/good2.grad"}),
        ("exclude = ['*bad*']", ("--exclude", "sub"), {"good.grad", "f1bad.grad"}),
        ("exclude = ['*bad*']", ("sub/bad.grad",), {"sub/bad.grad"}),  # a named file is always taken
        ("exclude = ['*bad*']", ("sub",), {"sub/good2.grad"}),
    ],
)
@pytest.mark.parametrize("file", ["gradcli.toml", pytest.param("pyproject.toml", marks=pytest.mark.deep)])
def test_a_project_selects_its_scripts(
    text: str, words: tuple[str, ...], judged: set[str], file: str, scripts: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = "check" if file == "gradcli.toml" else "tool.gradcli.check"
    (scripts / file).write_text(f"[{table}]\n{text}\n")
    code = main(["check", *words, "--format", "json", "-j2"])
    checks = json.loads(capsys.readouterr().out)["checks"]
    assert {check["file"] for check in checks} == judged
    assert code == any("bad" in name for name in judged)


@pytest.mark.parametrize("form", ["json", "junit", "sarif", "gitlab", "markdown"])
def test_a_project_names_its_reports(form: str, scripts: Path) -> None:
    (scripts / "gradcli.toml").write_text(f"[check]\n{form} = 'report.out'\nselect = ['good*']\n")
    assert main(["check", "-q"]) == 0
    assert (scripts / "report.out").read_text()
    (scripts / "report.out").unlink()
    assert main(["check", "-q", f"--{form}", "other.out"]) == 0
    assert (scripts / "other.out").exists() and not (scripts / "report.out").exists()


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("[check]\nselect = 3", "GC723"), ("[check]\nselect = [3]", "GC723"), ("[check]\nexclude = {a = 1}", "GC723"),
        ("[check]\njunit = true", "GC723"), ("[check]\nallow = 3", "GC723"), ("[check]\nallow = ['nonsense']", "GC721"),
        ("[check]\nshow = 'nonsense'", "GC721"), ("[check]\nshow = 3", "GC723"), ("[check]\nselects = ['a']", "GC722"),
        ("select = ['a']", "GC722"), ("[check]\nlenient = 'yes'", "GC723"), ("[check]\nverbose = 3", "GC723"),
        ("[check]\nwatch = true", "GC722"), ("[check]\nclaim = 'x=1'", "GC722"), ("[check]\nexclude = ['/']", "GC721"),
    ],
)  # fmt: skip
def test_settings_that_mean_nothing_judge_nothing(
    text: str, code: str, scripts: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (scripts / "gradcli.toml").write_text(text + "\n")
    assert main(["check"]) == 2
    out, err = capsys.readouterr()
    assert f"error[{code}]" in err and not out


@pytest.mark.parametrize(
    ("text", "code", "shown"),
    [
        ("[check]\nnonsense = 3\nsamples = 5\n", "GC722", ["samples = 5  # ", 'show = "failing"  # default']),
        ("nonsense = 3\ndigits = 7\n", "GC722", ["digits = 7  # ", "samples = 3  # default"]),
        ("digits = 'many'\ncolor = 'never'\n", "GC723", ["# digits is not set", 'color = "never"  # ']),
        ("check = 3\ndigits = 7\n", "GC723", ["digits = 7  # ", "samples = 3  # default"]),
        ("limits = 3\ndigits = 7\n", "GC723", ["digits = 7  # ", "nodes = 1000000  # default"]),
        ("[limits]\nnode = 3\n", "GC702", ["nodes = 1000000  # default"]),
        ("digits = \n", "GC724", ["# digits is not set", "samples = 3  # default"]),
        ("digits = 4\ndigits = 5\n", "GC724", ["# digits is not set"]),
        ("[check]\nselect = ['a', 'b']\nallow = 'kink'\nx = 1\n", "GC722", ['select = ["a", "b"]', 'allow = ["kink"]']),
        ("[audit]\njobs = 2\nnope = 1\n", "GC722", ["[audit]", "jobs = 2"]),
    ],
)
def test_settings_are_shown_beside_what_is_wrong(
    text: str,
    code: str,
    shown: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "gradcli.toml").write_text(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "nobody"))
    assert main(["--show-settings"]) == 2
    out, err = capsys.readouterr()
    assert f"error[{code}]" in err
    for line in shown:
        assert line in out
