"""The journal of `check`: whatever happens to its file, a stored line comes back as it was stored, or not at all."""

from __future__ import annotations

import errno
import importlib.metadata
import io
import json
import os
import platform
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from gradcli.base.diagnostics import GradcliError, error
from gradcli.batch import journal as module
from gradcli.batch.discovery.cases import BatchCase
from gradcli.batch.journal import NAME, Journal, default_folder
from gradcli.batch.workers.transport import report_to_json
from gradcli.checks.report import refused
from gradcli.checks.scripts import check_script
from gradcli.interfaces import cli
from gradcli.language.source import read_source
from gradcli.lowering.data_files.loading import load_array, recorded, state_of
from tests.support.journal_lines import STAMP, codes, filled, key_of, line_of

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = hasattr(os, "geteuid") and os.geteuid() == 0


def held(folder: Path, count: int = 30) -> list[int]:
    """Which lines a new journal finds; each as it was stored."""
    with Journal(str(folder)) as journal:
        found = [journal.get(key_of(number)) for number in range(count)]
    assert all(line in (None, line_of(number)) for number, line in enumerate(found))
    return [number for number, line in enumerate(found) if line is not None]


def changed(folder: Path, statement: str, *given: Any) -> None:
    """Run a statement on the file, past the journal."""
    connection = sqlite3.connect(folder / NAME)
    with connection:
        connection.execute(statement, given)
    connection.close()


# --- what comes back --------------------------------------------------------------------------------------


@pytest.mark.parametrize("kept", [True, False])
def test_a_line_comes_back_as_it_was_stored(tmp_path: Path, kept: bool) -> None:
    journal = filled(tmp_path / "new" / "folder" if kept else None)
    if kept:
        journal.close()
        journal = Journal(str(tmp_path / "new" / "folder"))
    with journal:
        assert [journal.get(key_of(number)) for number in range(31)] == [*map(line_of, range(30)), None]
        assert journal.failed() == {(f"/p/{number}.grad", number % 3) for number in range(0, 30, 2)}
        assert not journal.notes
        journal.put(key_of(3), line_of(4))
        assert journal.get(key_of(3)) == line_of(4)


def test_the_file_and_its_folder_are_the_users_alone(tmp_path: Path) -> None:
    folder = tmp_path / "cache"
    with filled(folder):
        modes = {path.name: path.stat().st_mode & 0o777 for path in (folder, *folder.iterdir())}
    if os.name == "posix":
        assert modes == {"cache": 0o700, NAME: 0o600, f"{NAME}-wal": 0o600, f"{NAME}-shm": 0o600}


@pytest.mark.parametrize(
    "change",
    [
        {"failure": "ValueError: x"},
        {"clock": True},
        {"opened": [["data.csv", ""]]},
        {"report": {"checks": [{"diagnostics": [{"code": "GC506"}]}]}},
    ],
    ids=lambda change: next(iter(change)),
)
def test_what_may_differ_next_time_is_not_stored(change: dict[str, Any]) -> None:
    line = {"report": {}, "seconds": [], "opened": [], "clock": False}
    with Journal(None) as journal:
        journal.put(b"k" * 32, json.dumps(line))
        assert journal.get(b"k" * 32) == json.dumps(line)
        journal.put(b"m" * 32, json.dumps({**line, **change}))
        assert journal.get(b"m" * 32) is None


@pytest.mark.parametrize("absent", ["report", "opened", "clock"])
def test_a_line_that_does_not_say_what_it_depends_on_is_not_stored(absent: str) -> None:
    line = {"report": {}, "seconds": [], "opened": [], "clock": False}
    del line[absent]
    with Journal(None) as journal:
        for text in (json.dumps(line), "no JSON", "[]"):
            journal.put(b"k" * 32, text)
        assert journal.get(b"k" * 32) is None


def test_memory_drops_the_oldest_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_IN_MEMORY", 20_000)
    with filled(None, 60) as journal:
        found = [number for number in range(60) if journal.get(key_of(number)) is not None]
    assert 5 < len(found) < 60
    assert found == list(range(60))[-len(found) :]


# --- keys and stamps --------------------------------------------------------------------------------------


def test_a_key_holds_path_block_content_and_stamp() -> None:
    cases = [
        (BatchCase("a.grad"), b"x", STAMP),
        (BatchCase("b.grad"), b"x", STAMP),
        (BatchCase("a.grad", 1), b"x", STAMP),
        (BatchCase("a.grad", 11), b"x", STAMP),
        (BatchCase("a.grad", 1), b"1x", STAMP),
        (BatchCase("a.grad"), b"y", STAMP),
        (BatchCase("a.grad"), b"x", b"another"),
    ]
    assert len({Journal.key(*case) for case in cases}) == len(cases)
    assert Journal.key(BatchCase("missing.grad"), None, STAMP) == b""
    with Journal(None) as journal:
        journal.put(b"", line_of(0))
        assert journal.get(b"") is None


def test_a_stamp_holds_options_whatever_their_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "package_digest", lambda: b"")  # it takes time, and has a test of its own
    one = {"at": ["x=1"], "dtype": "float64", "limits": None}
    assert Journal.stamp(one) == Journal.stamp(dict(reversed(one.items())))
    for change in ({"at": ["x=2"]}, {"dtype": "float32"}, {"limits": {"nodes": 5}}, {"backend": "jax"}, {"seed": 1}):
        assert Journal.stamp({**one, **change}) != Journal.stamp(one)
    large = np.arange(10_000.0)
    moved = large.copy()
    moved[5000] += 1
    assert Journal.stamp({"at": {"x": large}}) != Journal.stamp({"at": {"x": moved}})
    with pytest.raises(TypeError):
        Journal.stamp({"at": object()})


def test_a_stamp_holds_the_package_and_its_libraries(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    package = tmp_path / "gradcli"
    (package / "primitives").mkdir(parents=True)
    monkeypatch.setattr("gradcli.__file__", str(package / "__init__.py"))
    stamps = []
    for name, text in (("__init__.py", "1"), ("primitives/sin.py", "1"), ("primitives/sin.py", "2")):
        (package / name).write_text(text)
        stamps.append(Journal.stamp({}))
    (package / "__pycache__").mkdir()
    (package / "__pycache__" / "sin.pyc").write_text("3")
    assert Journal.stamp({}) == stamps[-1]
    real = importlib.metadata.version
    changes: list[tuple[object, str, object]] = [
        (importlib.metadata, "version", lambda name, library=library: "0" if name == library else real(name))
        for library in ("numpy", "scipy", "sympy", "python-flint")
    ]
    changes += [(platform, "machine", lambda: "pdp11"), (sys, "version", "3.99"), (sys, "platform", "vms")]
    for place, name, value in changes:
        with monkeypatch.context() as patch:
            patch.setattr(place, name, value)
            stamps.append(Journal.stamp({}))
    assert len(set(stamps)) == len(stamps) == 10
    monkeypatch.setattr("gradcli.__file__", str(tmp_path / "archive.pyz" / "__init__.py"))
    assert Journal.stamp({}) != Journal.stamp({})


# --- data files -------------------------------------------------------------------------------------------


def checked(path: str, **options: Any) -> str:
    """The line of a script, as a worker writes it."""
    with recorded() as opened:
        try:
            report = check_script(read_source(path), prove=False, samples=0, **options)
        except GradcliError as problem:
            report = refused(problem.diagnostics, file=path)
    return json.dumps({"report": report_to_json(report), "seconds": [], "opened": opened, "clock": False})


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a script that reads data, in which the process works."""
    (tmp_path / "models" / "data").mkdir(parents=True)
    (tmp_path / "models" / "a.grad").write_text('X = load("data/x.csv")\nsum(X)*y\n')
    (tmp_path / "models" / "data" / "x.csv").write_text("1\n2\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def stored(journal: Journal, path: str, **options: Any) -> Callable[[], str | None]:
    """Check and store a script; a function that looks it up again."""
    case = BatchCase(path)
    key = journal.key(case, case.content(), STAMP)
    line = checked(path, **options)
    journal.put(key, line)
    assert '"models/data' in line or '"@' not in line
    return lambda: journal.get(key)


def test_a_data_file_that_changes_vanishes_and_returns(project: Path) -> None:
    data = project / "models" / "data" / "x.csv"
    with Journal(str(project / "cache")) as journal:
        look = stored(journal, "models/a.grad")
        line = look()
        assert line is not None
        assert json.loads(line)["opened"] == [["models/data/x.csv", state_of(str(data))]]
        os.utime(data, (1, 1))  # touched, as by a new checkout
        assert look() == line
        data.write_text("1\n3\n")
        os.utime(data, (1, 1))  # a change that neither size nor time shows to a journal that has not looked yet
        with Journal(str(project / "cache")) as another:
            assert (
                another.get(journal.key(BatchCase("models/a.grad"), BatchCase("models/a.grad").content(), STAMP))
                is None
            )
        os.utime(data, (2, 2))
        assert look() is None
        data.unlink()
        assert look() is None
        data.write_text("1\n2\n")
        assert look() == line
        changed_at = data.stat().st_mtime_ns
        data.write_text("4\n2\n")  # at once, so that the clock of the file system may not have moved
        os.utime(data, ns=(changed_at, changed_at))
        assert look() is None


def test_what_is_known_of_a_data_file_ends_with_its_signature(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "RACY", -(10**18))  # no file is too new to be remembered
    data = project / "models" / "data" / "x.csv"
    with Journal(None) as journal:
        look = stored(journal, "models/a.grad")
        line = look()
        assert line is not None and look() == line
        data.write_text("1\n3000\n")
        assert look() is None
        data.write_text("1\n2\n")
        assert look() == line


def test_a_missing_data_file_that_appears(project: Path) -> None:
    data = project / "models" / "data" / "x.csv"
    data.unlink()
    with Journal(None) as journal:
        look = stored(journal, "models/a.grad")
        line = look()
        assert line is not None
        assert "GC611" in line
        assert json.loads(line)["opened"] == [["models/data/x.csv", None]]
        data.write_text("1\n2\n")
        assert look() is None


def test_a_path_that_is_no_file_is_never_known(project: Path) -> None:
    data = project / "models" / "data" / "x.csv"
    data.unlink()
    data.mkdir()
    with Journal(None) as journal:
        assert stored(journal, "models/a.grad")() is None
        data.rmdir()
        look = stored(journal, "models/a.grad")
        assert look() is not None
        data.mkdir()  # from "no such file" to "it is a folder"
        assert look() is None


def test_a_link_decides_by_what_it_leads_to(project: Path) -> None:
    data = project / "models" / "data" / "x.csv"
    (project / "models" / "other.csv").write_text("5\n")
    (project / "outside.csv").write_text("7\n")
    data.unlink()
    data.symlink_to("../other.csv")
    with Journal(None) as journal:
        look = stored(journal, "models/a.grad")
        assert look() is not None
        data.unlink()
        data.symlink_to("../../outside.csv")
        assert look() is None
        assert stored(journal, "models/a.grad")() is None  # GC612 is never stored


def test_files_of_the_point_and_of_every_load_are_recorded(project: Path) -> None:
    (project / "z.csv").write_text("3\n")
    np.save(project / "models" / "w.npy", np.ones(2))
    script = 'def f(u):\n    return sum(load("w.npy"))*u\nX = load("data/x.csv")\nsum(X)*y + f(y) + f(y) + sum(z)\n'
    (project / "models" / "b.grad").write_text(script)
    line = checked("models/b.grad", at=["z=@z.csv"])
    opened = json.loads(line)["opened"]
    assert [path for path, _ in opened] == ["z.csv", "models/data/x.csv", "models/w.npy"]
    assert all(state == state_of(path) for path, state in opened)


def test_a_file_that_changes_while_it_is_read_is_never_the_same(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import gradcli.lowering.data_files.loading as data_module

    real = data_module.ordinary_file
    opened_to_be_read: list[str] = []

    def exchanged(place: str, path: str) -> Any:
        file = real(place, path)
        if path == "data/x.csv":  # the reader's own opening, not that of a look
            opened_to_be_read.append(path)
            (project / "models" / "data" / "x.csv").write_text("100\n200\n")
        return file

    monkeypatch.setattr(data_module, "ordinary_file", exchanged)
    with Journal(None) as journal:
        look = stored(journal, "models/a.grad")
        assert opened_to_be_read
        assert look() is None
        (project / "models" / "data" / "x.csv").write_text("1\n2\n")
        assert look() is None


def test_nothing_is_recorded_outside_and_threads_are_apart(project: Path) -> None:
    from threading import Thread

    with recorded() as opened:
        thread = Thread(target=lambda: load_array("models/data/x.csv"))
        thread.start()
        thread.join()
        with recorded() as inner:
            load_array("models/data/x.csv")
    load_array("models/data/x.csv")
    assert (opened, [path for path, _ in inner]) == ([], ["models/data/x.csv"])


def test_a_pipe_in_place_of_data_does_not_hold_the_look_up(project: Path) -> None:
    data = project / "models" / "data" / "x.csv"
    with Journal(None) as journal:
        look = stored(journal, "models/a.grad")
        data.unlink()
        os.mkfifo(data)
        assert look() is None


# --- where it lies ----------------------------------------------------------------------------------------


def test_the_default_folder_is_the_users_own() -> None:
    home = {"HOME": "/home/me"}
    assert default_folder(home) == os.path.join("/home/me", ".cache", "gradcli")
    assert default_folder({**home, "XDG_CACHE_HOME": "/caches"}) == os.path.join("/caches", "gradcli")
    assert default_folder({**home, "XDG_CACHE_HOME": "relative"}) == default_folder(home)
    assert default_folder({**home, "XDG_CACHE_HOME": "/caches", "GRADCLI_CACHE": "/mine"}) == "/mine"
    assert default_folder({**home, "GRADCLI_CACHE": ""}) == default_folder(home)
    assert default_folder({"HOME": "relative"}) == ""


def works_in_memory(journal: Journal, reason: str) -> None:
    with journal:
        for number in range(3):
            journal.put(key_of(number), line_of(number))
            journal.remember(f"/{number}", 0, True)
        assert [journal.get(key_of(number)) for number in range(3)] == list(map(line_of, range(3)))
        assert len(journal.failed()) == 3
    assert codes(journal) == ["GC691"]
    assert reason in journal.notes[0].message
    assert journal.notes[0].severity == "warning"


def test_no_home() -> None:
    works_in_memory(Journal(""), "the user has no home folder")


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    works_in_memory(Journal(str(tmp_path / "file" / "cache")), "not a directory")
    works_in_memory(Journal(str(tmp_path / "file")), "file exists")
    works_in_memory(Journal(str(tmp_path / "a\0b")), "null")


def test_a_folder_that_cannot_be_written_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if ROOT:  # whom no mode stops

        def refuse(*given: Any, **more: Any) -> int:
            raise PermissionError(errno.EACCES, "Permission denied")

        monkeypatch.setattr(os, "open", refuse)
    else:
        tmp_path.chmod(0o500)
    works_in_memory(Journal(str(tmp_path)), "permission denied")
    if not ROOT:
        tmp_path.chmod(0o700)


@pytest.mark.skipif(os.name != "posix", reason="owners and modes of POSIX")
def test_what_others_may_write_to_is_not_trusted(tmp_path: Path) -> None:
    filled(tmp_path).close()
    for path, what in ((tmp_path, "the folder"), (tmp_path / NAME, "it")):
        before = path.stat().st_mode
        path.chmod(0o777)
        works_in_memory(Journal(str(tmp_path)), f"others may write to {what}")
        path.chmod(before)
    assert len(held(tmp_path)) == 30
    (tmp_path / NAME).rename(tmp_path / "elsewhere")
    (tmp_path / NAME).symlink_to("elsewhere")
    works_in_memory(Journal(str(tmp_path)), "it is not an ordinary file")


@pytest.mark.skipif(not ROOT, reason="only root can give files away")
def test_what_belongs_to_another_user_is_not_trusted(tmp_path: Path) -> None:
    filled(tmp_path).close()
    for path, what in ((tmp_path, "the folder"), (tmp_path / NAME, "it")):
        os.chown(path, 12345, 12345)
        works_in_memory(Journal(str(tmp_path)), f"{what} belongs to another user")
        os.chown(path, os.geteuid(), os.getegid())
    assert len(held(tmp_path)) == 30


def test_a_python_without_sqlite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sqlite3", None)
    works_in_memory(Journal(str(tmp_path)), "built without sqlite3")


def test_a_file_system_without_a_write_ahead_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Without(sqlite3.Connection):
        def execute(self, statement: str, *given: Any) -> sqlite3.Cursor:
            return super().execute(statement.replace("journal_mode = WAL", "journal_mode = DELETE"), *given)

    real = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda *given, **more: real(*given, **more, factory=Without))
    works_in_memory(Journal(str(tmp_path)), "shared memory")


@pytest.mark.parametrize("when", ["open", "put"])
def test_a_file_that_another_process_never_lets_go(tmp_path: Path, when: str) -> None:
    filled(tmp_path).close()
    journal = Journal(str(tmp_path), timeout=0.1) if when == "put" else None
    other = sqlite3.connect(tmp_path / NAME, isolation_level=None)
    if journal is None:
        other.execute("PRAGMA locking_mode = EXCLUSIVE")
    other.execute("BEGIN EXCLUSIVE")
    other.execute("DELETE FROM reports WHERE id = 1")
    started = time.monotonic()
    works_in_memory(journal or Journal(str(tmp_path), timeout=0.1), "another process holds it")
    assert time.monotonic() - started < 5
    other.close()
    assert len(held(tmp_path)) == 30


def test_nothing_heavy_is_imported_before_it_is_needed(tmp_path: Path) -> None:
    filled(tmp_path).close()
    program = (
        "import sys; from gradcli.batch.journal import Journal, default_folder\n"
        "print('sqlite3' in sys.modules, 'importlib.metadata' in sys.modules)\n"
        "journal = Journal(sys.argv[1]); journal.stamp({}); journal.get(b'0'); journal.close()\n"
        "print([name for name in ('numpy', 'sympy', 'flint', 'scipy', 'typer', 'rich') if name in sys.modules])"
    )
    ran = subprocess.run([sys.executable, "-c", program, str(tmp_path)], capture_output=True, text=True, check=True)
    assert ran.stdout.split("\n")[:2] == ["False False", "[]"]


# --- a full disk and other failures -----------------------------------------------------------------------


def pages(journal: Journal) -> int:
    return int(journal._store._connection.execute("PRAGMA page_count").fetchone()[0])  # type: ignore[union-attr]


def test_a_full_disk_is_an_error_and_loses_nothing(tmp_path: Path) -> None:
    for room in (0, 3):
        folder = tmp_path / str(room)
        journal = filled(folder, 3)
        journal._store._connection.execute(f"PRAGMA max_page_count = {pages(journal) + room}")  # type: ignore[union-attr]
        refused_at = None
        for number in range(3, 30):
            try:
                journal.put(key_of(number), line_of(number))
            except GradcliError as full:
                assert [one.code for one in full.diagnostics] == ["GC692"]
                assert str(folder) in str(full)
                refused_at = refused_at or number
                assert journal.get(key_of(number)) is None
        assert refused_at is not None
        assert [journal.get(key_of(number)) for number in range(refused_at)] == list(map(line_of, range(refused_at)))
        assert not journal.notes
        journal.close()
        assert held(folder)[:refused_at] == list(range(refused_at))
        filled(folder).close()  # there is room again
        assert len(held(folder)) == 30


class Failing:
    """A connection whose statement number `place`, and `count` after it, fail with a code of SQLite's."""

    def __init__(self, connection: sqlite3.Connection, place: int, code: int, count: int) -> None:
        self.connection, self.place, self.code, self.count = connection, place, code, count
        self.number = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.connection, name)

    def execute(self, statement: str, given: Any = ()) -> Any:
        self.number += 1
        if self.place <= self.number < self.place + self.count:
            problem = sqlite3.OperationalError("simulated")
            problem.sqlite_errorcode = self.code
            raise problem
        return self.connection.execute(statement, given)


FAILURES = {
    "FULL": [],  # an error each time
    "IOERR": ["GC691"],
    "READONLY": ["GC691"],
    "BUSY": ["GC691"],
    "IOERR_SHORT_READ": ["GC693"],
    "CORRUPT": ["GC693"],
    "NOTADB": ["GC693"],
    "ERROR": ["GC693"],  # a damaged schema has no such table
}


def statements_fail(folder: Path, monkeypatch: pytest.MonkeyPatch, code: str, step: int, count: int) -> None:
    """Let every `step`-th statement of a run, and `count` from there on, fail in a run of its own."""
    monkeypatch.setattr(module, "TOUCHED_AFTER", 3)
    monkeypatch.setattr(module, "PRUNED_AFTER", 3)
    monkeypatch.setattr(os, "access", lambda *given: False)  # a file system that was mounted anew
    filled(folder / "base", 6).close()
    changed(folder / "base", "UPDATE reports SET day = 5")
    place = 1
    while True:
        copy = folder / str(place)
        shutil.copytree(folder / "base", copy)
        journal = Journal(str(copy))
        store: Any = journal._store
        failing = store._connection = Failing(store._connection, place, getattr(sqlite3, f"SQLITE_{code}"), count)
        errors: set[str] = set()
        for number in range(10):
            try:
                assert journal.get(key_of(number)) in (None, line_of(number))
                journal.put(key_of(number), line_of(number))
                journal.remember(f"/p/{number}.grad", 0, number % 4 == 0)
            except GradcliError as full:
                errors |= {one.code for one in full.diagnostics}
                break
        journal.close()
        if failing.number < place:
            break
        assert errors <= ({"GC692"} if code == "FULL" else set())
        assert codes(journal) in ([], FAILURES[code])
        held(copy, 10)
        place += step
    assert place > 50


@pytest.mark.parametrize("code", ["FULL", "IOERR", "CORRUPT"])
def test_any_statement_may_fail(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str) -> None:
    statements_fail(tmp_path, monkeypatch, code, 8, 1)


@pytest.mark.deep
@pytest.mark.parametrize("count", [1, 10**9])
@pytest.mark.parametrize("code", list(FAILURES))
def test_every_statement_may_fail(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str, count: int) -> None:
    statements_fail(tmp_path, monkeypatch, code, 1, count)


def test_no_room_for_the_file_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*given: Any, **more: Any) -> Any:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", full)
        with pytest.raises(GradcliError, match="GC692"):
            Journal(str(tmp_path / "a"))
    with monkeypatch.context() as patch:
        patch.setattr(os, "makedirs", full)
        with pytest.raises(GradcliError, match="GC692"):
            Journal(str(tmp_path / "b"))
    journal = filled(tmp_path / "c")
    store: Any = journal._store
    store._connection = Failing(store._connection, 1, sqlite3.SQLITE_IOERR_SHMSIZE, 1)
    monkeypatch.setattr(module, "open", full, raising=False)  # what SQLite calls an I/O error is a full disk
    with pytest.raises(GradcliError, match="GC692"):
        journal.put(key_of(50), line_of(50))
    journal.put(key_of(51), line_of(51))
    assert journal.get(key_of(51)) == line_of(51)
    journal.close()


@pytest.mark.skipif(os.name != "posix", reason="limits of POSIX")
def test_a_limit_on_the_size_of_files_ends_in_memory(tmp_path: Path) -> None:
    told, _ = process("write_with_limit", tmp_path / "cache", 70_000).communicate(timeout=60)
    assert told.strip() == "['GC691']"
    assert 0 < len(held(tmp_path / "cache")) < 30


def test_a_full_disk_ends_the_command_with_code_4(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*given: Any, **more: Any) -> Any:
        raise module.no_room("/full/disk")

    monkeypatch.setattr("gradcli.calculator.evaluate", full)
    told = io.StringIO()
    with redirect_stderr(told), redirect_stdout(io.StringIO()):
        assert cli.main(["eval", "x", "--at", "x=1"]) == 4
    assert "GC692" in told.getvalue()
    monkeypatch.setattr(
        "gradcli.calculator.evaluate", lambda *given, **more: (_ for _ in ()).throw(error("GC611", "x"))
    )
    with redirect_stderr(told), redirect_stdout(io.StringIO()):
        assert cli.main(["eval", "x", "--at", "x=1"]) == 2


# --- damage -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("content", [b"garbage", b"garbage" * 10_000, b"SQLite format 3\0", b"\0" * 5000])
def test_garbage_is_set_aside(tmp_path: Path, content: bytes) -> None:
    tmp_path.chmod(0o700)
    (tmp_path / NAME).write_bytes(content)
    (tmp_path / NAME).chmod(0o600)
    with filled(tmp_path) as journal:
        assert codes(journal) == ["GC693"]
        assert journal.notes[0].severity == "note"
    assert (tmp_path / f"{NAME}.bad").read_bytes() == content
    with Journal(str(tmp_path)) as journal:
        assert not journal.notes
    assert len(held(tmp_path)) == 30


@pytest.mark.parametrize("table", ["reports", "notes"])
def test_a_database_of_somebody_else_is_set_aside(tmp_path: Path, table: str) -> None:
    tmp_path.chmod(0o700)
    changed(tmp_path, f"CREATE TABLE {table} (id, key)")
    (tmp_path / NAME).chmod(0o600)
    with filled(tmp_path) as journal:
        assert codes(journal) == ["GC693"]
    assert sqlite3.connect(tmp_path / f"{NAME}.bad").execute(f"SELECT * FROM {table}").fetchall() == []


def test_damage_that_cannot_be_removed_ends_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*given: Any) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    tmp_path.chmod(0o700)
    (tmp_path / NAME).write_bytes(b"garbage" * 1000)
    (tmp_path / NAME).chmod(0o600)
    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", refuse)
        patch.setattr(os, "unlink", refuse)
        works_in_memory(Journal(str(tmp_path)), "cannot be replaced")
    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", refuse)
        with filled(tmp_path) as journal:
            assert [note.message for note in journal.notes] == ["the journal was damaged; it was deleted"]
    assert len(held(tmp_path)) == 30


def test_a_row_that_does_not_fit_its_checksum_is_not_found(tmp_path: Path) -> None:
    filled(tmp_path, 8).close()
    values = ["x'00'", "NULL", "17", "'text'", "(SELECT value FROM reports WHERE id = 8)"]
    for row, value in enumerate(values, 1):
        changed(tmp_path, f"UPDATE reports SET value = {value} WHERE id = {row}")
    changed(tmp_path, """UPDATE reports SET opened = '[["x", null]]' WHERE id = 6""")
    changed(tmp_path, "UPDATE failures SET path = x'2f70' WHERE id = 1")
    changed(tmp_path, "UPDATE failures SET block = 'one' WHERE id = 2")
    assert held(tmp_path, 8) == [6, 7]
    with Journal(str(tmp_path)) as journal:
        assert journal.failed() == {("/p/4.grad", 1), ("/p/6.grad", 0)}
        journal.put(key_of(0), line_of(0))
    assert held(tmp_path, 8) == [0, 6, 7]


def damage_at_random(folder: Path, seeds: range) -> Counter[str]:
    """Overwrite bytes anywhere in the file, its log or its index, and use the journal; the codes of the notes."""
    closed = folder / "closed"
    filled(closed).close()
    running = folder / "running"
    journal = filled(running)
    images = [{NAME: (closed / NAME).read_bytes()}, {path.name: path.read_bytes() for path in running.iterdir()}]
    journal.close()
    told: Counter[str] = Counter()
    known = {(f"/p/{number}.grad", number % 3) for number in range(0, 30, 2)}
    for seed in seeds:
        chance = random.Random(seed)
        place = folder / "place"
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(mode=0o700)
        image = {name: bytearray(content) for name, content in chance.choice(images).items()}
        hit = image[chance.choice(sorted(image))]
        for _ in range(chance.choice((1, 1, 2, 50))):
            hit[chance.randrange(chance.choice((100, 4096, len(hit))))] = chance.randrange(256)
        if chance.random() < 0.1:
            del hit[chance.randrange(len(hit)) :]
        for name, content in image.items():
            (place / name).write_bytes(content)
            (place / name).chmod(0o600)
        for turn in range(2):
            with Journal(str(place), timeout=2) as journal:
                numbers = list(range(30))
                chance.shuffle(numbers)
                for number in numbers:
                    line = journal.get(key_of(number))
                    assert line in (None, line_of(number)), seed
                    told[f"missed {turn}"] += line is None
                    if line is None:
                        journal.put(key_of(number), line_of(number))
                assert journal.failed() <= known, seed
                journal.remember("/p/1.grad", 1, True)
                journal.remember("/p/1.grad", 1, False)
            told.update(codes(journal))
    return told


def test_damaged_bytes_never_make_a_wrong_line(tmp_path: Path) -> None:
    told = damage_at_random(tmp_path, range(12))
    assert told["GC693"] > 1
    assert told["missed 1"] < 40  # the second run finds what the first one stored
    assert "GC691" not in told


@pytest.mark.deep
def test_more_damaged_bytes_never_make_a_wrong_line(tmp_path: Path) -> None:
    told = damage_at_random(tmp_path, range(1000, 2000))
    assert told["GC693"] > 100


# --- several processes, and killed ones -------------------------------------------------------------------


def process(*given: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.support.journal_lines", *map(str, given)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2])


def test_several_processes_write_one_new_file(tmp_path: Path) -> None:
    writers = [process("write", tmp_path / "cache", 50 * number, 50 * number + 100) for number in range(3)]
    for one in writers:
        told, _ = one.communicate(timeout=60)
        assert one.returncode == 0
        assert told.splitlines()[-1] == "[]"
    assert held(tmp_path / "cache", 200) == list(range(200))
    with Journal(str(tmp_path / "cache")) as journal:
        assert len(journal.failed()) == 200
        assert not journal.notes


def test_a_second_journal_of_a_process_leaves_the_locks_of_the_first(tmp_path: Path) -> None:
    """A process that closes a file loses all locks on it; another one would then remove the log that is in use."""
    with filled(tmp_path, 3):
        Journal(str(tmp_path)).close()
        program = "import sqlite3, sys; sqlite3.connect(sys.argv[1]).execute('SELECT count(*) FROM reports')"
        subprocess.run([sys.executable, "-c", program, str(tmp_path / NAME)], check=True)
        assert (tmp_path / f"{NAME}-wal").exists()


def killed_at_random(folder: Path, times: int) -> int:
    """Kill a process while it writes, again and again; how many lines were stored in the end."""
    chance = random.Random(7)
    count = 0
    for _ in range(times):
        writer = process("write", folder, count, count + 100_000)
        assert writer.stdout is not None
        promised = [writer.stdout.readline()]
        time.sleep(chance.uniform(0, 0.15))
        writer.send_signal(signal.SIGKILL)
        promised += writer.stdout.readlines()
        writer.wait()
        writer.stdout.close()
        last = int([line for line in promised if line.endswith("\n")][-1])
        count = last + 1
        with Journal(str(folder)) as journal:
            assert not journal.notes
            assert [journal.get(key_of(number)) for number in range(count)] == list(map(line_of, range(count)))
            assert {(f"/{number}", 0) for number in range(count)} <= journal.failed()
            damage = journal._store._connection.execute("PRAGMA integrity_check").fetchall()  # type: ignore[union-attr]
        assert damage == [(b"ok",)]
    return count


def test_a_killed_process_leaves_all_that_it_stored(tmp_path: Path) -> None:
    assert killed_at_random(tmp_path / "cache", 2) > 10


@pytest.mark.deep
def test_two_hundred_killed_processes_leave_all_that_they_stored(tmp_path: Path) -> None:
    assert sum(killed_at_random(tmp_path / str(part), 10) for part in range(20)) > 500


# --- limits -----------------------------------------------------------------------------------------------


def test_what_was_not_used_for_longest_goes_first(tmp_path: Path) -> None:
    filled(tmp_path, 100).close()
    changed(tmp_path, "UPDATE reports SET day = day - 3")
    with Journal(str(tmp_path)) as journal:
        for number in range(30):
            journal.get(key_of(number))
    with Journal(str(tmp_path), most_rows=40) as journal:
        journal.put(key_of(100), line_of(100))
    assert held(tmp_path, 101) == [*range(30), 99, 100]
    size = (tmp_path / NAME).stat().st_size
    with Journal(str(tmp_path), most_bytes=40_000) as journal:
        journal.put(key_of(101), line_of(101))
    left = held(tmp_path, 102)
    assert 5 < len(left) < 32
    assert left[-1] == 101
    filled(tmp_path, 20).close()
    assert (tmp_path / NAME).stat().st_size <= size  # freed pages are used again


def test_failures_are_limited_too(tmp_path: Path) -> None:
    filled(tmp_path, 100).close()
    with Journal(str(tmp_path), most_rows=40):
        pass
    with Journal(str(tmp_path)) as journal:
        assert journal.failed() == {(f"/p/{number}.grad", number % 3) for number in range(20, 100, 2)}


def test_the_last_use_is_written_once_a_day(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    filled(tmp_path).close()
    statements: list[str] = []
    for day, writes in ((0, 0), (1, 30), (1, 0)):
        with monkeypatch.context() as patch:
            patch.setattr(module, "time", lambda day=day: time.time() + day * module.DAY)
            journal = Journal(str(tmp_path))
        statements.clear()
        journal._store._connection.set_trace_callback(statements.append)  # type: ignore[union-attr]
        for number in range(30):
            assert journal.get(key_of(number)) is not None
        journal.close()
        assert sum(one.startswith("UPDATE") for one in statements) == writes


# --- what failed last -------------------------------------------------------------------------------------


def test_failures_are_remembered_by_path_and_block(tmp_path: Path) -> None:
    with Journal(str(tmp_path)) as journal:
        for path, block in (("/a/x.grad", 0), ("/a/doc.md", 1), ("/a/doc.md", 2), ("/ab/y.grad", 0), ("/\udc80", 0)):
            journal.remember(path, block, True)
        journal.remember("/a/doc.md", 1, False)
        journal.remember("/never/failed", 0, False)
    with Journal(str(tmp_path)) as journal:
        assert journal.failed() == {("/a/x.grad", 0), ("/a/doc.md", 2), ("/ab/y.grad", 0), ("/\udc80", 0)}
        assert journal.failed(["/a"]) == {("/a/x.grad", 0), ("/a/doc.md", 2)}
        assert journal.failed(["/a/doc.md", "/ab"]) == {("/a/doc.md", 2), ("/ab/y.grad", 0)}
        assert journal.failed(["/"]) == journal.failed()
        assert journal.failed([]) == set()


# --- speed ------------------------------------------------------------------------------------------------


@pytest.mark.deep
def test_ten_thousand_look_ups_take_little(tmp_path: Path) -> None:
    program = (
        "import resource, sys, time; from gradcli.batch.journal import Journal; from gradcli.batch.discovery.cases import BatchCase\n"
        "start = time.process_time(); journal = Journal(sys.argv[1]); stamp = journal.stamp({})\n"
        "for number in range(10_000):\n"
        "    key = journal.key(BatchCase(f'{number}.grad'), b'x**2*y' * 40, stamp)\n"
        "    if journal.get(key) is None:\n"
        '        journal.put(key, \'{"report": [%s], "opened": [], "clock": false}\' % \', \'.join(map(str, range(900))))\n'
        "    journal.remember(f'/{number}', 0, False)\n"
        "journal.close()\n"
        "print(time.process_time() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)"
    )
    runs = []
    for _ in range(4):
        ran = subprocess.run([sys.executable, "-c", program, str(tmp_path)], capture_output=True, text=True, check=True)
        runs.append(SimpleNamespace(seconds=float(ran.stdout.split()[0]), megabytes=float(ran.stdout.split()[1])))
    assert min(run.seconds for run in runs[1:]) < 1.3
    assert max(run.megabytes for run in runs) < 75
