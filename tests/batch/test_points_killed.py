"""Runs over a file of points that are killed at any moment: the next run goes on, the result has the same bytes, and no
process of theirs is left."""

from __future__ import annotations

import subprocess
import sys
import time
from typing import TYPE_CHECKING

import numpy as np
import pytest

from gradcli.base.diagnostics import GradcliError
from gradcli.batch.points import answer_points, sources, sweep
from tests.support.forced import patches
from tests.support.processes import below, runs

if TYPE_CHECKING:
    from pathlib import Path

SCRIPT = "sin(x)*y + sum(exp(-x*arange(3)))"
ENTRY = "import sys; from gradcli.interfaces.cli import entry; sys.exit(entry())"
LINUX = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


def points(folder: Path, name: str, count: int) -> None:
    table = np.random.default_rng(1).uniform(1, 2, size=(count, 2))
    if name.endswith(".csv"):
        np.savetxt(folder / name, table, fmt="%.8f", delimiter=",", header="x,y", comments="")
    else:
        np.save(folder / name, table)


def started(folder: Path, source: str, out: str, entry: str = ENTRY) -> subprocess.Popen[bytes]:
    call = [sys.executable, "-c", entry, "grad", SCRIPT, "--points", source, "--output", out]
    with open(folder / "told", "wb") as told:
        return subprocess.Popen(call, cwd=folder, stdout=subprocess.DEVNULL, stderr=told)


@LINUX
def test_workers_end_with_a_process_that_is_killed(tmp_path: Path) -> None:
    points(tmp_path, "in.csv", sweep.WORTH_HELP // 20)
    alone = "from gradcli.batch.points import decimals; decimals.text_library = lambda: None; "
    first = started(tmp_path, "in.csv", "out.csv", alone + ENTRY)
    while first.poll() is None and not (tmp_path / "out.csv.part.json").exists():
        time.sleep(0.005)
    workers = below(first.pid)
    first.kill()
    first.wait()
    assert workers
    deadline = time.monotonic() + 30
    while any(map(runs, workers)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not [one for one in workers if runs(one)]
    assert not (tmp_path / "out.csv").exists()


def assert_same(one: Path, other: Path) -> None:
    """The same bytes, else where they differ first: pytest would compare all lines with each other."""
    mine, right = one.read_bytes(), other.read_bytes()
    if mine != right:
        both = min(len(mine), len(right))
        at = next((i for i in range(both) if mine[i] != right[i]), both)
        around = slice(max(at - 60, 0), at + 60)
        pytest.fail(f"byte {at:,} of {len(mine):,} and {len(right):,}:\n{mine[around]!r}\n{right[around]!r}")


def killed_at_random(folder: Path, source: str, out: str, times: int, count: int) -> None:
    points(folder, source, count)
    begin = time.monotonic()
    assert started(folder, source, f"whole{out}").wait(120) == 0
    usual = time.monotonic() - begin
    random = np.random.default_rng(0)
    for attempt in range(times):
        ended = False
        for turn in range(100):
            process = started(folder, source, f"out{out}")
            try:
                code = process.wait(
                    random.uniform(0.2, 1.0 + turn / 4) * usual
                )  # longer each time: others may work here too
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
                if (folder / f"out{out}").exists():  # all that was left to do was to take the record away
                    (folder / f"out{out}.part.json").unlink(missing_ok=True)
                    ended = True
            else:
                assert code == 0, (folder / "told").read_text()[-2000:]
                ended = True
            if ended:
                break
        assert ended, attempt
        assert_same(folder / f"out{out}", folder / f"whole{out}")
        assert {one.name for one in folder.iterdir()} == {source, f"out{out}", f"whole{out}", "told"}
        (folder / f"out{out}").unlink()


@pytest.mark.parametrize(("source", "out"), [("in.csv", ".csv"), ("in.npy", ".npz")])
def test_what_is_killed_at_random_goes_on_to_the_same_bytes(source: str, out: str, tmp_path: Path) -> None:
    killed_at_random(tmp_path, source, out, 1, 200_000)


@pytest.mark.deep
@pytest.mark.parametrize(
    ("source", "out"), [("in.csv", ".csv"), ("in.npy", ".npy"), ("in.npy", ".npz"), ("in.npy", ".parquet")]
)
def test_what_is_killed_thirty_times_goes_on_to_the_same_bytes(source: str, out: str, tmp_path: Path) -> None:
    if out == ".parquet":
        pytest.importorskip("pyarrow", reason="needs the extra parquet")
    killed_at_random(tmp_path, source, out, 30, 500_000)


ENDS = {  # where a process ends that has written all rows
    "before the end": "sinks.Sink.finish = lambda self: os._exit(9)",
    "before the move": "sinks.os.replace = lambda one, other: moved(one, other) if 'json' in other else os._exit(9)",
    "behind the move": "sinks.os.replace = lambda one, other: (moved(one, other), 'json' in other or os._exit(9))",
}


@pytest.mark.parametrize("out", [".csv", ".npy", ".npz", ".parquet"])
def test_what_ends_behind_its_last_row_goes_on_to_the_same_bytes(out: str, tmp_path: Path) -> None:
    if out == ".parquet":
        pytest.importorskip("pyarrow", reason="needs the extra parquet")
    points(tmp_path, "in.npy", 1000)
    given = (SCRIPT, str(tmp_path / "in.npy"))
    answer_points(*given, str(tmp_path / f"whole{out}"))
    for number, end in enumerate(ENDS.values()):
        place = f"out{number}{out}"
        begin = f"import os; from gradcli.batch.points import sinks; moved = os.replace; {end}; "
        assert started(tmp_path, "in.npy", place, begin + ENTRY).wait(120) == 9
        answer_points(*given, str(tmp_path / place))
        assert_same(tmp_path / place, tmp_path / f"whole{out}")
    assert not [one.name for one in tmp_path.iterdir() if ".part" in one.name]


@pytest.mark.parametrize(("source", "out"), [("in.npy", ".npy"), ("in.csv", ".csv"), ("in.npy", ".npz")])
@pytest.mark.parametrize("stop_behind", range(1, 5))
def test_what_stops_behind_any_block_goes_on_to_the_same_bytes(
    source: str, out: str, stop_behind: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last block is short: what computes it must not hang on the blocks before it."""
    patches(monkeypatch, (sweep, "ENTRIES", 2 * 256), (sources, "TEXT_BYTES", 5800))
    points(tmp_path, source, 1000)
    call = (SCRIPT, str(tmp_path / source), str(tmp_path / f"out{out}"))
    answer_points(*call[:2], str(tmp_path / f"whole{out}"))
    seen = []

    def stop(*told: object) -> None:
        seen.append(told)
        if len(seen) == stop_behind:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        answer_points(*call, progress=stop)
    assert answer_points(*call, progress=lambda *told: seen.append(told)).resumed > 0
    assert len(seen) == 4  # blocks in all
    assert_same(tmp_path / f"out{out}", tmp_path / f"whole{out}")


@pytest.mark.parametrize("out", [".csv", ".npy", ".npz"])
def test_two_runs_do_not_write_one_file(out: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second one is told, whatever it asks, and the first one goes on as if nothing had been."""
    monkeypatch.setattr(sweep, "ENTRIES", 1)  # 64 rows in a block
    points(tmp_path, "in.npy", 300)
    place = str(tmp_path / f"out{out}")
    told: list[str] = []

    def second(done: int, total: int, label: str) -> None:
        for script in ("x*y", "x + y"):
            with pytest.raises(GradcliError) as refused:
                answer_points(script, str(tmp_path / "in.npy"), place)
            told.append(str(refused.value))

    answer_points("x*y", str(tmp_path / "in.npy"), place, progress=second)
    assert len(told) == 10 and all("another run is writing it" in one for one in told)
    answer_points("x*y", str(tmp_path / "in.npy"), str(tmp_path / f"whole{out}"))
    assert_same(tmp_path / f"out{out}", tmp_path / f"whole{out}")
    assert {one.name for one in tmp_path.iterdir()} == {"in.npy", f"out{out}", f"whole{out}"}


def test_a_file_that_another_run_has_finished_meanwhile_is_not_begun_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the rows in front of the place where this run goes on would be missing."""
    monkeypatch.setattr(sweep, "ENTRIES", 1)
    points(tmp_path, "in.npy", 300)
    call = ("x*y", str(tmp_path / "in.npy"), str(tmp_path / "out.npy"))

    def stop(*told: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        answer_points(*call, progress=stop)
    known = sweep.written_before

    def other_first(out: str, key: str) -> tuple[int, int]:
        found = known(out, key)
        monkeypatch.setattr(sweep, "written_before", known)
        answer_points(*call)
        return found

    monkeypatch.setattr(sweep, "written_before", other_first)
    with pytest.raises(GradcliError, match="another run has written it meanwhile"):
        answer_points(*call)
    assert np.load(tmp_path / "out.npy").shape == (300, 3)
    assert {one.name for one in tmp_path.iterdir()} == {"in.npy", "out.npy"}
