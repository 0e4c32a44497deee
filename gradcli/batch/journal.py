"""The journal of `check`: reports of cases that were checked before, kept in one SQLite file between runs.

The key of a report consists of the case, its content, and a stamp of all else that a report depends on (gradcli
itself, Python, the libraries of the oracles, the machine, the options). The states of the data files that the script
opened are stored with it, and compared again. Each report is stored in a transaction of its own, so a run that was
killed continues from the stored reports; there is no other record of progress.

The file is in the user's cache folder, never in the project. A cache inside the project could be committed, and a
stored report could make a wrong formula pass on every machine that trusts the commit. Only the user may write to the
folder and read the file.

Damage to the file never leads to a wrong report: each row has a checksum, and where it is wrong the case is checked
again. A damaged file is renamed to `.bad`. If the folder cannot be used, reports are kept in memory, with a warning in
`notes`. Only a full disk is an error, because hours of work must not be lost silently.
"""

from __future__ import annotations

import os
import stat
import sys
from contextlib import suppress
from errno import EDQUOT, ENOSPC
from json import dumps, loads
from time import monotonic, sleep, time
from typing import TYPE_CHECKING, Any
from zlib import compress, decompress

from gradcli.base.diagnostics import NOTE, WARNING, Diagnostic, GradcliError, error, visible
from gradcli.base.user_cache import cache_root, digest, private
from gradcli.primitives.plugins import fingerprint

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from gradcli.batch.discovery.cases import BatchCase

NAME = "journal.sqlite"
APPLICATION = 0x47434A01  # "GCJ" and the number of the schema, as SQLite's application_id: whose file it is
TIMEOUT = 30.0  # seconds that another process may hold the file
MOST_BYTES, MOST_ROWS = 512 << 20, 200_000
MOST_IN_MEMORY = 64 << 20
LONGEST = 64 << 20  # bytes of a compressed line that is stored
PRUNED_TO = 0.8  # of a limit, once it is passed
PRUNED_AFTER = 4096  # stored reports
TOUCHED_AFTER = 1000  # reports whose last use is written together
DAY = 86_400
RACY = 2_000_000_000  # nanoseconds in which two changes of a file may have one time
LIBRARIES = ("numpy", "scipy", "sympy", "python-flint")
BACKENDS = {"jax": ("jax", "jaxlib"), "cupy": ("cupy", "cupy-cuda12x", "cupy-cuda13x")}
TABLES = (
    "CREATE TABLE IF NOT EXISTS reports"
    " (id INTEGER PRIMARY KEY, key BLOB UNIQUE, day INTEGER, opened BLOB, value BLOB, checksum BLOB)",
    "CREATE INDEX IF NOT EXISTS reports_by_day ON reports (day)",
    "CREATE TABLE IF NOT EXISTS failures (id INTEGER PRIMARY KEY, key BLOB UNIQUE, path BLOB, block INTEGER)",
)


def default_folder(environment: Mapping[str, str]) -> str:
    """The folder of the journal: `$GRADCLI_CACHE`, else `gradcli` in the user's cache folder; empty without a home.

    >>> default_folder({"GRADCLI_CACHE": "/scratch/me"})
    '/scratch/me'
    >>> default_folder({"HOME": "/home/me"})
    '/home/me/.cache/gradcli'
    """
    root = cache_root(environment)
    return environment.get("GRADCLI_CACHE") or (os.path.join(root, "gradcli") if root else "")


class Journal:
    """Stored reports, and which cases failed last. One thread uses it at a time; several processes may share the file.

    `folder` is created if necessary; with None everything is kept in memory, and an empty text means that there is no
    home folder. `notes` holds diagnostics on the file itself: GC691 if it cannot be used, GC693 if it was damaged.

    Raises GradcliError GC692 if the disk is full, here and in `put` and `remember`; stored reports are kept.

    >>> from gradcli.batch.discovery.cases import BatchCase
    >>> journal = Journal(None)
    >>> key = journal.key(BatchCase("a.grad"), b"x**2", journal.stamp({}))
    >>> journal.put(key, '{"report": {}, "seconds": [], "opened": [], "clock": false}')
    >>> journal.get(key)
    '{"report": {}, "seconds": [], "opened": [], "clock": false}'
    """

    def __init__(
        self, folder: str | None, *, most_bytes: int = MOST_BYTES, most_rows: int = MOST_ROWS, timeout: float = TIMEOUT
    ) -> None:
        self.notes: list[Diagnostic] = []
        self._folder = folder or ""
        self._limits = (most_bytes, most_rows, timeout)
        self._states: dict[str, tuple[tuple[int, int, int, int], str]] = {}
        self._store: _File | _Memory = _Memory()
        if folder is not None:
            try:
                self._store = _File(self._folder, *self._limits)
            except _Damaged:
                self._renew()
            except _Unusable as reason:
                self._fall_back(str(reason))

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *problem: object) -> None:
        self.close()

    @staticmethod
    def stamp(options: Mapping[str, Any]) -> bytes:
        """A digest of what a report depends on apart from its case: gradcli, plug-ins, libraries, machine, options.

        `options` are those of the check as they are given to a worker, without what changes no report (`jobs`,
        `progress`). Versions are read from the installed metadata, so no library is imported.
        """
        import platform
        from importlib.metadata import PackageNotFoundError, version

        versions: dict[str, str | None] = {}
        for name in (*LIBRARIES, *BACKENDS.get(str(options.get("backend")), ())):
            try:
                versions[name] = version(name)
            except PackageNotFoundError:
                versions[name] = None
        parts = (sys.version, sys.platform, platform.machine(), versions, fingerprint(), options)
        return digest(package_digest(), dumps(parts, sort_keys=True, default=_plain).encode())

    @staticmethod
    def key(case: BatchCase, content: bytes | None, stamp: bytes) -> bytes:
        """The key of a report; empty if the content could not be read, and nothing is stored then."""
        if content is None:
            return b""
        return digest(stamp, os.fsencode(case.path), str(case.block).encode(), content)

    def get(self, key: bytes) -> str | None:
        """The line that is stored under a key; None if there is none, or if a data file has changed since."""
        row = self._do("read", key) if key else None
        if row is None:
            return None
        opened, value = row
        if opened and any(not self._unchanged(path, state) for path, state in loads(opened)):
            return None
        return decompress(value).decode("utf-8", "surrogatepass")

    def put(self, key: bytes, line: str) -> None:
        """Store a worker's line, unless the next run may differ: after a failure, a timeout or a lack of memory.

        A line has to say which data files were opened (`"opened"`) and that no clock decided (`"clock": false`).
        """
        try:
            answer = loads(line)
        except ValueError:
            return
        if not key or not isinstance(answer, dict) or "report" not in answer or "failure" in answer:
            return
        if answer.get("clock", True) or "opened" not in answer or '"GC506"' in line:
            return
        opened = answer["opened"]
        value = compress(line.encode("utf-8", "surrogatepass"))
        if len(value) <= LONGEST and all(state != "" for _, state in opened):  # empty: a file that could not be read
            self._do("write", key, dumps(opened).encode() if opened else b"", value)

    def remember(self, path: str, block: int, failed: bool) -> None:
        """Remember whether a case failed; `path` is absolute. It does not depend on the version of gradcli."""
        self._do("remember", os.fsencode(path), block, failed)

    def failed(self, paths: Iterable[str] | None = None) -> set[tuple[str, int]]:
        """The cases that failed when they were last checked, as (absolute path, block).

        With `paths` only those that are one of these files, or lie in one of these folders.
        """
        cases = {(os.fsdecode(path), block) for path, block in self._do("failures")}
        if paths is None:
            return cases
        roots = [(root, os.path.join(root, "")) for root in paths]
        return {case for case in cases if any(case[0] == root or case[0].startswith(below) for root, below in roots)}

    def close(self) -> None:
        """Remove reports beyond the limits, those unused for longest first, and close the file."""
        self._do("close")

    def _do(self, name: str, *args: Any) -> Any:
        """Perform an operation of the store; if the file fails, on a new file, and if that fails, in memory."""
        while True:
            try:
                return getattr(self._store, name)(*args)
            except _Damaged:
                self._renew()
            except _Unusable as reason:
                self._fall_back(str(reason))

    def _renew(self) -> None:
        """Set a damaged file aside and start a new one; only once, so that repeated damage costs no time."""
        self._store.abandon()
        self._store = _Memory()
        if any(note.code == "GC693" for note in self.notes):
            self._fall_back("it was damaged a second time")
            return
        try:
            what = _set_aside(os.path.join(self._folder, NAME))
            self._store = _File(self._folder, *self._limits)
        except (_Damaged, _Unusable) as reason:
            self._fall_back(str(reason))
            return
        hint = "nothing is lost but time: what it held is checked anew"
        self.notes.append(Diagnostic("GC693", f"the journal was damaged; {what}", help=hint, severity=NOTE))

    def _fall_back(self, reason: str) -> None:
        """Continue in memory, and note the reason."""
        self._store.abandon()
        self._store = _Memory()
        place = f" in {visible(self._folder, 200)}" if self._folder else ""
        text = f"reports are not kept for the next run: the journal{place} cannot be used: {reason}"
        hint = "name a local folder of your own that you can write to with --cache or GRADCLI_CACHE"
        self.notes.append(Diagnostic("GC691", text, help=hint, severity=WARNING))

    def _unchanged(self, path: str, state: str | None) -> bool:
        """Whether a data file is unchanged; its content is read once, as long as size and time stay the same."""
        from gradcli.lowering.data_files.loading import signature_of, state_of

        signature = signature_of(path)
        known = self._states.get(path)
        if known is not None and known[0] == signature:
            return known[1] == state
        now = state_of(path)
        if signature is not None and now and time() * 1e9 - max(signature[2:]) > RACY:
            self._states[path] = (signature, now)
        return now == state


def package_digest() -> bytes:
    """A digest of the files of gradcli, in order of their names."""
    import gradcli

    root = os.path.dirname(gradcli.__file__)
    parts = []
    for folder, folders, files in os.walk(root):
        folders[:] = sorted(name for name in folders if name != "__pycache__")
        for name in sorted(files):
            path = os.path.join(folder, name)
            with open(path, "rb") as file:
                parts += [os.fsencode(os.path.relpath(path, root)), file.read()]
    return digest(*parts or (os.urandom(32),))  # in an archive there are no files to read: nothing is found again


def _plain(value: Any) -> Any:
    """An option that is not plain data, as plain data: limits, arrays."""
    if hasattr(value, "as_dict"):
        return value.as_dict()
    if hasattr(value, "tolist"):
        return [str(value.dtype), value.tolist()]
    raise TypeError(f"an option of type {type(value).__name__} has no place in a key")


# --- where reports are kept -------------------------------------------------------------------------------


class _Unusable(Exception):
    """The file cannot be used, and why."""


class _Damaged(Exception):
    """The file is damaged, or not a journal."""


class _Memory:
    """The store of a run without a file. If the reports take too much memory, the oldest are dropped."""

    def __init__(self) -> None:
        self._rows: dict[bytes, tuple[bytes, bytes]] = {}
        self._bytes = 0
        self._failures: set[tuple[bytes, int]] = set()

    def read(self, key: bytes) -> tuple[bytes, bytes] | None:
        return self._rows.get(key)

    def write(self, key: bytes, opened: bytes, value: bytes) -> None:
        _, before = self._rows.pop(key, (b"", b""))
        self._rows[key] = (opened, value)
        self._bytes += len(value) - len(before)
        while self._bytes > MOST_IN_MEMORY:
            self._bytes -= len(self._rows.pop(next(iter(self._rows)))[1])

    def remember(self, path: bytes, block: int, failed: bool) -> None:
        (self._failures.add if failed else self._failures.discard)((path, block))

    def failures(self) -> Iterable[tuple[bytes, int]]:
        return self._failures

    def close(self) -> None:
        """Do nothing: the store ends with the process."""

    abandon = close


class _File:
    """The store in a SQLite file. Its methods raise _Unusable and _Damaged, and GradcliError GC692 on a full disk."""

    def __init__(self, folder: str, most_bytes: int, most_rows: int, timeout: float) -> None:
        self._folder = folder
        self._most_bytes, self._most_rows = most_bytes, most_rows
        self._today = int(time() // DAY)
        self._touched: list[int] | None = []  # ids of rows that were last used on another day
        self._written = 0
        path = _prepared(folder)
        try:
            import sqlite3
        except ImportError:
            raise _Unusable("this Python was built without sqlite3") from None
        # a damaged size may request any amount of memory, and damaged names stand in messages that Python cannot decode
        self._errors = (sqlite3.Error, MemoryError, UnicodeDecodeError)
        deadline = monotonic() + timeout
        while True:
            try:
                self._connection = sqlite3.connect(path, timeout=timeout, isolation_level=None, check_same_thread=False)
                self._begin(sqlite3.SQLITE_LIMIT_LENGTH)
                return
            except self._errors as wrong:
                self.abandon()
                # while another process makes the file, SQLite refuses some steps at once, whatever the timeout
                if _primary(wrong) != sqlite3.SQLITE_BUSY or monotonic() > deadline:
                    raise self._problem(wrong) from wrong
                sleep(0.02)
            except BaseException:
                self.abandon()
                raise

    def _begin(self, length: int) -> None:
        """Configure the connection, and create the tables if the file is new."""
        connection = self._connection
        connection.text_factory = bytes  # damaged text is not decoded
        connection.setlimit(length, 2 * LONGEST)
        execute = connection.execute
        (application,) = execute("PRAGMA application_id").fetchone()
        if application != APPLICATION:
            (tables,) = execute("SELECT count(*) FROM sqlite_master").fetchone()
            if application != 0 or tables:
                raise _Damaged("it is not a journal")
        if execute("PRAGMA journal_mode = WAL").fetchone() != (b"wal",):
            raise _Unusable("its file system has no shared memory, which SQLite's write-ahead log needs")
        execute("PRAGMA synchronous = NORMAL")
        if application != APPLICATION:
            execute("BEGIN IMMEDIATE")
            for table in TABLES:
                execute(table)
            execute(f"PRAGMA application_id = {APPLICATION}")
            execute("COMMIT")

    def read(self, key: bytes) -> tuple[bytes, bytes] | None:
        """The data files that were opened, and the compressed line."""
        rows = self._run("SELECT id, day, opened, value, checksum FROM reports WHERE key = ?", key)
        if not rows:
            return None
        row, day, opened, value, checksum = rows[0]
        if not isinstance(opened, bytes) or not isinstance(value, bytes) or digest(key, opened, value) != checksum:
            return None
        if day != self._today and self._touched is not None:
            self._touched.append(row)
            if len(self._touched) >= TOUCHED_AFTER:
                self._touch()
        return opened, value

    def write(self, key: bytes, opened: bytes, value: bytes) -> None:
        """Store one row, in a transaction of its own."""
        row = (key, self._today, opened, value, digest(key, opened, value))
        self._run("INSERT OR REPLACE INTO reports (key, day, opened, value, checksum) VALUES (?, ?, ?, ?, ?)", *row)
        self._written += 1
        if self._written % PRUNED_AFTER == 0:
            self._prune()

    def remember(self, path: bytes, block: int, failed: bool) -> None:
        """Store a failure, or remove it; most cases have none, and nothing is written then."""
        key = digest(path, str(block).encode())
        rows = self._run("SELECT path, block FROM failures WHERE key = ?", key)
        if failed and rows != [(path, block)]:
            self._run("INSERT OR REPLACE INTO failures (key, path, block) VALUES (?, ?, ?)", key, path, block)
        elif rows and not failed:
            self._run("DELETE FROM failures WHERE key = ?", key)

    def failures(self) -> list[tuple[bytes, int]]:
        """The failures whose key fits."""
        rows = self._run("SELECT key, path, block FROM failures")
        return [
            (path, block)
            for key, path, block in rows
            if isinstance(path, bytes) and isinstance(block, int) and digest(path, str(block).encode()) == key
        ]

    def close(self) -> None:
        """Write pending changes, and close the file."""
        self._touch()
        with suppress(GradcliError):  # what is stored stays stored, and the next run removes it
            self._prune()
        self.abandon()

    def abandon(self) -> None:
        """Close the file without writing pending changes."""
        connection = getattr(self, "_connection", None)
        if connection is not None:
            with suppress(*self._errors):
                connection.close()

    def _run(self, statement: str, *values: Any) -> list[Any]:
        """The rows of a statement, which is a transaction of its own unless one was begun."""
        try:
            return self._connection.execute(statement, values).fetchall()
        except self._errors as wrong:
            problem = self._problem(wrong)
            with suppress(*self._errors):
                if self._connection.in_transaction:
                    self._connection.rollback()
            raise problem from wrong

    def _touch(self) -> None:
        """Write the days of last use; if that fails, they are no longer written, which does no harm."""
        if not self._touched:
            return
        try:
            self._run("BEGIN IMMEDIATE")
            for row in self._touched:
                self._run("UPDATE reports SET day = ? WHERE id = ?", self._today, row)
            self._run("COMMIT")
            self._touched = []
        except (GradcliError, _Unusable):
            self._touched = None

    def _prune(self) -> None:
        """Remove the rows that were unused for longest, if there are too many or they take too much space."""
        ((rows,),) = self._run("SELECT count(*) FROM reports")
        ((size,),) = self._run("PRAGMA page_size")
        ((pages,),) = self._run("PRAGMA page_count")
        ((free,),) = self._run("PRAGMA freelist_count")
        used = (pages - free) * size
        if rows > self._most_rows or used > self._most_bytes:
            excess = rows - int(PRUNED_TO * min(self._most_rows, rows * self._most_bytes / used))
            for start in range(0, excess, TOUCHED_AFTER):
                count = min(TOUCHED_AFTER, excess - start)
                oldest = "SELECT id FROM reports ORDER BY day, id LIMIT ?"
                self._run(f"DELETE FROM reports WHERE id IN ({oldest})", count)
        newest = "SELECT max(id) FROM failures"
        self._run(f"DELETE FROM failures WHERE id <= ({newest}) - ?", self._most_rows)

    def _problem(self, wrong: BaseException) -> Exception:
        """What an error of SQLite means to the journal."""
        import sqlite3

        code = getattr(wrong, "sqlite_errorcode", None)
        if code is None and isinstance(wrong, sqlite3.Error):
            return _Unusable(f"{type(wrong).__name__}: {wrong}")
        primary = _primary(wrong)
        if primary == sqlite3.SQLITE_FULL or (primary == sqlite3.SQLITE_IOERR and not _has_room(self._folder)):
            return no_room(self._folder)
        unusable = {
            sqlite3.SQLITE_BUSY: "another process holds it",
            sqlite3.SQLITE_LOCKED: "another process holds it",
            sqlite3.SQLITE_READONLY: "it cannot be written to",
            sqlite3.SQLITE_CANTOPEN: "it cannot be opened",
            sqlite3.SQLITE_PERM: "it may not be written to",
            sqlite3.SQLITE_AUTH: "it may not be written to",
            sqlite3.SQLITE_IOERR: str(wrong),
            sqlite3.SQLITE_PROTOCOL: "its file system has no locks that work",
            sqlite3.SQLITE_NOLFS: "its file system has no large files",
        }
        # a damaged header says that the file is of a later SQLite, which may only read it
        damaged = code == sqlite3.SQLITE_READONLY and os.access(os.path.join(self._folder, NAME), os.W_OK)
        if primary in unusable and code != sqlite3.SQLITE_IOERR_SHORT_READ and not damaged:
            return _Unusable(unusable[primary])
        return _Damaged(str(wrong))


def _primary(wrong: BaseException) -> int:
    """The error code of SQLite without its details."""
    return getattr(wrong, "sqlite_errorcode", 0) & 0xFF


def _prepared(folder: str) -> str:
    """The path of the file; it then exists, and only the user may read it and write to its folder.

    Raises _Unusable, or GradcliError GC692 where the disk is full.
    """
    if not folder:
        raise _Unusable("the user has no home folder")
    path = os.path.join(folder, NAME)
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        check_own(os.stat(folder), "the folder")
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0)
        with suppress(FileExistsError):
            os.close(os.open(path, flags, 0o600))
        # one that was there is not opened: closing it would drop the locks that this process may have on it
        state = os.lstat(path)
        if not stat.S_ISREG(state.st_mode):
            raise _Unusable("it is not an ordinary file")
        check_own(state, "it")
    except OSError as wrong:
        if wrong.errno in (ENOSPC, EDQUOT):
            raise no_room(folder) from wrong
        raise _Unusable((wrong.strerror or str(wrong)).lower()) from wrong
    except ValueError as wrong:  # a path with a zero byte
        raise _Unusable(str(wrong)) from wrong
    return path


def check_own(state: os.stat_result, what: str) -> None:
    """Raise _Unusable where a file or folder belongs to another user, or others may write to it."""
    if not private(state):
        own = state.st_uid == os.geteuid()
        raise _Unusable(f"others may write to {what}" if own else f"{what} belongs to another user")


def _set_aside(path: str) -> str:
    """Rename a damaged file to `.bad`, or delete it; says which. Raises _Unusable where neither can be done."""
    try:
        for ending in ("-wal", "-shm"):  # they must not be read into the new file
            with suppress(FileNotFoundError):
                os.unlink(path + ending)
        try:
            os.replace(path, path + ".bad")
        except FileNotFoundError:
            return "another process has replaced it"
        except OSError:
            os.unlink(path)
            return "it was deleted"
        return f"it was set aside as {visible(path, 200)}.bad"
    except OSError as wrong:
        raise _Unusable(f"it is damaged and cannot be replaced: {(wrong.strerror or str(wrong)).lower()}") from wrong


def _has_room(folder: str) -> bool:
    """Whether a few pages can be written: SQLite calls a quota, or room for its shared memory, an I/O error."""
    path = os.path.join(folder, f"{NAME}.{os.getpid()}")
    try:
        with open(path, "wb") as file:
            file.write(bytes(1 << 16))
        return True
    except OSError as wrong:
        return wrong.errno not in (ENOSPC, EDQUOT)
    finally:
        with suppress(OSError):
            os.unlink(path)


def no_room(folder: str) -> GradcliError:
    """The error of a full disk."""
    return error(
        "GC692",
        f"no room left for the journal in {visible(folder, 200)}",
        help="make room there, or name a folder on another disk with --cache or GRADCLI_CACHE",
    )
