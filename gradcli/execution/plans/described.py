"""A plan goes in, its order of work, its memory and what it changes come out as records; it computes nothing.

Places are numbers in the order of work: 3 is a step on whole arrays or a loop, 3.2 the second step of that loop.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.execution.kernels.native import VECTORS
from gradcli.execution.namespaces import namespace
from gradcli.execution.plans import chains, ranges, recording
from gradcli.execution.plans.bounding import Liberties
from gradcli.execution.plans.schedule import Loop
from gradcli.execution.plans.values import (
    ADDED,
    CALL,
    CAST,
    CHOICE,
    ENTRY,
    INNER,
    LINEAR,
    ONLINE,
    PRODUCT,
    REDUCE,
    RESCALED,
    SCAN,
    VIEW,
    Op,
    Value,
    base,
    index_of,
)
from gradcli.execution.reports import PlanLoop, PlanRewrite, PlanStep

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from gradcli.execution.evaluate import Tape
    from gradcli.execution.plans import Plan
    from gradcli.execution.plans.running import Workspace

EXACT, REORDERED, VECTOR = "exact", "reordered", "vector function"
WORDS = {
    "place": "put among zeros", "added": "add to a part", "join": "join", "copy": "copy", CHOICE: "where",
    PRODUCT: "matrix product", ONLINE: "exp beside the largest entry of the block",
}  # fmt: skip
REDUCTIONS = {"add": "sum", "logical_or": "any", "maximum": "max", "minimum": "min", "multiply": "product"}


class Names:
    """How steps are called by those that read them: #3, unlike the number 3."""

    def __init__(self) -> None:
        self.places: dict[int, str] = {}

    def of(self, value: Value) -> str:
        """A number, the name of a leaf, the place of a step; with what a view shows of it."""
        if value.number is not None:
            return f"{value.number.item():g}" if value.dtype.kind == "f" else str(value.number)
        if value.leaf is not None:
            return str(value.leaf.params["name"])
        if value.serial in self.places:
            return f"#{self.places[value.serial]}"
        op = value.op
        if op is None or op.kind != VIEW:
            return "constant"
        below = self.of(op.args[0])
        if op.function == "permute":
            return f"{below}.T"
        return below + index_text(op) if op.function == "slice" else below


def index_text(op: Op) -> str:
    """The index of a slice as Python writes it."""
    parts = []
    for part, n in zip(index_of(op.params), op.args[0].shape, strict=True):
        start, stop, step = part.start, part.stop, part.step or 1
        low = "" if start in (None, 0) and step > 0 else str(start)
        high = "" if stop is None or (step > 0 and stop >= n) else str(stop)
        parts.append(f"{low}:{high}" + (f":{step}" if step != 1 else ""))
    return f"[{', '.join(parts)}]"


def type_text(value: Value) -> str:
    """`f64[3,4]`, as types are written elsewhere."""
    kind = short(value.dtype)
    return f"{kind}[{','.join(map(str, value.shape))}]" if value.shape else kind


def short(dtype: Any) -> str:
    """`f64`, `i64`, `bool`."""
    return f"{dtype.kind}{8 * dtype.itemsize}" if dtype.kind in "fi" else "bool"


def operation(op: Op) -> str:
    """What a step does, in words."""
    if op.kind == ENTRY:
        return str(op.function.__name__)
    if op.kind == REDUCE:
        word = REDUCTIONS.get(op.function.__name__, op.function.__name__)
        axes = ", ".join(map(str, op.params))
        return f"{word} over axis {axes}" if len(op.params) == 1 else f"{word} over axes {axes}"
    if op.kind == INNER:
        return "sum of squares" if len(op.args) == 1 else "sum of products"
    if op.kind == RESCALED:
        more = "" if op.function is None else f", {op.function.__name__}"
        return f"factor of the block{more}"
    if op.kind == CAST:
        return f"to {op.out.dtype}"
    if op.kind == SCAN:
        return f"scan: {op.function}"
    if op.kind == LINEAR:
        return f"linear recurrence: {op.function}"
    if op.kind == CALL:
        return str(op.node.primitive.name) if op.node is not None else "call"
    return WORDS.get(op.kind, op.kind)


def operations(op: Op) -> int | None:
    """Additions, multiplications and functions of one number; None for what a library does as a whole."""
    if op.kind in (ENTRY, CHOICE, RESCALED):
        return op.out.size
    if op.kind == ONLINE:
        return 2 * op.out.size
    if op.kind == REDUCE:
        return op.args[0].size
    if op.kind == INNER:
        return 2 * op.args[0].size
    if op.kind == ADDED:
        return op.args[1].size
    if op.kind == PRODUCT:
        return 2 * op.out.size * op.args[0].shape[-1]
    return None if op.kind in (CALL, SCAN, LINEAR) else 0


def order_of(plan: Plan) -> tuple[PlanStep | PlanLoop, ...]:
    """The steps and loops of a plan."""
    space = plan.workspace()
    try:
        return tuple(_rows(plan, space))
    finally:
        plan.give(space)


def _rows(plan: Plan, space: Workspace) -> Iterator[PlanStep | PlanLoop]:
    names = Names()
    results = {base(value).serial for value in plan.schedule.outputs}
    bound = iter(space.loops)
    before: dict[int, str] = {}
    for number, event in enumerate(plan.schedule.events, 1):
        if not isinstance(event, Loop):
            yield _row(event, str(number), names, results, space.cells, before)
            continue
        blocks = next(bound)
        inside: dict[int, str] = {}
        cells = blocks.workers[0].frames[event.rows].cells
        summed = {op.out.serial for op in (*event.summed, *[op for op, _ in event.apart])}
        rows, known = [], dict(names.places)
        for position, op in enumerate(event.ops, 1):
            row = _row(op, f"{number}.{position}", names, results, cells, inside)
            if op.out.serial in summed:
                row = PlanStep(
                    row.place, row.operation, row.reads, row.type, row.operations, row.nbytes, "sum", row.span
                )
            rows.append(row)
        when = ""
        if event.settles is not None:
            names.places.update(known)
            names.places[event.settles.factors.serial] = str(number)
            when = f"only where {names.of(event.settles.largest)} is not finite"
        yield PlanLoop(str(number), event.count, event.rows, blocks.threads, tuple(rows), when)


def _row(
    op: Op,
    place: str,
    names: Names,
    results: set[int],
    cells: Mapping[int, Any],
    before: dict[int, str],
    memory: str = "",
) -> PlanStep:
    """A step; `before` says which step wrote last to an address."""
    reads = tuple([names.of(arg) for arg in op.args])
    names.places[op.out.serial] = place
    if not memory and op.out.serial in results:
        memory = "result"
    elif not memory and (cell := cells.get(op.out.serial)) is not None:
        address = cell.__array_interface__["data"][0]
        memory = f"again #{before[address]}" if address in before else ""
        before[address] = place
    span = op.node.span if op.node is not None else None
    return PlanStep(place, operation(op), reads, type_text(op.out), operations(op), op.out.nbytes, memory, span)


def liberties(plan: Plan) -> Liberties:
    """What a plan does otherwise than the evaluator."""
    return Liberties(_inexact(plan), plan.rolled, _linear(plan), _online(plan))


def _inexact(plan: Plan) -> frozenset[Any]:
    """The functions whose last digits may be others than NumPy's: those in recurrences that run as machine code."""
    bodies = [event.function for event in plan.schedule.events if isinstance(event, Op) and event.kind == SCAN]
    called = {op.function for body in bodies if body.machine is not None for op in body.ops.values()}
    return VECTORS & called


def _linear(plan: Plan) -> frozenset[Any]:
    """The nodes of the program whose turns are solved for together."""
    found = [event.function for event in plan.schedule.events if isinstance(event, Op) and event.kind == LINEAR]
    return frozenset([node for one in found for node in one.nodes])


def _online(plan: Plan) -> bool:
    """Whether blocks take exponentials beside largest entries of their own."""
    return any(isinstance(event, Loop) and event.settles is not None for event in plan.schedule.events)


def counted(count: int, word: str) -> str:
    """`1 step`, `2,000 steps`."""
    return f"{count:,} {word}" + ("" if count == 1 else "s")


def rewrites(
    tape: Tape, dtype: str, order: Sequence[PlanStep | PlanLoop], liberties: Liberties
) -> Iterator[PlanRewrite]:
    """What was changed, each with its class."""
    xp = namespace("numpy", dtype)
    with xp.arithmetic():
        before = recording.record(tape, dtype)
        cut = ranges.restricted(before, xp.float_type)
        turned = chains.ordered(cut)
    held = len([op for op in before.ops if op.out.constant])
    asked, made = len([node for node in tape.nodes if node.args]), len([op for op in before.ops if op.kind != VIEW])
    told = f"{counted(asked, 'operation')} become {counted(made, 'step')}"
    yield PlanRewrite(EXACT, f"{told}: equal ones are one, views cost nothing")
    if held:
        yield PlanRewrite(EXACT, f"computed once, because no input is read: {counted(held, 'step')}")
    if cut is not before:
        one, other = [sum([op.out.size for op in found.ops]) for found in (before, cut)]
        told = f"entries that no result reads are left out: {one:,} become {other:,}"
        yield PlanRewrite(EXACT, f"{told}; they are 0 where the evaluator's 0 * inf is NaN")
    again = sum([step.memory.startswith("again") for step in _steps(order)])
    if again:
        yield PlanRewrite(EXACT, f"memory that nobody reads again is written again: by {counted(again, 'step')}")
    if turned is not cut:
        yield PlanRewrite(REORDERED, "chains of matrix products take the cheap order")
    if liberties.looped:
        one, other = len([op for op in turned.ops if op.kind != VIEW]), len(list(_steps(order)))
        told = f"turns of loops are taken together: {one:,} steps become {other:,}, and what turns add up is one sum"
        yield PlanRewrite(REORDERED, told)
    if liberties.linear:
        told = "what a turn carries on as a*x + b is found for blocks of turns side by side, then from block to block"
        yield PlanRewrite(REORDERED, f"{told}; turn by turn where a product of factors could leave the range")
    if liberties.online:
        told = "exponentials are taken beside the largest entry of their block while that of all is looked for"
        yield PlanRewrite(REORDERED, f"{told}; a factor for each block follows")
    sums = [op.args[0].size // max(op.out.size, 1) for op in turned.ops if op.kind == REDUCE and op.function is np.add]
    if sums:
        yield PlanRewrite(REORDERED, f"{counted(len(sums), 'sum')} of up to {max(sums):,} terms in another order")
    products = [op.args[0].shape[-1] for op in turned.ops if op.kind == PRODUCT]
    if products:
        yield PlanRewrite(REORDERED, f"{counted(len(products), 'matrix product')} of up to {max(products):,} terms")
    if liberties.inexact:
        told = ", ".join(sorted(one.__name__ for one in liberties.inexact))
        yield PlanRewrite(VECTOR, f"{told}: at most 2.5 ulp from the exact value")


def _steps(order: Sequence[PlanStep | PlanLoop]) -> Iterator[PlanStep]:
    for row in order:
        yield from row.steps if isinstance(row, PlanLoop) else (row,)
