"""The one template for kernels with reductions.

`lanes` threads share a row of a reduction, or a piece of it, in a fixed order. Their results are combined by shuffles
inside a warp, and in shared memory between warps. A phase is one pass over the row; its reductions are available to
all threads of the row in the next one. No addition depends on which thread comes first, and nothing is added in memory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gradcli.execution.devices import words
from gradcli.execution.devices.rows import THREADS, WARP

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gradcli.execution.devices.rows import Rows
    from gradcli.execution.plans.values import Op


class Phase(NamedTuple):
    """One pass over the entries: its lines, and the reductions that it ends with, by their number in the kernel."""

    lines: tuple[str, ...]
    sums: tuple[tuple[int, Op], ...]


def template(before: str, name: str, rows: Rows, parameters: Sequence[str], phases: Sequence[Phase]) -> str:
    """A whole kernel: the lines run for every column of a row, `s0`, `s1` hold what is reduced."""
    lanes, pieces, units = rows.lanes, rows.pieces, rows.rows * rows.pieces
    if rows.beside:
        row, piece = f"unit % {rows.rows}", f"unit / {rows.rows}"
    else:
        row, piece = f"unit / {pieces}" if pieces > 1 else "unit", f"unit % {pieces}"
    stop = str(rows.columns) if pieces == 1 else f"within_((piece + 1) * {rows.piece}, {rows.columns})"
    found = [
        before,
        f'extern "C" __global__ void __launch_bounds__({THREADS}) {name}({", ".join(parameters)}) {{',
    ]
    if lanes > WARP:
        sums = [one for phase in phases for one in phase.sums]
        found += [f"__shared__ {_kind(op)} t{at}[{THREADS // WARP}];" for at, op in sums]
    found += [
        f"const whole lane = threadIdx.x % {lanes};",
        f"const whole step = gridDim.x * {THREADS // lanes};",
        f"for (whole base = blockIdx.x * {THREADS // lanes}; base < {units}; base += step) {{",
        f"const whole unit = base + threadIdx.x / {lanes};",
        f"const whole row = {row if rows.rows > 1 else 0};",
        f"const whole piece = {piece if pieces > 1 else 0};",
        f"const whole stop = {stop};",
    ]
    for number, phase in enumerate(phases):
        found += [f"{_kind(op)} s{at} = {_start(op)};" for at, op in phase.sums]
        found += [
            f"if (unit < {units}) {{",
            f"for (whole k = piece * {rows.piece} + lane; k < stop; k += {lanes}) {{",
            *phase.lines,
            "}",
            "}",
            *_met(rows, phase, units, again=number + 1 < len(phases)),
        ]
    return "\n".join([*found, "}", "}", ""])


def _met(rows: Rows, phase: Phase, units: int, again: bool) -> list[str]:
    """The lines that put together what the threads of a row have; with `again` all of them know it then."""
    lanes, found = rows.lanes, []
    width = min(lanes, WARP)
    while width > 1:
        width //= 2
        for at, op in phase.sums:
            other = f"__shfl_down_sync(0xffffffffu, s{at}, {width}, {min(lanes, WARP)})"
            found += [f"{{ const {_kind(op)} other = {other};", f"s{at} = {combined(op, f's{at}', 'other')}; }}"]
    writes = [f"r{at}[unit] = s{at};" for at, _ in phase.sums]
    if not phase.sums:
        return found
    if lanes <= WARP:
        found += [f"if (unit < {units} && lane == 0) {{", *writes, "}"]
        if again and lanes > 1:
            found += [f"s{at} = __shfl_sync(0xffffffffu, s{at}, 0, {lanes});" for at, _ in phase.sums]
        return found
    found += [f"if (lane % {WARP} == 0) {{", *(f"t{at}[lane / {WARP}] = s{at};" for at, _ in phase.sums), "}"]
    found += ["__syncthreads();", "if (lane == 0) {"]
    for at, op in phase.sums:
        found.append(f"for (int j = 1; j < {THREADS // WARP}; j++) s{at} = {combined(op, f's{at}', f't{at}[j]')};")
    found += writes
    if again:
        found += [f"t{at}[0] = s{at};" for at, _ in phase.sums]
    found += ["}", "__syncthreads();"]
    if again:
        found += [*(f"s{at} = t{at}[0];" for at, _ in phase.sums), "__syncthreads();"]
    return found


def combined(op: Op, one: str, other: str) -> str:
    """Two parts of a reduction as one."""
    return words.FORMS[op.function].format(one, other)


def _kind(op: Op) -> str:
    return words.TYPES[op.out.dtype.name]


def _start(op: Op) -> str:
    """What a reduction begins with."""
    kind: Any = op.out.dtype.type
    return words.number(kind(0) if op.function is np.add else kind(-np.inf if op.function is np.maximum else np.inf))
