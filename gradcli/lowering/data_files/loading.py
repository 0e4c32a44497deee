"""Loads arrays of floats from data files, without trusting their content.

Only ordinary files are opened, never pipes, devices or folders. The size in a header is compared with the size of
the file, and with the limit on elements, before memory is allocated. Objects and pickles are never read.
"""

from __future__ import annotations

import os
import stat
from contextlib import contextmanager
from contextvars import ContextVar
from hashlib import blake2b
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

from gradcli.base.diagnostics import Diagnostic, GradcliError, did_you_mean, error, visible

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from typing import BinaryIO

    from gradcli.base.diagnostics import Span

    Columns = int | slice | Sequence[int] | None
    Copy = Mapping[str, Any]

ELEMENTS = 200_000_000
READERS = {
    ".npy": ("numpy_files", "read_npy"),
    ".npz": ("numpy_files", "read_npz"),
    ".csv": ("text_files", "read_csv"),
    ".tsv": ("text_files", "read_tsv"),
    ".json": ("text_files", "read_json"),
}


class Loaded(NamedTuple):
    """An array, and notes on its entries."""

    array: Any
    notes: tuple[Diagnostic, ...]


class Request(NamedTuple):
    """A request to a reader: the path as written, the wanted columns, the array's name, the most elements."""

    path: str
    columns: Columns
    name: str | None
    elements: int


def load(
    path: str,
    base: str | None = None,
    *,
    column: int | None = None,
    columns: Columns = None,
    name: str | None = None,
    limits: Any = None,
    span: Span | None = None,
) -> Loaded:
    """The numbers of a .csv, .tsv, .npy, .npz or .json file as a float64 (or complex128) array, and notes on them.

    `base` is the script (or its folder): the path is then relative to that folder and may not leave it.
    Without `base` any path is read. `column` chooses one column as a vector, `columns` several as a matrix; a
    table of one column is a vector. `name` chooses an array of an .npz file that contains several. A note GC619
    names the cells of a table that are NaN or infinite. Raises GradcliError GC611 to GC618, or GC507 beyond
    `limits.elements`.
    """
    record = _RECORD.get()
    copy = _COPIES.get().get((path, base))
    if record is not None:
        record.look(path, base, copy)
    try:
        place = allowed(path, base) if copy is None else copied(copy)
        reader = reader_of(path)
        request = Request(
            path, columns if column is None else column, name, ELEMENTS if limits is None else limits.elements
        )
        with ordinary_file(place, path) if copy is None else file_of(copy) as file:
            return reader(file, request)
    except GradcliError as problem:
        if span is None:
            raise
        raise GradcliError(*(placed(diagnostic, span) for diagnostic in problem.diagnostics)) from problem
    except OSError as wrong:
        raise unreadable(path, (wrong.strerror or str(wrong)).lower(), span) from wrong
    except MemoryError as full:
        raise error("GC506", f"not enough memory for {visible(path)}", span) from full
    finally:
        if record is not None and copy is None:
            record.look(path, base)  # once more: it may have changed while it was read


def load_array(path: str, base: str | None = None, **options: Any) -> Any:
    """The array alone; see `load`."""
    return load(path, base, **options).array


def placed(problem: Diagnostic, span: Span) -> Diagnostic:
    """The diagnostic at the place in the script that loads the file."""
    return Diagnostic(problem.code, problem.message, span, problem.labels, problem.help, problem.severity)


def allowed(path: str, base: str | None) -> str:
    """The real path of a file, links resolved; raises GC612 if it is outside the folder of the script."""
    try:
        named = b"\0" not in os.fsencode(path)
    except UnicodeEncodeError:
        named = False
    if not named:
        raise unreadable(path, "a path cannot hold such characters")
    if base is None:
        return os.path.realpath(path)
    folder = os.path.realpath(folder_of(base))
    place = os.path.realpath(os.path.join(folder, path))
    if os.path.isabs(path) or not place.startswith(os.path.join(folder, "")):
        raise error(
            "GC612",
            f"load may not leave the folder of the script: {visible(path)}",
            help="move the file there, or pass the data from outside: --at X=@FILE",
        )
    return place


def folder_of(base: str) -> str:
    """The folder that the paths in a script are relative to; `base` is the script or its folder."""
    return base if os.path.isdir(base) else os.path.dirname(base) or "."


def reader_of(path: str) -> Callable[[BinaryIO, Request], Loaded]:
    """The function that reads files with the ending of this path; raises GC613 for an unknown ending."""
    ending = os.path.splitext(path)[1].lower()
    if ending not in READERS:
        guess = did_you_mean(ending, READERS)
        raise error(
            "GC613",
            f"data files end in {', '.join(READERS)}, not in {visible(ending) or 'nothing'}: {visible(path)}",
            help=f"did you mean {guess}?" if guess else None,
        )
    module, function = READERS[ending]
    reader: Callable[[BinaryIO, Request], Loaded] = getattr(
        import_module(f"gradcli.lowering.data_files.{module}"), function
    )
    return reader


def ordinary_file(place: str, path: str) -> BinaryIO:
    """The file, open for reading; raises GC611 for anything but an ordinary file.

    Its type is checked before it is opened, because opening a device may have effects, and again afterwards, because
    it may have been replaced in between.
    """
    check_ordinary(os.stat(place).st_mode, path)
    flags = os.O_RDONLY | sum(getattr(os, flag, 0) for flag in ("O_NONBLOCK", "O_NOFOLLOW", "O_CLOEXEC", "O_BINARY"))
    file = os.fdopen(os.open(place, flags), "rb")
    try:
        check_ordinary(os.fstat(file.fileno()).st_mode, path)
    except GradcliError:
        file.close()
        raise
    return file


def check_ordinary(mode: int, path: str) -> None:
    """Raise GC611 unless the mode is that of an ordinary file."""
    if not stat.S_ISREG(mode):
        kinds = ((stat.S_ISDIR, "a folder"), (stat.S_ISFIFO, "a pipe"), (stat.S_ISSOCK, "a socket"))
        what = next((name for test, name in kinds if test(mode)), "a device")
        raise unreadable(path, f"it is {what}, not a file")


def unreadable(path: str, reason: str, span: Span | None = None) -> GradcliError:
    return error("GC611", f"cannot read {visible(path)}: {reason}", span)


# --- which files were opened ------------------------------------------------------------------------------

UNREADABLE = ""  # the state of a file that is there and cannot be read; it counts as changed at every comparison

BLOCK = 1 << 20  # bytes that are read at once


@contextmanager
def recorded() -> Iterator[list[list[str | None]]]:
    """Record the data files that `load` opens or looks for inside the context: [path, state], see `state_of`.

    A path is relative to the working directory if the script's path is. A file that changes while it is read is
    recorded with both states. Each thread records its own files.
    """
    record = OpenedFiles()
    token = _RECORD.set(record)
    try:
        yield record.opened
    finally:
        _RECORD.reset(token)


class OpenedFiles:
    """The data files that were opened or looked for."""

    def __init__(self) -> None:
        self.opened: list[list[str | None]] = []
        self._signatures: dict[str, Any] = {}

    def look(self, path: str, base: str | None, copy: Copy | None = None) -> None:
        """Record the state of a file, unless it is the last one recorded; a copy brings its own state."""
        if copy is not None:
            self.opened.extend(state for state in copy["opened"] if state not in self.opened)
            return
        try:
            allowed(path, base)
        except GradcliError:  # also a link out of the folder, which may be another one tomorrow
            self.opened.append([path, UNREADABLE])
            return
        named = path if base is None else os.path.join(folder_of(base), path)
        signature = signature_of(named)
        if named not in self._signatures or self._signatures[named] != signature:
            self._signatures[named] = signature
            self.opened.append([named, state_of(named)])


_RECORD: ContextVar[OpenedFiles | None] = ContextVar("record", default=None)


def signature_of(path: str) -> tuple[int, int, int, int] | None:
    """Inode, size and times of the last change of a file, which cheaply show a change; None without a file.

    Two times: one may be set back, such as by an archive that is unpacked. Of the other no program knows how.
    """
    try:
        state = os.stat(path)
    except (OSError, ValueError):  # ValueError: no path has such characters
        return None
    return state.st_ino, state.st_size, state.st_mtime_ns, state.st_ctime_ns


def state_of(path: str) -> str | None:
    """A digest of a file's content; None if there is no such file, UNREADABLE for any other failure."""
    try:
        hashed = blake2b(digest_size=32)
        with ordinary_file(os.path.realpath(path), path) as file:
            while block := file.read(BLOCK):
                hashed.update(block)
        return hashed.hexdigest()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, GradcliError):
        return UNREADABLE


# --- files for a script that is run on another machine ----------------------------------------------------


def copy_of(path: str, base: str | None) -> Copy:
    """A data file as plain data, for `load` on another machine: its bytes, or the error of opening it here."""
    record = OpenedFiles()
    record.look(path, base)
    content, problem = None, None
    try:
        place = allowed(path, base)
        reader_of(path)
        with ordinary_file(place, path) as file:
            content = file.read().decode("latin-1")
    except GradcliError as wrong:
        problem = [wrong.diagnostics[0].code, wrong.diagnostics[0].message, wrong.diagnostics[0].help]
    except OSError as wrong:
        problem = ["GC611", unreadable(path, (wrong.strerror or str(wrong)).lower()).diagnostics[0].message, None]
    return {"path": path, "base": base, "content": content, "problem": problem, "opened": record.opened}


@contextmanager
def using(copies: Iterable[Copy]) -> Iterator[None]:
    """Let `load` read these copies (`copy_of`) instead of the files of the same names on this machine."""
    token = _COPIES.set({(copy["path"], copy["base"]): copy for copy in copies})
    try:
        yield
    finally:
        _COPIES.reset(token)


_COPIES: ContextVar[Mapping[tuple[str, str | None], Copy]] = ContextVar("copies", default={})  # noqa: B039


def copied(copy: Copy) -> str:
    """The path of a copy; if it has no content, raises the error of opening the file."""
    if copy["problem"] is not None:
        code, message, hint = copy["problem"]
        raise error(code, message, help=hint)
    return str(copy["path"])


def file_of(copy: Copy) -> Any:
    """The content of a copy as a file on disk, so that readers can check its size."""
    file = import_module("tempfile").TemporaryFile()
    file.write(copy["content"].encode("latin-1"))
    file.seek(0)
    return file


# --- what the readers share -------------------------------------------------------------------------------


def damaged(path: str, reason: str, help: str | None = None) -> GradcliError:
    """The error GC614, for a damaged file."""
    return error("GC614", f"{visible(path)} is damaged: {reason}", help=help)


def too_large(path: str, reason: str) -> GradcliError:
    """The error GC507, for a file that is too large."""
    return error("GC507", f"{visible(path)} is too large: {reason}", help="raise it with --limit elements=...")


def check_count(path: str, count: int, limit: int) -> None:
    """Raise GC507 if an array has more elements than allowed."""
    if count > limit:
        raise too_large(path, f"{count:,} elements, the limit is {limit:,}")


def chosen(request: Request, count: int) -> Sequence[int] | int:
    """The positions of the wanted columns among `count`, or the one position; raises GC618 if one does not exist."""
    wanted = request.columns
    if wanted is None:
        return range(count)
    if isinstance(wanted, slice):
        columns = range(count)[wanted]
        if not columns:
            raise no_column(request, f"{wanted.start}:{wanted.stop} selects none", count)
        return columns
    if isinstance(wanted, int):
        return position(request, wanted, count)
    return [position(request, column, count) for column in wanted]


def position(request: Request, wanted: int, count: int) -> int:
    """The position of one column, counted from the start; raises GC618 if it does not exist."""
    if not -count <= wanted < count:
        raise no_column(request, f"column {wanted} does not exist", count)
    return wanted % count


def no_column(request: Request, reason: str, count: int) -> GradcliError:
    columns = f"{count} columns" if count != 1 else "one column"
    return error(
        "GC618",
        f"{visible(request.path)} has {columns}: {reason}",
        help="columns count from 0, as in columns=0:2",
    )


def finished(request: Request, array: Any) -> Loaded:
    """A numeric array as floats, with the wanted columns only."""
    if request.columns is not None:
        if array.ndim < 2:
            raise error(
                "GC618",
                f"{visible(request.path)} holds no table: its shape is {list(array.shape)}",
                help="leave out columns",
            )
        columns = chosen(request, array.shape[-1])
        array = array[..., columns if isinstance(columns, int) else list(columns)]
    kind = "complex128" if array.dtype.kind == "c" else "float64"
    return Loaded(array.astype(kind, order="C", copy=False), ())
