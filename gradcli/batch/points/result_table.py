"""The table of results, written in the order of the points; polars or worker processes turn numbers into text."""

from __future__ import annotations

import os
import threading
from collections import deque
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.base.diagnostics import error, visible
from gradcli.batch.points import decimals
from gradcli.batch.points.column_names import entry_names
from gradcli.batch.points.sinks import SINKS, ResultColumns, Sink, TextSink, heading, sink_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


class TextWorkers:
    """Worker processes for text, started fresh: they inherit neither threads nor files."""

    def __init__(self, count: int) -> None:
        futures: Any = import_module("concurrent.futures")
        fresh = import_module("multiprocessing").get_context("spawn")
        self.count = count
        self.workers = futures.ProcessPoolExecutor(count, mp_context=fresh, initializer=_end_with_parent)

    def ask(self, function: Callable[..., Any], *args: Any) -> Any:
        """The answer, as a future."""
        return self.workers.submit(function, *args)

    def close(self) -> None:
        """End the workers; results that are no longer needed are dropped."""
        self.workers.shutdown(wait=True, cancel_futures=True)


def _end_with_parent() -> None:
    """End this worker when its parent is gone: a parent that is killed cannot end it."""
    parent: Any = import_module("multiprocessing").parent_process()

    def watch() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


class Results:
    """The destination of the results: a file, or lines of CSV for `write`. `taken` counts the points so far."""

    def __init__(
        self,
        out: str | None,
        key: str,
        write: Callable[[str], None] | None,
        pool: TextWorkers | None,
        before: int,
        polars: Any = None,
    ) -> None:
        self.out = out
        self.key = key
        self.write = write
        self.pool = pool
        self.polars = polars
        self.taken = self.before = before
        self.sink: Sink | None = None
        self.delimiter: str | None = "," if out is None else None
        self.begun = False
        self.waiting: deque[tuple[Any, int, int]] = deque()

    def add(self, value: Any, slopes: Mapping[str, Any], end: int) -> None:
        """Add the results of a block; the source continues at `end` after it."""
        if not self.begun:
            self._begin(columns_of(value, slopes))
        count = len(value)
        table: Any = np.column_stack([part.reshape(count, -1) for part in (value, *slopes.values())])
        self.taken += count
        if self.delimiter is None:
            self._store(table, count, end)
        elif self.pool is None:
            self._store(decimals.written(table, self.delimiter, self.polars), count, end)
        else:
            self.waiting.append((self.pool.ask(decimals.written, table, self.delimiter), count, end))
            while len(self.waiting) > 2 * self.pool.count:
                self._arrived()

    def _begin(self, columns: ResultColumns) -> None:
        self.begun = True
        if self.out is not None:
            self.delimiter = self._open(self.out, columns).delimiter
        elif self.write is not None:
            self.write(heading(columns, ",").decode().rstrip("\n"))

    def _open(self, out: str, columns: ResultColumns) -> Sink:
        """The file; raises GC690 if another run has continued it meanwhile."""
        sink = sink_of(out, columns, self.key)
        sink.begin()
        if sink.rows != self.before:
            (sink.leave if sink.rows else sink.discard)()
            raise error("GC690", f"cannot write {visible(out, 200)}: another run has written it meanwhile")
        self.sink = sink
        return sink

    def _arrived(self) -> None:
        answer, count, end = self.waiting.popleft()
        self._store(answer.result(), count, end)

    def _store(self, content: Any, count: int, end: int) -> None:
        if self.sink is not None:
            self.sink.write(content, count, end)
        elif self.write is not None:
            self.write(content.decode().rstrip("\n"))

    def finish(self) -> None:
        """Wait for pending results, and move the file to its place."""
        while self.waiting:
            self._arrived()
        if self.sink is None and self.out is not None:  # every row was written by an earlier run
            self._open(self.out, ResultColumns((), {}))
        if self.sink is not None:
            self.sink.finish()
            self.sink = None

    def discard(self) -> None:
        """Remove the unfinished file."""
        if self.sink is not None:
            self.sink.discard()
            self.sink = None

    def leave(self) -> None:
        """Close the unfinished file, and keep it."""
        if self.sink is not None:
            self.sink.leave()
            self.sink = None


def written_before(out: str, key: str) -> tuple[int, int]:
    """The number of rows in an unfinished file of the same question, and the place where its source continues."""
    return sink_of(out, ResultColumns((), {}), key).resume_point()


def unfinished(out: str) -> str | None:
    """The file with the rows of an interrupted run, if there is one."""
    sink = sink_of(out, ResultColumns((), {}), "")
    return sink.part if os.path.exists(sink.record) else None


def is_text(out: str) -> bool:
    """Whether results are written as text there."""
    return issubclass(SINKS.get(os.path.splitext(out)[1].lower(), Sink), TextSink)


def columns_of(value: Any, slopes: Mapping[str, Any]) -> ResultColumns:
    """The columns of results: `value`, then `d_x` for each leaf; raises GC712 where they are complex."""
    names: list[str] = []
    arrays: dict[str, tuple[slice, tuple[int, ...]]] = {}
    for name, part in [("value", value), *((f"d_{leaf}", slope) for leaf, slope in slopes.items())]:
        shape = part.shape[1:]
        entries = entry_names(name, shape)
        arrays[name] = (slice(len(names), len(names) + len(entries)), shape)
        names += entries
    dtype = np.result_type(np.float32, value, *slopes.values())
    if dtype.kind == "c":
        raise error("GC712", "files of results hold real numbers", help="take real(...), imag(...) or abs(...)")
    return ResultColumns(tuple(names), arrays, dtype.newbyteorder("<").str)
