"""Standard streams that are closed, full, or given up by their reader: exit codes stay as documented, reports are kept."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from gradcli.interfaces import cli

ROOT = str(Path(cli.__file__).parents[2])
pytestmark = pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a POSIX shell and /dev/full")

# a command line, its exit code, and whether it writes a result to standard output
COMMANDS = [
    ("eval 1/3 --format json", 0, True),
    ("grad x**2 --at x=3", 0, True),
    ("grad x** --at x=3", 2, False),
    ("grad x** --at x=3 --format json", 2, True),
    ("grad - --at x=3 < a.grad", 0, True),
    ("hessian x**2 --at x=3", 0, True),
    ("jacobian x**2 --at x=3", 0, True),
    ("trace x**2 --at x=3", 0, True),
    ("check scripts", 0, True),
    ("check x**2 --at x=3 --claim x=x", 1, True),
    ("check empty", 5, True),
    ("check --nonsense", 2, False),
    ("graph x**2 --at x=3", 0, True),
    ("run a.py", 0, False),
    ("why x**2 --at x=3", 0, True),
    ("batch requests.jsonl", 0, True),
    ("ops", 0, True),
    ("explain GC301", 0, True),
    ("completions bash", 0, True),
    ("--version", 0, True),
    ("--show-settings", 0, True),
    ("--help", 0, True),
]
FULL = {">/dev/full"}
STREAMS = [">&-", "2>&-", "<&-", ">/dev/full", "2>/dev/full", "<&- >&- 2>&-"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "scripts").mkdir()
    (tmp_path / "empty").mkdir()
    (tmp_path / "scripts" / "b.grad").write_text("x = 2\nx**2\n")
    (tmp_path / "a.grad").write_text("x**2\n")
    (tmp_path / "a.py").write_text("x = 1\n")
    (tmp_path / "requests.jsonl").write_text('{"id": 1, "command": "eval", "script": "1/3"}\n')
    return tmp_path


def started(arguments: str, streams: str, folder: Path) -> subprocess.Popen[bytes]:
    words, _, source = arguments.partition(" < ")
    given = " ".join(map(shlex.quote, words.split()))
    line = f"{shlex.quote(sys.executable)} -m gradcli {given} {f'< {source}' if source else ''} {streams}"
    return subprocess.Popen(
        ["bash", "-c", line],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": ROOT},
    )


OTHERS = [one for one in STREAMS if one not in FULL]
EACH = [(*one, ([*FULL, OTHERS[at % len(OTHERS)]])) for at, one in enumerate(COMMANDS)]  # and in turn one of the others
EACH += [pytest.param(*one, STREAMS, marks=pytest.mark.deep) for one in COMMANDS]


@pytest.mark.parametrize(("arguments", "code", "writes", "tried"), EACH)
def test_exit_codes_do_not_depend_on_the_streams(
    arguments: str, code: int, writes: bool, tried: list[str], folder: Path
) -> None:
    for streams in tried:
        expected = 4 if writes and streams in FULL else code
        if " < " in arguments and "<&-" in streams:
            expected = 2  # there is nothing to read
        process = started(arguments, streams, folder)
        out, err = process.communicate(timeout=120)
        assert process.returncode == expected, (streams, out, err)
        assert b"Traceback" not in out + err
        assert b"[GC999]" not in out + err
        assert b"Exception ignored" not in out + err
        if expected and "2>" not in streams:
            assert err  # every code but 0 has its reason


def test_a_closed_stream_is_not_replaced_by_a_file(folder: Path) -> None:
    process = started("grad x**2 --at x=3 --output result.json", ">&- 2>&-", folder)
    assert process.wait(timeout=120) == 0
    assert json.loads((folder / "result.json").read_text())["gradient"] == {"x": 6.0}


@pytest.mark.parametrize("streams", ["| true", ">/dev/full", ">&-", "2>&-"])
def test_reports_are_whole_whatever_becomes_of_the_output(streams: str, folder: Path) -> None:
    arguments = "check scripts --json report.json --junit report.xml --show all"
    process = started(arguments, streams, folder)
    process.communicate(timeout=120)
    assert json.loads((folder / "report.json").read_text())["summary"]["PROVED"] == 1
    assert ElementTree.parse(folder / "report.xml").getroot().get("tests") == "1"
    assert not list(folder.glob("*.part"))


def test_a_reader_that_goes_away_loses_no_report(folder: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    process = subprocess.Popen(
        [sys.executable, "-m", "gradcli", "check", "scripts", "--json", "report.json"],
        cwd=folder,
        stdout=writing,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": ROOT},
    )
    os.close(writing)
    assert process.communicate(timeout=120)[1] == b""
    assert process.returncode == 141
    assert json.loads((folder / "report.json").read_text())["summary"]["PROVED"] == 1


def test_a_report_keeps_its_place(folder: Path) -> None:
    """A link stays a link, permissions stay, a device is written to."""
    (folder / "kept.json").write_text("earlier")
    (folder / "kept.json").chmod(0o640)
    (folder / "link.json").symlink_to("kept.json")
    assert started("check scripts --json link.json", "", folder).wait(timeout=120) == 0
    assert (folder / "link.json").is_symlink()
    assert json.loads((folder / "kept.json").read_text())["summary"]["PROVED"] == 1
    assert (folder / "kept.json").stat().st_mode & 0o777 == 0o640
    process = started("check scripts --json /dev/stdout --format csv", "", folder)
    assert b'"schema_version"' in process.communicate(timeout=120)[0]


def test_a_removed_folder_is_named(folder: Path) -> None:
    process = subprocess.Popen(
        ["bash", "-c", f"cd empty && rmdir ../empty && {shlex.quote(sys.executable)} -m gradcli grad x --at x=1"],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": ROOT},
    )
    out, err = process.communicate(timeout=120)
    assert (process.returncode, out) == (4, b"")
    assert err == b"gradcli: the current folder was removed; change to another one\n"
