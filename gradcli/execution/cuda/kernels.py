"""Kernels: the text of each group, and what it reads and writes.

A group without reductions is a loop over its entries. One with reductions is a loop over rows, with a second kernel
where rows are cut into pieces. `lanes` threads share a row, or a piece of it, in a fixed order: which thread comes
first changes no addition, and nothing is added in memory. Lengths depend on shapes alone, so the order of additions is
the same on every GPU.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gradcli.execution.cuda import emit
from gradcli.execution.cuda.emit import FIRST, EntryPlace, KernelBody
from gradcli.execution.cuda.fuse import FusionGroup

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from gradcli.execution.compiler.ir import Op, PlanValue
    from gradcli.execution.cuda.fuse import Groups, Runs

THREADS, WARP = 256, 32  # of a block; threads that shuffle
GRAIN = 1 << 12  # entries of a row that one block adds up, at least
FEW_ROWS = 1 << 10  # rows, from which a block may take longer pieces
LONGEST = 1 << 16
COLUMNS = 32  # rows that lie side by side, from which each thread takes one
SPREAD, SHORT, LONG = 1 << 18, 32, 512  # threads that are wanted for columns; entries of a piece then
SHARED = 1024  # entries of a row up to which one warp takes it
MOST_BLOCKS = 1 << 16
MOST_PIECES = 1 << 13  # of a long row: the second kernel adds up what they leave
UNDER_WAY = 16  # bytes of an array that a thread of a reduction loads at once: more iterations need too many registers
PER_THREAD = 2  # entries that a thread of a kernel without reductions takes


class RowThreads(NamedTuple):
    """How threads go through rows: lanes of a row, columns of a piece, whether rows lie side by side."""

    rows: int
    columns: int
    lanes: int
    piece: int
    beside: bool

    @property
    def pieces(self) -> int:
        return -(-self.columns // self.piece)

    @property
    def blocks(self) -> int:
        return min(-(-self.rows * self.pieces * self.lanes // THREADS), MOST_BLOCKS)


def rows_of(runs: Runs) -> RowThreads:
    """How many threads share a row of a reduction: none where rows lie side by side, a warp, or a block."""
    rows, columns = runs.rows, runs.columns
    if not runs.reduced[-1] and runs.lengths[-1] >= COLUMNS:
        piece = min(max(rows * columns // SPREAD, SHORT), LONG)
        return RowThreads(rows, columns, 1, min(piece, columns), True)
    if columns <= SHARED:
        lanes = 1
        while lanes < min(columns, WARP):
            lanes *= 2
        return RowThreads(rows, columns, lanes, columns, False)
    piece = min(LONGEST, GRAIN * max(1, rows // FEW_ROWS, columns // (GRAIN * MOST_PIECES)))
    return RowThreads(rows, columns, THREADS, min(piece, columns), False)


def rest_of(first: RowThreads) -> RowThreads:
    """How the pieces that the first kernel leaves are added up."""
    lanes = THREADS if first.pieces > SHARED else WARP
    return RowThreads(first.rows, first.pieces, lanes, first.pieces, False)


def entry_of(runs: Runs) -> str:
    """The line that finds the entry `e` at a row and a column of a reduction."""
    if runs.reduced[-1] and len(runs.lengths) <= 2:
        return f"const whole e = {f'row * {runs.columns} + ' if runs.rows > 1 else ''}k;"
    if len(runs.lengths) == 2:
        return f"const whole e = k * {runs.rows} + row;"
    if len(runs.lengths) == 1:
        return "const whole e = row;"
    parts = []
    for at, (n, gone) in enumerate(zip(runs.lengths, runs.reduced, strict=True)):
        later = zip(runs.lengths[at + 1 :], runs.reduced[at + 1 :], strict=True)
        inner = prod([m for m, other in later if other == gone])
        word = "k" if gone else "row"
        word = word if inner == 1 else f"{word} / {inner}"
        word = f"{word} % {n}" if gone in runs.reduced[:at] else word
        stride = prod(runs.lengths[at + 1 :])
        parts.append(f"({word}) * {stride}" if stride > 1 else f"({word})")
    return f"const whole e = {' + '.join(parts)};"


def entries_template(before: str, name: str, parameters: Sequence[str], lines: Sequence[str]) -> str:
    """A kernel without reductions: the lines run for every entry `e` before `count`."""
    return "\n".join([
        before,
        f'extern "C" __global__ void __launch_bounds__({THREADS}) {name}({", ".join(parameters)}) {{',
        f"const whole step = (whole)gridDim.x * {THREADS};",
        f"#pragma unroll {PER_THREAD}",
        f"for (whole e = (whole)blockIdx.x * {THREADS} + threadIdx.x; e < count; e += step) {{",
        *lines,
        "}",
        "}",
        "",
    ])  # fmt: skip


def template(
    before: str, name: str, rows: RowThreads, parameters: Sequence[str], lines: Sequence[str], sums: Sequence[Op]
) -> str:
    """A kernel with reductions: the lines run for every column of a row, `s0`, `s1` hold what is reduced."""
    lanes, pieces, units = rows.lanes, rows.pieces, rows.rows * rows.pieces
    if rows.beside:
        row, piece = f"unit % {rows.rows}", f"unit / {rows.rows}"
    else:
        row, piece = f"unit / {pieces}" if pieces > 1 else "unit", f"unit % {pieces}"
    stop = str(rows.columns) if pieces == 1 else f"within_((piece + 1) * {rows.piece}, {rows.columns})"
    shared = enumerate(sums) if lanes > WARP else ()
    widest = max(op.out.dtype.itemsize for op in sums)
    return "\n".join([
        before,
        f'extern "C" __global__ void __launch_bounds__({THREADS}) {name}({", ".join(parameters)}) {{',
        *(f"__shared__ {_kind(op)} t{at}[{THREADS // WARP}];" for at, op in shared),
        f"const whole lane = threadIdx.x % {lanes};",
        f"const whole step = gridDim.x * {THREADS // lanes};",
        f"for (whole base = blockIdx.x * {THREADS // lanes}; base < {units}; base += step) {{",
        f"const whole unit = base + threadIdx.x / {lanes};",
        f"const whole row = {row if rows.rows > 1 else 0};",
        f"const whole piece = {piece if pieces > 1 else 0};",
        f"const whole stop = {stop};",
        *(f"{_kind(op)} s{at} = {_start(op)};" for at, op in enumerate(sums)),
        f"if (unit < {units}) {{",
        f"#pragma unroll {max(UNDER_WAY // widest, 1)}",
        f"for (whole k = piece * {rows.piece} + lane; k < stop; k += {lanes}) {{",
        *lines,
        "}",
        "}",
        *_combine_lanes(lanes, sums, units),
        "}",
        "}",
        "",
    ])  # fmt: skip


def _combine_lanes(lanes: int, sums: Sequence[Op], units: int) -> list[str]:
    """The lines that put together what the threads of a row have."""
    lines = []
    width = min(lanes, WARP)
    while width > 1:
        width //= 2
        for at, op in enumerate(sums):
            other = f"__shfl_down_sync(0xffffffffu, s{at}, {width}, {min(lanes, WARP)})"
            lines += [f"{{ const {_kind(op)} other = {other};", f"s{at} = {combine(op, f's{at}', 'other')}; }}"]
    writes = [f"r{at}[unit] = s{at};" for at in range(len(sums))]
    if lanes <= WARP:
        return [*lines, f"if (unit < {units} && lane == 0) {{", *writes, "}"]
    lines += [f"if (lane % {WARP} == 0) {{", *(f"t{at}[lane / {WARP}] = s{at};" for at in range(len(sums))), "}"]
    lines += ["__syncthreads();", "if (lane == 0) {"]
    for at, op in enumerate(sums):
        lines.append(f"for (int j = 1; j < {THREADS // WARP}; j++) s{at} = {combine(op, f's{at}', f't{at}[j]')};")
    return [*lines, *writes, "}", "__syncthreads();"]


def combine(op: Op, first: str, second: str) -> str:
    """Two parts of a reduction as one."""
    return emit.FORMS[op.function].format(first, second)


def _kind(op: Op) -> str:
    return emit.TYPES[op.out.dtype.name]


def _start(op: Op) -> str:
    """What a reduction begins with."""
    kind: Any = op.out.dtype.type
    return emit.number(kind(0) if op.function is np.add else kind(-np.inf if op.function is np.maximum else np.inf))


LARGEST = (1 << 31) - (1 << 25)  # entries that an int counts, with room for a step of all threads


class Kernel(NamedTuple):
    """One kernel: its name and text, and what it reads and writes.

    The last parameter of a kernel without reductions is the number of its entries, which may count points.
    """

    name: str
    text: str
    entries: int
    arrays: tuple[PlanValue, ...]
    numbers: tuple[PlanValue, ...]
    values: tuple[PlanValue, ...]
    sums: tuple[Op, ...]
    whole: Any  # the type of the number of entries
    rows: RowThreads | None = None  # of a reduction
    rest: Kernel | None = None  # the second kernel, over the pieces of the first

    @property
    def pieces(self) -> int:
        """In how many pieces a row is taken."""
        return 1 if self.rows is None else self.rows.pieces

    def blocks(self, count: int | None = None) -> int:
        """How many blocks of threads run it, for `count` points if there are any."""
        if self.rows is not None:
            return self.rows.blocks
        entries = self.entries if count is None else count
        return min(max(-(-entries // (THREADS * PER_THREAD)), 1), MOST_BLOCKS)


class KernelWriter:
    """Kernels of the groups of a program; `moving` names the inputs that have an entry for each point."""

    def __init__(self, groups: Groups, moving: Collection[str] | None = None) -> None:
        self.groups = groups
        self.moving = moving
        longest = max([value.size for op in groups.ops for value in (op.out, *op.args)], default=1)
        self.whole = np.dtype(np.int32 if moving is None and longest < LARGEST else np.int64)
        self.before = (
            f"typedef {emit.TYPES[self.whole.name]} whole;\n"
            "__device__ __forceinline__ whole within_(whole x, whole last)"
            f" {{ return x < 0 ? 0 : x > last ? last : x; }}{emit.functions(groups.dtype)}"
        )

    def kernel(self, group: FusionGroup, name: str) -> Kernel:
        """The kernel of a group."""
        groups = self.groups
        body = KernelBody(
            group.entries,
            lambda value: groups.loaded(value, group.level),
            lambda value: value.serial in groups.pairs,
            self.moving,
        )
        words = [body.word(value, FIRST if value.size == 1 else EntryPlace(0)) for value in group.values]
        terms = [body.word(op.args[0], FIRST if op.args[0].size == 1 else EntryPlace(0)) for op in group.sums]
        lines = [] if group.runs is None else [entry_of(_full(group))]
        lines += body.lines
        for at, (value, word) in enumerate(zip(group.values, words, strict=True)):
            guard = f"if (e < {value.size}) " if value.size < group.entries else ""
            lines.append(f"{guard}o{at}[e] = {word};")
        for at, (op, term) in enumerate(zip(group.sums, terms, strict=True)):
            guard = f"if (e < {op.args[0].size}) " if op.args[0].size < group.entries else ""
            lines.append(f"{guard}s{at} = {combine(op, f's{at}', term)};")
        kernel = Kernel(
            name,
            "",
            group.entries,
            tuple([value for _, value in body.arrays.values()]),
            tuple([value for _, value in body.numbers.values()]),
            group.values,
            group.sums,
            self.whole.type,
        )
        if group.runs is not None:
            return self._reducing(kernel, _full(group), lines)
        parameters = [*_parameters(kernel), f"const {emit.TYPES[self.whole.name]} count"]
        return kernel._replace(text=entries_template(self.before, name, parameters, lines))

    def _reducing(self, plain: Kernel, runs: Runs, lines: Sequence[str]) -> Kernel:
        """The text of a kernel with reductions, and the kernel that puts its pieces together."""
        rows = rows_of(runs)
        results = _pointers("", "r", [op.out for op in plain.sums])
        text = template(self.before, plain.name, rows, [*_parameters(plain), *results], lines, plain.sums)
        rest = None
        if rows.pieces > 1:
            place = f"k * {rows.rows} + row" if rows.beside else f"row * {rows.pieces} + k"
            lines = [f"s{at} = {combine(op, f's{at}', f'a{at}[{place}]')};" for at, op in enumerate(plain.sums)]
            reads = _pointers("const ", "a", [op.out for op in plain.sums])
            name, last = f"{plain.name}_rest", rest_of(rows)
            second = template(self.before, name, last, [*reads, *results], lines, plain.sums)
            rest = Kernel(name, second, plain.entries, (), (), (), plain.sums, plain.whole, last)
        return plain._replace(text=text, rows=rows, rest=rest)


def _pointers(kind: str, name: str, values: Sequence[PlanValue]) -> list[str]:
    """Parameters that are arrays."""
    return [f"{kind}{emit.TYPES[value.dtype.name]}* __restrict__ {name}{at}" for at, value in enumerate(values)]


def _parameters(kernel: Kernel) -> list[str]:
    """The parameters of a kernel but for what it reduces: arrays and numbers that it reads, arrays that it writes."""
    numbers = [f"const {emit.TYPES[value.dtype.name]} n{at}" for at, value in enumerate(kernel.numbers)]
    return [*_pointers("const ", "a", kernel.arrays), *numbers, *_pointers("", "o", kernel.values)]


def _full(group: FusionGroup) -> Runs:
    """How a group runs: as long as the longest of its values, where it reduces all entries."""
    assert group.runs is not None
    whole = group.runs.reduced == (True,)
    return group.runs._replace(lengths=(group.entries,)) if whole else group.runs
