"""Each script in samples/errors goes in, the text of its diagnostics comes out as a file that a person has read.

A file is named after its code. Its first line expects the error that every command meets; a remark `# with: OPTIONS`
names the options that it needs. After a change on purpose: `UPDATE_SNAPSHOTS=1 pytest tests/project/test_error_samples.py`,
then read the difference.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
from pathlib import Path

import pytest

import gradcli
from gradcli.base.codes import CODES
from gradcli.base.diagnostics import GradcliError
from gradcli.checks import check_script
from gradcli.interfaces import cli
from gradcli.language import parse, read_source
from gradcli.lowering import lower
from gradcli.rendering.diagnostic_text import render

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "samples" / "errors"
SNAPSHOTS = Path(__file__).parents[1] / "snapshots" / "errors"
SAMPLES = sorted(FOLDER.glob("*.grad"))

# codes without a sample, and why no script of the folder can have them
WITHOUT = {
    "GC102": "a file that is not UTF-8 cannot say on its first line what it expects",
    "GC133": "objects are given from Python only",
    "GC216": "operations are declared in Python only",
    "GC332": "many points are given from Python only",
    "GC333": "objects are given from Python only",
    "GC501": "a sample of 64 KiB is no help; --limit text=8 shows it",
    "GC506": "depends on the machine",
    "GC510": "is about a drawing of a script",
    "GC511": "is about a formula, which Python asks for",
    "GC512": "is about a function in another language, which derive writes",
    "GC601": "is about the path of the script itself",
    "GC640": "is about a file beside the script",
    "GC690": "is about the file of --output",
    "GC691": "is about the folder of the journal",
    "GC692": "is about the disk",
    "GC693": "is about the file of the journal",
    "GC7": "options have no script",
    "GC8": "verdicts have their own samples, one for each way to fail",
    "GC9": "the protocol, and faults of gradcli, have no script",
}
JUDGED = {"GC409", "GC410", "GC412"}  # notes that belong to a verdict


def options_of(path: Path) -> list[str]:
    found = re.search(r"^# with: (.*)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    return shlex.split(found[1]) if found else []


def told(path: Path) -> str:
    """What a person sees on standard error."""
    place = str(path.relative_to(ROOT))
    if path.name[:5] in JUDGED:
        report = check_script(read_source(place))
        return render([one for check in report.checks for one in check.diagnostics]) + "\n"
    error = io.StringIO()
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(error):
        cli.main(["grad", place, *options_of(path)])
    return error.getvalue()


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)
def test_the_diagnostic_is_what_a_person_has_read(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    text = told(path)
    snapshot = SNAPSHOTS / f"{path.stem}.txt"
    if os.environ.get("UPDATE_SNAPSHOTS"):
        snapshot.write_text(text, encoding="utf-8", newline="\n")
    assert snapshot.read_text(encoding="utf-8") == text


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)
def test_the_file_says_what_it_shows(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The snapshot has the code of the name and no other error; the first line expects what all commands meet."""
    monkeypatch.chdir(ROOT)
    code = path.name[:5]
    lines = path.read_text(encoding="utf-8").splitlines()
    shown = re.findall(r"^(\w+)\[(GC\d{3})\]", (SNAPSHOTS / f"{path.stem}.txt").read_text("utf-8"), re.MULTILINE)
    assert code in {found for _, found in shown}
    assert {found for severity, found in shown if severity == "error"} <= {code}
    try:
        source = read_source(str(path))
        lower(parse(source))
        if code == "GC406":  # data that are read when the program runs
            gradcli.evaluate(source)
        met = None
    except GradcliError as refused:
        met = {one.code for one in refused.diagnostics}
    assert met in (None, {code})
    assert (lines[0] == f"# expect: error {code}") == (met is not None)
    comment = lines[1] if met else lines[0]
    assert comment.startswith("# ")
    assert comment.endswith((".", ","))


def test_every_diagnostic_of_a_script_has_a_sample() -> None:
    shown = {path.name[:5] for path in SAMPLES}
    assert shown <= set(CODES)
    without = {code for code in CODES if code in WITHOUT or code[:3] in WITHOUT}
    assert set(CODES) - shown == without
    assert not shown & without


def test_no_snapshot_is_left_over() -> None:
    assert {path.stem for path in SNAPSHOTS.glob("*.txt")} == {path.stem for path in SAMPLES}
