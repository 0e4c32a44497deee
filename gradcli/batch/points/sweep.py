"""Values and gradients of one script at every row of a file, block by block in bounded memory.

With polars this process reads and writes text; without it worker processes do while this one computes, and the number
of pending blocks is bounded. An interrupted run continues after the last block that it wrote.
"""

from __future__ import annotations

import os
from collections import deque
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gradcli.base.diagnostics import Diagnostic, GradcliError, error, visible
from gradcli.batch.points import decimals, sources
from gradcli.batch.points.column_names import block_of, missing, used_groups
from gradcli.batch.points.result_table import Results, TextWorkers, is_text, written_before
from gradcli.calculator.questions import prepare
from gradcli.calculator.repeated.compiled import CompiledScript
from gradcli.language.source import Source as Script
from gradcli.lowering import missing_values, unused_values
from gradcli.lowering.points import read_point

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from gradcli.language.limits import Limits

    Blocks = Iterator[tuple[dict[str, Any], int, int]]  # leaves, the first row or line, where the source goes on
    Answers = Iterator[tuple[Any, dict[str, Any], int]]  # values, gradients, where the source goes on

ENTRIES = 1 << 17  # numbers of a block
MOST_ROWS = 1 << 16
FEW = 3  # names in a note
WORTH_HELP = 8 << 20  # bytes of text, below which importing polars or starting processes costs more than it saves


class Summary(NamedTuple):
    """The number of points, how many of them were computed before this run, and the diagnostics."""

    points: int
    resumed: int
    path: str | None
    diagnostics: tuple[Diagnostic, ...]


def answer_points(
    script: str | Script,
    path: str,
    out: str | Callable[[str], None] | None = None,
    *,
    at: Mapping[str, Any] | Sequence[str] = (),
    gradient: bool = True,
    jobs: int | None = None,
    progress: Callable[[int, int, str], None] | None = None,
    cluster: str | None = None,
    **options: Any,
) -> Summary:
    """The value, and the gradient, of a script at every row of a file.

    Results go to the file `out`, or as lines of CSV to the function `out`.

    `at` gives leaves that all points share; `cluster` is the address of a Dask scheduler whose workers compute the
    blocks, while this process reads and writes. `options` are those of `CompiledScript`.

    Raises GradcliError for a script, a file or a row that cannot be read: the message names line and column, and the
    results so far are kept in the unfinished file next to `out`.
    """
    source = script if isinstance(script, Script) else Script(script)
    function = CompiledScript(source, **options)
    limits, file = function.limits, None if callable(out) else out
    if function.dtype == "complex128":
        raise error("GC712", "files of points hold real numbers", help="use --dtype float64")
    point, notes = read_point(at, limits)
    table = sources.opened(path, lambda: unnamed_leaves(source, point, limits))
    if file is not None and os.path.exists(file) and os.path.samefile(file, table.path):
        raise error("GC690", f"{visible(file)} holds the points: results would take their place", help="choose another")
    shapes = {group.name: np.zeros(group.shape) for group in table.groups if group.name not in point}
    lowered = prepare(source, {**shapes, **point}, function.wrt, limits)
    leaves = list(lowered.program.leaves)
    groups = used_groups(path, [group for group in table.groups if group.name not in point], leaves)
    if errors := missing_values(lowered, {**shapes, **point}):
        raise GradcliError(*missing(path, table.groups, errors))
    notes = (*notes, *unused_values(lowered, point), *unread(path, [name for name in shapes if name not in leaves]))
    table.only([group.name for group in groups])
    shared = {name: value for name, value in point.items() if name in leaves}
    width = max(1, sum(int(np.prod(group.shape, dtype=int)) for group in groups))
    rows = max(64, min(MOST_ROWS, ENTRIES // width))

    def answers(block: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
        leaves = {group.name: block[group.name] for group in groups}
        return function.at_points(shared=tuple(shared), gradient=gradient, **leaves, **shared)

    def answers_there(blocks: Blocks) -> Answers:
        from gradcli.batch.workers.cluster import answer_on

        question = {"key": key, "options": options, "gradient": gradient, "shared": shared}
        pairs = (({group.name: block[group.name] for group in groups}, end) for block, _, end in blocks)
        return answer_on(str(cluster), source, question, pairs)

    def answers_here(blocks: Blocks) -> Answers:
        return ((*answers(block), end) for block, _, end in blocks)

    key = question_key(source, table, at, function.wrt, function.dtype, gradient, function.relax)
    work = BlockSweep(table, answers_here if cluster is None else answers_there, rows, jobs, progress)
    return work.run(file, key, out if callable(out) else None, tuple(notes))


def unread(path: str, names: Sequence[str]) -> Iterator[Diagnostic]:
    """A note on columns that belong to no leaf of the script."""
    if names:
        phrase = ", ".join([f"`{visible(name)}`" for name in names[:FEW]])
        more = f" and {len(names) - FEW:,} more columns" if len(names) > FEW else ""
        yield Diagnostic("GC211", f"the script does not use {phrase}{more} of {visible(path)}", severity="note")


def unnamed_leaves(source: Script, point: Mapping[str, Any], limits: Limits) -> list[str]:
    """The leaves for columns without names: those without a value, else all that are not const."""
    lowered = prepare(source, point, None, limits)
    program = lowered.program
    open_ones = [name for name in program.leaves if name not in lowered.values]
    return open_ones or [name for name, leaf in program.leaves.items() if not leaf.const and name not in point]


def question_key(source: Script, table: sources.PointSource, *rest: Any) -> str:
    """A key of the question; an unfinished file is continued only if it has the same key."""
    parts = repr((source.text, os.path.abspath(table.path), table.size(), rest))
    return blake2b(parts.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


class BlockSweep:
    """The loop over blocks."""

    def __init__(
        self,
        table: sources.PointSource,
        answers: Callable[[Blocks], Answers],
        rows: int,
        jobs: int | None,
        progress: Callable[[int, int, str], None] | None,
    ) -> None:
        self.table = table
        self.answers = answers
        self.rows = rows
        self.progress = progress
        self.bytes = table.size()[0]
        self.jobs = jobs or os.cpu_count() or 1
        self.pool: TextWorkers | None = None
        self.polars: Any = None
        self.gaps = 0
        self.gap: tuple[int, str] | None = None  # line or row, and what stands there

    def run(
        self, out: str | None, key: str, write: Callable[[str], None] | None, notes: tuple[Diagnostic, ...]
    ) -> Summary:
        """Compute the results of all blocks."""
        skip, offset = (0, 0) if out is None else written_before(out, key)
        self._hire(out)
        results = Results(out, key, write, self.pool, skip, self.polars)
        try:
            for value, slopes, end in self.answers(self.blocks(skip, offset)):
                results.add(value, slopes, end)
                self._report(results.taken, end)
            if not results.taken:
                raise error("GC614", f"{visible(self.table.shown_path)} holds no point", help="give it a row per point")
            results.finish()
        except GradcliError:  # the points are wrong: there is nothing to go on with
            results.discard()
            raise
        finally:
            results.leave()
            if self.pool is not None:
                self.pool.close()
        return Summary(results.taken, skip, out, (*notes, *self._gap_note()))

    def _hire(self, out: str | None) -> None:
        """Polars or else worker processes, if there is enough text."""
        text = isinstance(self.table, sources.TextSource) or out is None or is_text(out)
        if text and self.bytes > WORTH_HELP:
            self.polars = decimals.text_library()
            if self.polars is None and self.jobs > 1:
                self.pool = TextWorkers(self.jobs)

    def blocks(self, skip: int, offset: int) -> Iterator[tuple[dict[str, Any], int, int]]:
        """Blocks of leaves, the number of the first row or line, and where the source goes on behind each."""
        for chunk, leaves in self._parsed(self.table.chunks(self.rows, skip, offset)):
            self._look(leaves, chunk.line)
            yield leaves, chunk.line, chunk.offset

    def _parsed(self, chunks: Iterator[sources.Chunk]) -> Iterator[tuple[sources.Chunk, dict[str, Any]]]:
        table = self.table
        if not isinstance(table, sources.TextSource):
            for chunk in chunks:
                assert chunk.leaves is not None
                yield chunk, chunk.leaves
            return
        waiting: deque[tuple[sources.Chunk, Any]] = deque()
        asked, wanted = (table.delimiter, table.width, table.shown_path), table.wanted
        for chunk in chunks:
            if self.pool is None:
                numbers = decimals.parsed(chunk.text, *asked, chunk.line, wanted, self.polars)
                yield chunk, block_of(table.groups, numbers)
                continue
            waiting.append((chunk, self.pool.ask(decimals.parsed_or_problem, chunk.text, *asked, chunk.line, wanted)))
            while len(waiting) > 2 * self.pool.count:
                yield self._arrived(*waiting.popleft())
        while waiting:
            yield self._arrived(*waiting.popleft())

    def _arrived(self, chunk: sources.Chunk, answer: Any) -> tuple[sources.Chunk, dict[str, Any]]:
        table = answer.result()
        if isinstance(table, Diagnostic):
            raise GradcliError(table)
        return chunk, block_of(self.table.groups, table)

    def _look(self, leaves: Mapping[str, Any], line: int) -> None:
        """Count what is not finite, and remember the first place."""
        for name, values in leaves.items():
            odd = ~np.isfinite(values)
            if odd.any():
                self.gaps += int(odd.sum())
                row, *index = np.unravel_index(np.argmax(odd), odd.shape)  # the first one
                if self.gap is None or line + row < self.gap[0]:
                    self.gap = (line + int(row), self._cell(name, values.shape[1:], index))

    def _cell(self, name: str, shape: Sequence[int], index: Sequence[Any]) -> str:
        """The entry of a leaf as its column is named, behind the number of that column in a text."""
        phrase = f"{name}[{','.join(map(str, index))}]" if shape else name
        if not isinstance(self.table, sources.TextSource):
            return phrase
        entry = int(np.ravel_multi_index(tuple(index), tuple(shape))) if shape else 0
        return f"column {self.table.column(name, entry)}: {phrase}"

    def _gap_note(self) -> Iterator[Diagnostic]:
        if self.gap is not None:
            place, cell = self.gap
            where = f":{place}, " if isinstance(self.table, sources.TextSource) else f", row {place}: "
            more = f" ({self.gaps:,} such values)" if self.gaps > 1 else ""
            yield Diagnostic(
                "GC619",
                f"{visible(self.table.shown_path)}{where}{visible(cell)} is not a finite number{more}",
                severity="note",
            )

    def _report(self, done: int, offset: int) -> None:
        if self.progress is not None:
            total = self.table.count
            if total is not None:
                self.progress(done, total, "points")
            else:
                self.progress(offset >> 10, max(self.bytes >> 10, 1), "KiB")
