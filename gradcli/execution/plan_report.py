"""How a plan computes: its order of work, its memory, and what its passes did, as records.

Places are numbers in the order of work: 3 is a step on whole arrays or a loop, 3.2 the second step of that loop. Other
steps read their results as #3 and #3.2.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.execution.namespaces import namespace
from gradcli.execution.plans import demand, lower
from gradcli.execution.plans.ir import (
    ADDED,
    CALL,
    CAST,
    CHOICE,
    ENTRY,
    PRODUCT,
    REDUCE,
    SCAN,
    VIEW,
    Op,
    Value,
    base,
    index_of,
)
from gradcli.execution.plans.schedule import Loop
from gradcli.results.plan_reports import PlanLoop, PlanPass, PlanStep

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from gradcli.execution.evaluate import Tape
    from gradcli.execution.plans.numpy_plan import Plan

    Order = tuple[PlanStep | PlanLoop, ...]

OPERATIONS = {
    "place": "put among zeros", "added": "add to a part", "join": "join", "copy": "copy", CHOICE: "where",
    PRODUCT: "matrix product",
}  # fmt: skip
REDUCTIONS = {"add": "sum", "logical_or": "any", "maximum": "max", "minimum": "min", "multiply": "product"}


def order_of(made: Plan) -> Order:
    """The steps and loops of a plan."""
    return tuple(_plan_rows(made))


# --- what steps and values are called ---------------------------------------------------------------------------


class Names:
    """How steps refer to values."""

    def __init__(self) -> None:
        self.places: dict[int, str] = {}

    def of(self, value: Value) -> str:
        """A number, the name of a leaf, the place of a step; with the part of it that a view shows."""
        if value.number is not None:
            return f"{value.number.item():g}" if value.dtype.kind == "f" else str(value.number)
        if value.leaf is not None:
            return str(value.leaf.params["name"])
        if value.serial in self.places:
            return f"#{self.places[value.serial]}"
        op = value.op
        if op is None or op.kind != VIEW:
            return "constant"
        source = self.of(op.args[0])
        if op.function == "permute":
            return f"{source}.T"
        return source + _index(op) if op.function == "slice" else source


def _index(op: Op) -> str:
    """The index of a slice as Python writes it."""
    parts = []
    for part, n in zip(index_of(op.params), op.args[0].shape, strict=True):
        start, stop, step = part.start, part.stop, part.step or 1
        low = "" if start in (None, 0) and step > 0 else str(start)
        high = "" if stop is None or (step > 0 and stop >= n) else str(stop)
        parts.append(f"{low}:{high}" + (f":{step}" if step != 1 else ""))
    return f"[{', '.join(parts)}]"


def _type(dtype: Any, shape: Sequence[int]) -> str:
    """`f64`, `bool[3,4]`."""
    kind = f"{dtype.kind}{8 * dtype.itemsize}" if dtype.kind in "fi" else "bool"
    return f"{kind}[{','.join(map(str, shape))}]" if shape else kind


def operation(op: Op) -> str:
    """What a step does, in words."""
    if op.kind == ENTRY:
        return str(op.function.__name__)
    if op.kind == REDUCE:
        word = REDUCTIONS.get(op.function.__name__, op.function.__name__)
        axes = ", ".join(map(str, op.params))
        return f"{word} over axis {axes}" if len(op.params) == 1 else f"{word} over axes {axes}"
    if op.kind == CAST:
        return f"to {op.out.dtype}"
    if op.kind == SCAN:
        return f"scan: {op.function}"
    if op.kind == CALL:
        return str(op.node.primitive.name) if op.node is not None else "call"
    return OPERATIONS.get(op.kind, op.kind)


def _operations(op: Op) -> int | None:
    """Additions, multiplications and functions of one number; None for what a library does as a whole."""
    if op.kind in (CALL, SCAN):
        return None
    if op.kind in (ENTRY, CHOICE):
        return op.out.size
    if op.kind == REDUCE:
        return op.args[0].size
    if op.kind == ADDED:
        return op.args[1].size
    return 2 * op.out.size * op.args[0].shape[-1] if op.kind == PRODUCT else 0


def _step(op: Op, place: str, names: Names, memory: str = "") -> PlanStep:
    reads = tuple([names.of(arg) for arg in op.args])
    names.places[op.out.serial] = place
    span = op.node.span if op.node is not None else None
    out = op.out
    return PlanStep(place, operation(op), reads, _type(out.dtype, out.shape), _operations(op), out.nbytes, memory, span)


# --- plans ------------------------------------------------------------------------------------------------------


def _plan_rows(plan: Plan) -> Iterator[PlanStep | PlanLoop]:
    space = plan.workspace()
    names = Names()
    results = {base(value).serial for value in plan.schedule.outputs}
    loops = iter(space.loops)
    before: dict[int, str] = {}
    for number, event in enumerate(plan.schedule.events, 1):
        if not isinstance(event, Loop):
            memory = "result" if event.out.serial in results else _again(event, str(number), space.cells, before)
            yield _step(event, str(number), names, memory)
            continue
        blocks = next(loops)
        inside: dict[int, str] = {}
        cells = blocks.workers[0].frames[event.rows].cells
        summed = {op.out.serial for op in event.summed}
        rows = []
        for position, op in enumerate(event.ops, 1):
            place, serial = f"{number}.{position}", op.out.serial
            memory = "" if serial in summed | results else _again(op, place, cells, inside)
            rows.append(
                _step(op, place, names, "sum" if serial in summed else "result" if serial in results else memory)
            )
        yield PlanLoop(str(number), event.count, event.rows, blocks.threads, tuple(rows))
    plan.give(space)


def _again(op: Op, place: str, cells: Mapping[int, Any], before: dict[int, str]) -> str:
    """The step whose memory the result of a step takes; `before` has the step that wrote last to an address."""
    cell = cells.get(op.out.serial)
    if cell is None:
        return ""
    address = cell.__array_interface__["data"][0]
    found = f"again #{before[address]}" if address in before else ""
    before[address] = place
    return found


# --- memory -----------------------------------------------------------------------------------------------------


def temporaries(made: Plan) -> int:
    """The bytes that a run takes beside inputs, results and constants, without those inside of a library."""
    alone = [event for event in made.schedule.events if isinstance(event, Op)]
    own = [op.out.nbytes * (2 if op.kind == CALL else 1) for op in alone if op.kind in (CALL, CHOICE, REDUCE)]
    return made.room() + max(own, default=0)


def constant_bytes(made: Plan) -> int:
    """The bytes of the arrays that do not depend on any input."""
    owners = {}
    for array in made.constants.values():
        while isinstance(array.base, np.ndarray):
            array = array.base
        owners[id(array)] = array.nbytes
    return sum(owners.values())


def bytes_of(nodes: Sequence[Any], dtype: str) -> int:
    """The bytes of arrays of these types."""
    width = np.dtype(dtype).itemsize
    return sum([int(node.type.size) * width for node in nodes])


def evaluator_bytes(tape: Tape, dtype: str) -> int:
    """The most bytes that results of the evaluator take at once, views counted as arrays."""
    width = np.dtype(dtype).itemsize
    last = {arg: place for place, node in enumerate(tape.nodes) for arg in node.args}
    kept = {*tape.outputs, *[node for node, _ in tape.inputs]}
    alive = most = 0
    for place, node in enumerate(tape.nodes):
        alive += node.type.size * width if node.args else 0
        most = max(most, alive)
        for arg in set(node.args):
            if last[arg] == place and arg not in kept and arg.args:
                alive -= arg.type.size * width
    return most


# --- passes -----------------------------------------------------------------------------------------------------


def _counted(count: int, word: str) -> str:
    """`1 step`, `2,000 steps`."""
    return f"{count:,} {word}" + ("" if count == 1 else "s")


def passes_of(made: Plan, order: Order) -> Iterator[PlanPass]:
    """What recording and each pass did, where that changed anything; the names are those of `passes.py`."""
    tape, xp = made.tape, namespace("numpy", made.xp.dtype)
    with xp.arithmetic():
        before = lower.record(tape, xp.dtype)
        cut = demand.restricted(before, xp.float_type)
    asked, ops = len([node for node in tape.nodes if node.args]), [op for op in before.ops if op.kind != VIEW]
    yield PlanPass("record", f"{_counted(asked, 'operation')} become {_counted(len(ops), 'step')}: equal ones are one")
    if held := len([op for op in before.ops if op.out.constant]):
        yield PlanPass("constants", f"computed once, because no input is read: {_counted(held, 'step')}")
    if cut is not before:
        one, other = [sum([op.out.size for op in found.ops]) for found in (before, cut)]
        yield PlanPass("ranges", f"entries that no result reads are left out: {one:,} become {other:,}")
    steps = [step for row in order for step in (row.steps if isinstance(row, PlanLoop) else (row,))]
    yield from _passes_of_plan(made)
    if again := sum([step.memory.startswith("again") for step in steps]):
        yield PlanPass("memory", f"memory that is not needed again is used by {_counted(again, 'step')}")


def _passes_of_plan(plan: Plan) -> Iterator[PlanPass]:
    events = plan.schedule.events
    loops = [one for one in events if isinstance(one, Loop)]
    recurrences = [op.function.core for op in events if isinstance(op, Op) and op.kind == SCAN]
    if linear := sum([core.linear for core in recurrences]):
        yield PlanPass("linear", f"{_counted(linear, 'recurrence')} a*x + b: blocks of turns side by side")
    if loops:
        yield PlanPass("blocks", f"{_counted(len(loops), 'loop')} over blocks of arrays that stay in cache")
    if any(loop.pairs and loop.code is None for loop in loops):
        yield PlanPass("sincos", "sine and cosine of one angle come together")
    if any(loop.code is not None for loop in loops) or any(core.native for core in recurrences):
        yield PlanPass("native", "loops run as machine code")
