"""Runs that are interrupted or killed at random instants: what is resumed reports what an undisturbed run reports."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.support.processes import below, runs

FILES = 14
ROUNDS, ALL_ROUNDS = 1, 200


def command(folder: Path, *options: str) -> list[str]:
    return [sys.executable, "-m", "gradcli", "check", str(folder / "scripts"), "--jobs", "2", *options]


def environment(folder: Path) -> dict[str, str]:
    return {**os.environ, "GRADCLI_CACHE": str(folder / "cache"), "PYTHONPATH": str(Path(__file__).parents[2])}


def finished(folder: Path, *options: str) -> tuple[int, bytes]:
    """The exit code and the JSON report of a run to its end."""
    path = folder / "report.json"
    done = subprocess.run(
        command(folder, "--json", str(path), *options), env=environment(folder), capture_output=True, timeout=120
    )
    assert b"Traceback" not in done.stderr
    return done.returncode, path.read_bytes()


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, tuple[int, bytes]]:
    """A folder of scripts of which two fail, and the report of an undisturbed run."""
    folder = tmp_path_factory.mktemp("interrupted")
    (folder / "scripts").mkdir()
    for number in range(FILES):
        claim = "3*x" if number in (4, 9) else f"{number}*cos({number}*x)*exp(y)"
        text = f"x = 1.{number}\ny = 0.5\nassert grad(sin({number}*x)*exp(y), x) == {claim}\nsin({number}*x)*exp(y)\n"
        (folder / "scripts" / f"case{number:02}.grad").write_text(text)
    whole = finished(folder, "--no-cache")
    assert whole[0] == 1
    assert json.loads(whole[1])["summary"]["failed"] == 2
    assert len(json.loads(whole[1])["checks"]) == 3 * FILES
    return folder, whole


def disturbed(folder: Path, number: int, seconds: float) -> tuple[Any, float, set[int]]:
    """Send a signal to a run after some seconds: its process, how long it took to end, and what it had started."""
    process = subprocess.Popen(
        command(folder, "--json", str(folder / "partial.json")),
        env=environment(folder),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    time.sleep(seconds)
    family = below(process.pid) | {process.pid}
    process.send_signal(number)
    started = time.monotonic()
    process.wait(timeout=20)
    return process, time.monotonic() - started, family


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="needs /proc")
@pytest.mark.parametrize(
    ("number", "rounds"),
    [
        pytest.param(signal.SIGINT, ROUNDS, id="some-SIGINT"),
        pytest.param(signal.SIGKILL, ROUNDS, id="some-SIGKILL"),
        *(
            pytest.param(number, ALL_ROUNDS, id=f"all-{number.name}", marks=pytest.mark.deep)
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL)
        ),
    ],
)
def test_a_disturbed_run_is_resumed(tree: tuple[Path, tuple[int, bytes]], number: signal.Signals, rounds: int) -> None:
    folder, whole = tree
    chance = random.Random(number)
    seen = 0
    for _ in range(rounds):
        journal = folder / "cache"
        for file in journal.glob("*") if journal.is_dir() else ():
            file.unlink()
        partial = folder / "partial.json"
        partial.unlink(missing_ok=True)
        process, took, family = disturbed(folder, number, chance.uniform(0.2, 3.0))
        told = process.communicate()[1].decode()
        assert "Traceback" not in told
        if process.returncode in (-number, 128 + number) and number != signal.SIGKILL and partial.exists():
            report = json.loads(partial.read_text())
            if report.get("complete", True):  # the signal came when everything was done
                assert partial.read_bytes() == whole[1]
                continue
            assert len({one["file"] for one in report["checks"]}) < FILES
            known = {json.dumps(one) for one in json.loads(whole[1])["checks"]}
            assert {json.dumps(one) for one in report["checks"]} <= known
            seen += 1
        assert took < 2.0
        deadline = time.monotonic() + 3.0
        while any(map(runs, family)) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert not [one for one in family if runs(one)]
        assert finished(folder) == whole
    assert rounds < ALL_ROUNDS or number == signal.SIGKILL or seen > ROUNDS


@pytest.mark.parametrize(
    "options", [("--jobs", "1", "--no-cache"), ("--jobs", "4", "--no-cache"), ()], ids=["one", "four", "resumed"]
)
def test_reports_do_not_depend_on_workers_or_on_what_is_known(
    tree: tuple[Path, tuple[int, bytes]], options: tuple[str, ...]
) -> None:
    folder, whole = tree
    assert finished(folder, *options) == whole


def test_shards_are_the_whole(tree: tuple[Path, tuple[int, bytes]]) -> None:
    folder, whole = tree
    checks = [json.loads(finished(folder, "--shard", f"{k}/3")[1])["checks"] for k in (1, 2, 3)]
    key = lambda one: (one["file"], one["line"] or 0, one["id"])  # noqa: E731
    together = sorted((one for part in checks for one in part), key=key)
    assert together == sorted(json.loads(whole[1])["checks"], key=key)
