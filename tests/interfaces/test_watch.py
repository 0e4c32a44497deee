"""`--watch` notices what a run is about, and nothing else. Sleeping is a script of what happens meanwhile."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import pytest

from gradcli.batch.discovery import watch_files
from gradcli.batch.discovery.watch_files import QUIET, changes

Act = Callable[[], object]


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "deep").mkdir()
    for name in ("a.grad", "deep/b.grad", "notes.txt", "data.csv", "guide.md"):
        (tmp_path / name).write_text("1")
    monkeypatch.chdir(tmp_path)
    return tmp_path


class Clock:
    """Time that passes while somebody sleeps; at each sleep the next act happens, and after the last one an interrupt."""

    def __init__(self, acts: list[Act | None]) -> None:
        self.acts = iter(acts)
        self.now = 0.0
        self.sleeps: list[float] = []

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        self.sleeps.append(seconds)
        try:
            act = next(self.acts)
        except StopIteration:
            raise KeyboardInterrupt from None
        if act is not None:
            act()


def rounds(acts: list[Act | None], **options: Any) -> int:
    """How many runs begin while the acts happen."""
    clock = Clock(acts)
    return sum(1 for _ in changes(["."], sleep=clock.sleep, clock=lambda: clock.now, **options))


def write(path: str, text: str = "other") -> Act:
    return lambda: Path(path).write_text(text)


def test_nothing_happens(tree: Path) -> None:
    clock = Clock([None] * 20)
    assert sum(1 for _ in changes(["."], sleep=clock.sleep, clock=lambda: clock.now)) == 1
    assert set(clock.sleeps) == {0.5}


def moved() -> None:
    """An editor that writes beside the file and renames, with the same length and the old time."""
    old = os.stat("a.grad")
    Path("a.grad~").write_text("2")
    os.utime("a.grad~", ns=(old.st_atime_ns, old.st_mtime_ns))
    os.rename("a.grad~", "a.grad")


@pytest.mark.parametrize(
    "act",
    [
        write("a.grad"),
        write("deep/b.grad"),
        write("new.grad"),
        write("deep/new.grad"),
        lambda: os.remove("deep/b.grad"),
        lambda: os.rename("a.grad", "c.grad"),
        lambda: (os.makedirs("x/y"), write("x/y/z.grad")()),
        write(".gitignore", "b.grad"),
        moved,
    ],
)
def test_a_change_begins_one_more_run(act: Act, tree: Path) -> None:
    assert rounds([None, act, None, None, None]) == 2


@pytest.mark.parametrize(
    "act",
    [
        write("notes.txt"),
        write("data.csv"),
        write("guide.md"),
        write("new.txt"),
        write(".#a.grad"),
        write(".gitignore", "nothing"),
        lambda: os.mkdir("empty"),
    ],
)
def test_what_the_run_is_not_about(act: Act, tree: Path) -> None:
    assert rounds([None, act, None, None, None]) == 1


def test_documents_patterns_data_and_settings(tree: Path) -> None:
    assert rounds([write("guide.md"), None, None], docs=True) == 2
    assert rounds([write("new.rst"), None, None], docs=True) == 2
    assert rounds([write("a.grad", "3"), None, None], select=["deep"]) == 1
    assert rounds([write("data.csv", "2"), None, None], also=lambda: ["data.csv"]) == 2
    assert rounds([write("gradcli.toml"), None, None], also=lambda: ["gradcli.toml"]) == 2  # is not there yet
    assert rounds([lambda: os.remove("data.csv"), None, None], also=lambda: ["data.csv"]) == 2


def test_an_ignored_file_begins_to_count(tree: Path) -> None:
    Path(".gitignore").write_text("deep/\n")
    assert rounds([None, write("deep/b.grad"), None, None]) == 1
    assert rounds([None, lambda: os.remove(".gitignore"), None, None]) == 2


def test_several_writes_are_one_change(tree: Path) -> None:
    clock = Clock([None, write("a.grad", "x"), write("a.grad", "xx"), write("deep/b.grad", "yy"), None, None])
    assert sum(1 for _ in changes(["."], sleep=clock.sleep, clock=lambda: clock.now)) == 2
    assert clock.sleeps[2:5] == [QUIET] * 3


def test_a_file_that_never_rests_is_checked_anyway(tree: Path) -> None:
    count = iter(range(1, 1000))
    acts: list[Act | None] = [lambda: write("a.grad", "x" * next(count))() for _ in range(60)]
    assert 2 <= rounds(acts) <= 5


def test_a_change_while_the_caller_is_busy(tree: Path) -> None:
    clock = Clock([None, None])
    runs = 0
    for _ in changes(["."], sleep=clock.sleep, clock=lambda: clock.now):
        runs += 1
        if runs == 1:
            write("a.grad")()
            write("new.grad")()
    assert runs == 2


def test_data_that_only_a_later_run_opens(tree: Path) -> None:
    opened: list[str] = []
    clock = Clock([write("a.grad"), None, None, write("data.csv", "22"), None, None])
    runs = 0
    for _ in changes(["."], also=lambda: opened, sleep=clock.sleep, clock=lambda: clock.now):
        runs += 1
        opened[:] = ["data.csv"] if runs == 2 else opened
    assert runs == 3


def test_a_folder_that_goes_and_comes_back(tree: Path) -> None:
    def gone() -> None:
        os.remove("deep/b.grad")
        os.rmdir("deep")

    def back() -> None:
        os.mkdir("deep")
        write("deep/b.grad")()

    clock = Clock([None, gone, None, None, back, None, None, write("deep/b.grad", "again"), None, None])
    assert sum(1 for _ in changes(["deep"], sleep=clock.sleep, clock=lambda: clock.now)) == 4


def test_with_real_time(tree: Path) -> None:
    ticks: Iterator[None] = changes(["."], interval=0.02)
    next(ticks)
    timer = threading.Timer(0.1, write("a.grad", "in a moment"))
    started = time.monotonic()
    timer.start()
    next(ticks)
    assert 0.1 <= time.monotonic() - started < 5


def rewritten() -> None:
    """In place, with the same length and the old time, such as `tar` and `rsync -t` set it."""
    old = os.stat("a.grad")
    Path("a.grad").write_text("2")
    os.utime("a.grad", ns=(old.st_atime_ns, old.st_mtime_ns))


def test_times_and_lengths_that_stay_hide_nothing(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert rounds([None, rewritten, None, None, None]) == 2
    fixed = watch_files.signature_of("a.grad")
    monkeypatch.setattr(watch_files, "signature_of", lambda path: fixed)  # the clock of the file system stands still
    assert rounds([None, write("a.grad", "3"), None, None, None]) == 2
    assert rounds([None, write("a.grad", "3"), None, None, None]) == 1
    assert rounds([None, write("new.grad"), None, None, None]) == 2
    monkeypatch.setattr(watch_files, "RACY", 0)
    assert rounds([None, write("a.grad", "4"), None, None, None]) == 1


def test_many_files_are_cheap(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch_files, "RACY", 0)  # they are new
    for folder in range(20):
        os.mkdir(f"{folder}")
        for number in range(125):
            os.close(os.open(f"{folder}/{number}.grad", os.O_CREAT))
    times: list[float] = []

    def sleep(seconds: float) -> None:
        times.append(time.process_time())
        if len(times) == 8:
            raise KeyboardInterrupt

    assert len(list(islice(changes(["."], sleep=sleep), 2))) == 1
    passed = [after - before for before, after in pairwise(times[1:])]
    assert min(passed) < 0.1 / 4  # for 2,500 files: a tenth of a second for 10,000
