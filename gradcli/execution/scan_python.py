"""Loops over single numbers as Python code: one `for` with an expression for each step, printed once for a loop.

The code takes the carries, an iterator over the rows of the turns, and the fixed values; it gives the carries after the
last turn and appends what is stacked to a list. Turns run in blocks, so that only a block's rows and stacked values are
Python objects at any time. The steps are printed by the operations' own `impl`, as `expressions` says.
"""

from __future__ import annotations

from itertools import repeat

from gradcli.execution.expressions import LONGEST, Printer, Word, step, text_of
from gradcli.execution.generated import function
from gradcli.execution.namespaces import Unavailable
from gradcli.graph.arrays import nearest_float
from gradcli.graph.node import CONSTANT, LEAF

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from gradcli.execution.scan import Scan
    from gradcli.graph.node import Node

MOST_STEPS = 2_000  # of a turn: compiling takes 10 us for each
BLOCK = 4_096  # turns whose rows and stacked values are Python objects at once


class PrintedTurns:
    """The code of a scan over single numbers, called with floats or with arrays of NumPy."""

    __slots__ = ("_run", "fixed", "rows", "scan", "stacked")

    def __init__(
        self, scan: Scan, run: Callable[..., Any], rows: list[int], fixed: list[int], stacked: list[int]
    ) -> None:
        self.scan = scan
        self.rows = rows
        self.fixed = fixed
        self.stacked = stacked
        self._run = run

    def on_floats(self, args: Sequence[Any]) -> list[Any]:
        """The readers' values, for a loop without rows and stacks."""
        scan = self.scan
        ends = self._run(self._turns(0, scan.count), None, *[args[k] for k in (*scan.carries, *self.fixed)])
        return self._last(ends)

    def on_arrays(self, xp: Any, args: Sequence[Any]) -> list[Any]:
        """The readers' values as NumPy holds them. Raises ValueError where an argument is not finite."""
        scan, body, library = self.scan, self.scan.body, xp.library
        for place in (*scan.carries, *self.rows, *self.fixed):
            if not library.isfinite(args[place]).all():
                raise ValueError("not finite")
        state = [args[k].item() for k in scan.carries]
        fixed = [args[k].item() for k in self.fixed]
        kinds = [xp.kind_type(body.steps[at].type.kind) for at in self.stacked]
        stacks = [library.empty(scan.count, dtype=kind) for kind in kinds]
        width = len(stacks)
        direction = -1 if scan.reverse else 1
        ends: Sequence[Any] = ()
        for start in range(0, scan.count, BLOCK):
            stop = min(start + BLOCK, scan.count)
            low, high = (scan.count - stop, scan.count - start) if scan.reverse else (start, stop)
            rows = [args[at][low:high][::direction].tolist() for at in self.rows]
            stored: list[float] = []
            ends = self._run(
                self._turns(start, stop, rows), stored.extend if width > 1 else stored.append, *state, *fixed
            )
            state = list(ends[: len(state)])
            table = library.array(stored, dtype=library.float64 if width > 1 else kinds[0] if kinds else None)
            for place, stack in enumerate(stacks):
                stack[low:high] = table[place::width][::direction]
        by_step = dict(zip(self.stacked, stacks, strict=True))
        last = self._last(ends)
        return [
            by_step[at] if at >= 0 else xp.array(value, body.steps[end].type.kind)
            for at, end, value in zip(scan.stacked, scan.ends, last, strict=True)
        ]

    def _last(self, ends: Sequence[Any]) -> list[Any]:
        """What the code returns, by reader; None for those of stacks."""
        after = iter(ends[len(self.scan.carries) :])
        return [next(after) if at < 0 else None for at in self.scan.stacked]

    def _turns(self, start: int, stop: int, rows: Sequence[list[Any]] = ()) -> Any:
        """What the `for` runs over: rows and number of each turn."""
        scan = self.scan
        columns: list[Any] = list(rows)
        if scan.body.index is not None:
            turns = range(scan.count - 1 - start, scan.count - 1 - stop, -1) if scan.reverse else range(start, stop)
            columns.append(map(float, turns))
        if not columns:
            return repeat(None, stop - start)
        return columns[0] if len(columns) == 1 else zip(*columns, strict=True)


def printed_turns(scan: Scan) -> PrintedTurns | None:
    """The code of a scan; None where a value is no single number, or an operation needs arrays."""
    body = scan.body
    steps = [body.steps[at] for at in scan.order]
    if len(steps) > MOST_STEPS or any(one.shape or one.type.kind == "int" for one in steps):
        return None
    try:
        return _printed(scan, steps)
    except Unavailable:
        return None


def _printed(scan: Scan, steps: Sequence[Node]) -> PrintedTurns:
    body = scan.body
    printer = Printer()
    first, stop = len(body.carried), len(body.carried) + len(body.rows)
    rows = [at for at in scan.order if first <= at < stop]
    fixed = [at for at in scan.order if stop <= at < len(body.inputs)]
    stacked = list(dict.fromkeys([at for at in scan.stacked if at >= 0]))
    words = {body.steps[at]: Word(f"x{at}") for at in (*scan.carries, *rows, *fixed)}
    if body.index is not None:
        words[body.index] = Word("turn")
    nexts = [body.nexts[k] for k in scan.carries]
    ends = [body.steps[end] for end, at in zip(scan.ends, scan.stacked, strict=True) if at < 0]
    named = {*nexts, *ends, *[body.steps[at] for at in stacked]}  # read after the expressions of the turn
    uses: dict[Node, int] = {}
    for node in steps:
        for arg in node.args:
            uses[arg] = uses.get(arg, 0) + 1
    lines: list[str] = []
    for place, node in enumerate(steps):
        if node.primitive is LEAF:
            continue
        if node.primitive is CONSTANT:
            number = nearest_float(node.params["value"])
            finite = number - number == 0
            words[node] = Word(text_of(number)) if finite else printer.bound(f"_c{place}", number)
            continue
        text = step(printer, node, place, lines, words)
        if node not in named and uses[node] == 1 and len(text) <= LONGEST:
            words[node] = Word(text)
        else:
            lines.append(f"_{place} = {text}")
            words[node] = Word(f"_{place}")
    if stacked:
        values = ", ".join(words[body.steps[at]].text for at in stacked)
        lines.append(f"store(({values}))" if len(stacked) > 1 else f"store({values})")
    kept = [f"_end{at}" for at in range(len(ends))]
    after = [f"{name} = {words[node].text}" for name, node in zip(kept, ends, strict=True)]
    carries = [f"x{k}" for k in scan.carries]
    moved = ", ".join(words[node].text for node in nexts)
    turn = [f"x{at}" for at in rows] + (["turn"] if body.index is not None else [])
    arguments = ["turns", "store", *carries, *(f"x{at}" for at in fixed)]
    whole = [
        f"def run({', '.join(arguments)}):",
        f"    for {', '.join(turn) or '_'} in turns:",
        *(f"        {line}" for line in [*lines, *after]),
        f"        {', '.join(carries)} = {moved}" if carries else "        pass",
        f"    return ({''.join(f'{name}, ' for name in [*carries, *kept])})",
        "",
    ]
    run = function("\n".join(whole), {"__builtins__": {}, **printer.functions}, "loop")
    return PrintedTurns(scan, run, rows, fixed, stacked)
