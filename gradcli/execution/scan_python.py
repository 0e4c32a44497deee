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
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any

    from gradcli.execution.scan import Scan
    from gradcli.graph.loop import Body
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
    first, stop = len(body.carried), len(body.carried) + len(body.rows)
    rows = [at for at in scan.order if first <= at < stop]
    columns = rows if body.index is None else [*rows, body.positions[body.index]]
    fixed = [at for at in scan.order if stop <= at < len(body.inputs)]
    stacked = list(dict.fromkeys([at for at in scan.stacked if at >= 0]))
    ends = [end for end, at in zip(scan.ends, scan.stacked, strict=True) if at < 0]
    text, functions = core_text(body, scan.order, scan.carries, columns, fixed, stacked, ends)
    run = function(text, {"__builtins__": {}, **functions}, "loop")
    return PrintedTurns(scan, run, rows, fixed, stacked)


class PrintedCore:
    """The code of carries that need one another: called for a block of turns, it gives their states."""

    __slots__ = ("_run",)

    def __init__(self, run: Callable[..., Any]) -> None:
        self._run = run

    def run(
        self, xp: Any, columns: Sequence[Any], fixed: Sequence[Any], state: Sequence[Any], turns: int, store: bool
    ) -> tuple[Any, Sequence[Any]]:
        """The states before each turn, by carry, and those after the last one. Raises ValueError for infinities."""
        library = xp.library
        if not all(library.isfinite(one).all() for one in (*columns, *fixed, *state)):
            raise ValueError("not finite")
        numbers = [one.item() for one in (*state, *fixed)]
        lists = [one.tolist() for one in columns]
        over: Any = lists[0] if len(lists) == 1 else zip(*lists, strict=True) if lists else repeat(None, turns)
        stored: list[float] = []
        width = len(state)
        after = self._run(over, (stored.extend if width > 1 else stored.append) if store else _nothing, *numbers)
        return (library.array(stored, dtype=library.float64).reshape(turns, width).T if store else None), after


def _nothing(_: Any) -> None:
    """Store nothing."""


def printed_core(
    body: Body, order: Sequence[int], carries: Sequence[int], columns: Sequence[int], fixed: Sequence[int]
) -> PrintedCore:
    """The code of the steps `order`, which read the carries, columns over the turns, and fixed values.

    Raises Unavailable where an operation needs arrays.
    """
    if len(order) > MOST_STEPS or any(body.steps[at].type.kind == "int" for at in order):
        raise Unavailable("not a loop over floats")
    text, functions = core_text(body, order, carries, columns, fixed, carries, ())
    return PrintedCore(function(text, {"__builtins__": {}, **functions}, "loop"))


def core_text(
    body: Body,
    order: Sequence[int],
    carries: Sequence[int],
    columns: Sequence[int],
    fixed: Sequence[int],
    stored: Sequence[int],
    ends: Sequence[int],
) -> tuple[str, dict[str, Any]]:
    """The text of a function of (turns, store, carries, fixed values), and what its names stand for.

    `turns` gives the columns of each turn, `store` takes the values of the positions `stored`; the function returns
    the carries after the last turn, then the values of the positions `ends` in that turn.
    """
    printer = Printer()
    lines: list[str] = []
    named = [*(body.positions[body.nexts[k]] for k in carries), *ends, *stored]
    words = turn_lines(printer, body, order, (*carries, *columns, *fixed), named, lines)
    if stored:
        values = ", ".join(words[body.steps[at]].text for at in stored)
        lines.append(f"store(({values}))" if len(stored) > 1 else f"store({values})")
    kept = [f"_end{at}" for at in range(len(ends))]
    lines += [f"{name} = {words[body.steps[end]].text}" for name, end in zip(kept, ends, strict=True)]
    states = [f"x{k}" for k in carries]
    moved = ", ".join(words[body.nexts[k]].text for k in carries)
    arguments = ["turns", "store", *states, *(f"x{at}" for at in fixed)]
    whole = [
        f"def run({', '.join(arguments)}):",
        f"    for {', '.join(f'x{at}' for at in columns) or '_'} in turns:",
        *(f"        {line}" for line in lines),
        f"        {', '.join(states)} = {moved}" if states else "        pass",
        f"    return ({''.join(f'{name}, ' for name in [*states, *kept])})",
        "",
    ]
    return "\n".join(whole), printer.functions


def turn_lines(
    printer: Printer, body: Body, order: Iterable[int], given: Iterable[int], named: Iterable[int], lines: list[str]
) -> dict[Node, Word]:
    """Add the lines of one turn and give the words of its steps. Steps that are `named` get a line of their own."""
    words = {body.steps[at]: Word(f"x{at}") for at in given}
    steps = [body.steps[at] for at in order]
    later = {body.steps[at] for at in named}
    uses: dict[Node, int] = {}
    for node in steps:
        for arg in node.args:
            uses[arg] = uses.get(arg, 0) + 1
    for place, node in enumerate(steps):
        if node.primitive is LEAF:
            continue
        if node.primitive is CONSTANT:
            number = nearest_float(node.params["value"])
            finite = number - number == 0
            words[node] = Word(text_of(number)) if finite else printer.bound(f"_c{place}", number)
            continue
        text = step(printer, node, place, lines, words)
        if node not in later and uses.get(node, 0) == 1 and len(text) <= LONGEST:
            words[node] = Word(text)
        else:
            lines.append(f"_{place} = {text}")
            words[node] = Word(f"_{place}")
    return words
