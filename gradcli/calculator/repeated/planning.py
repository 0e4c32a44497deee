"""Describes how repeated evaluations are computed: by which method, in which order, in how much memory.

Places are numbers in the order of work: 3 is a step on whole arrays or a loop, 3.2 the second step of that loop. Other
steps read their results as #3 and #3.2.
"""

from __future__ import annotations

from gradcli.base.results.plan_reports import PlanLoop, PlanMemory, PlanPass, PlanReport, PlanStep
from gradcli.calculator.answers import LARGE, point_of
from gradcli.calculator.questions import gradient_question, value_question
from gradcli.execution.compiler import demand, lower
from gradcli.execution.compiler.ir import (
    ADDED,
    CALL,
    CAST,
    CHOICE,
    ENTRY,
    PERMUTE,
    PRODUCT,
    REDUCE,
    SCAN,
    SLICE,
    VIEW,
    Op,
    base,
    index_of,
)
from gradcli.execution.compiler.schedule import BlockLoop
from gradcli.execution.emit_python import MOST_NODES as MOST_STRAIGHT
from gradcli.execution.namespaces import namespace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

    from gradcli.base.diagnostics import Diagnostic
    from gradcli.calculator.repeated.prepared import PreparedScript
    from gradcli.execution.compiler.ir import PlanValue
    from gradcli.execution.compiler.numpy_plan import Plan
    from gradcli.execution.evaluate import Tape
    from gradcli.lowering import Lowered

    Order = tuple[PlanStep | PlanLoop, ...]

OPERATIONS = {
    "place": "put among zeros", "added": "add to a part", "join": "join", "copy": "copy", CHOICE: "where",
    PRODUCT: "matrix product",
}  # fmt: skip
REDUCTIONS = {"add": "sum", "logical_or": "any", "maximum": "max", "minimum": "min", "multiply": "product"}


def plan_question(lowered: Lowered) -> PreparedScript:
    """Value and gradient of a scalar output; the outputs alone where there is no such gradient."""
    outputs = lowered.program.outputs
    scalar = len(outputs) == 1 and not outputs[0].type.shape
    leaves = lowered.wrt or any(not leaf.const for leaf in lowered.program.leaves.values())
    return gradient_question(lowered) if scalar and leaves else value_question(lowered)


def plan_of(
    question: PreparedScript, point: Mapping[str, Any], dtype: str, backend: str, notes: Sequence[Diagnostic] = ()
) -> PlanReport:
    """The report of a question at a point; raises GradcliError as its evaluation does."""
    values, tape = question.values(point), question.tape
    question.run(values, backend, dtype)
    runs, reason = _runner(question, dtype, backend)
    order: tuple[PlanStep | PlanLoop, ...] = ()
    passes: tuple[PlanPass, ...] = ()
    constants, threads = 0, 1
    temporaries = 0 if runs == "straight line" else _evaluator_bytes(tape, dtype)
    plan = question.ready(dtype) if runs == "plan" else None
    if plan is not None:
        plan.answer(values)  # machine code is made in the first run
        order = tuple(_plan_rows(plan))
        constants, temporaries = _constant_bytes(plan), _temporaries(plan)
        passes = tuple(_passes_of(plan, order))
        threads = max([row.threads for row in order if isinstance(row, PlanLoop)], default=1)
    elif runs == "plan":
        runs, reason = "evaluator", "no plan takes this program"
    steps = sum([len(row.steps) if isinstance(row, PlanLoop) else 1 for row in order])
    inputs = _bytes_of([node for node, _ in tape.inputs], dtype)
    return PlanReport(
        expression=question.lowered.text,
        at=point_of(question.lowered, values),
        runs=runs,
        reason=reason,
        once=_once(question, dtype, backend),
        threads=threads,
        nodes=len(tape.nodes),
        steps=steps or len(tape.nodes),
        order=order,
        memory=PlanMemory(inputs, _bytes_of(tape.outputs, dtype), constants, temporaries),
        passes=passes,
        diagnostics=tuple(notes),
    )


def _runner(question: PreparedScript, dtype: str, backend: str) -> tuple[str, str]:
    """The method of repeated evaluations of the question, and the reason."""
    tape = question.tape
    if backend not in ("auto", "numpy", "math"):
        return "evaluator", f"--backend {backend} has arrays of its own"
    if dtype == "complex128":
        return "evaluator", "complex numbers have no plan"
    if tape.scalar and backend != "numpy":
        if len(tape.nodes) > MOST_STRAIGHT:
            return "evaluator", f"straight-line code ends at {MOST_STRAIGHT:,} nodes"
        return "straight line", "every value is one number: generated code on Python's math, from the second call on"
    if tape.scalar:
        return "evaluator", "every value is one number"
    return "plan", "arrays of fixed shapes: calls of NumPy, recorded once"


def _once(question: PreparedScript, dtype: str, backend: str) -> str:
    """The method of a single call."""
    if question.tape.scalar or dtype == "complex128" or backend not in ("auto", "numpy"):
        return "evaluator"
    if question.entries() < LARGE:
        return f"evaluator: a plan is worth its making from {LARGE:,} entries in all arrays"
    return "plan"


# --- what steps and values are called ---------------------------------------------------------------------------


class _ValueNames:
    """The names of values in steps."""

    def __init__(self) -> None:
        self.places: dict[int, str] = {}

    def of(self, value: PlanValue) -> str:
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
        if op.function == PERMUTE:
            return f"{source}.T"
        return source + _index(op) if op.function == SLICE else source


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


def _operation(op: Op) -> str:
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


def _step(op: Op, place: str, names: _ValueNames, memory: str = "") -> PlanStep:
    reads = tuple([names.of(arg) for arg in op.args])
    names.places[op.out.serial] = place
    span = op.node.span if op.node is not None else None
    out = op.out
    return PlanStep(
        place, _operation(op), reads, _type(out.dtype, out.shape), _operations(op), out.nbytes, memory, span
    )


# --- plans ------------------------------------------------------------------------------------------------------


def _plan_rows(plan: Plan) -> Iterator[PlanStep | PlanLoop]:
    space = plan.workspace()
    names = _ValueNames()
    results = {base(value).serial for value in plan.schedule.outputs}
    loops = iter(space.loops)
    before: dict[int, str] = {}
    for number, event in enumerate(plan.schedule.events, 1):
        if not isinstance(event, BlockLoop):
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
    text = f"again #{before[address]}" if address in before else ""
    before[address] = place
    return text


# --- memory -----------------------------------------------------------------------------------------------------


def _temporaries(plan: Plan) -> int:
    """The bytes of a run apart from inputs, results and constants, without those inside a library."""
    alone = [event for event in plan.schedule.events if isinstance(event, Op)]
    own = [op.out.nbytes * (2 if op.kind == CALL else 1) for op in alone if op.kind in (CALL, CHOICE, REDUCE)]
    return plan.room() + max(own, default=0)


def _constant_bytes(plan: Plan) -> int:
    """The bytes of the arrays that do not depend on any input."""
    owners = {}
    for array in plan.constants.values():
        while isinstance(array.base, namespace("numpy").library.ndarray):
            array = array.base
        owners[id(array)] = array.nbytes
    return sum(owners.values())


def _width(dtype: str) -> int:
    """The bytes of one entry."""
    return int(namespace("numpy").library.dtype(dtype).itemsize)


def _bytes_of(nodes: Sequence[Any], dtype: str) -> int:
    """The bytes of arrays of these types."""
    width = _width(dtype)
    return sum([int(node.type.size) * width for node in nodes])


def _evaluator_bytes(tape: Tape, dtype: str) -> int:
    """The most bytes that results of the evaluator take at once, views counted as arrays."""
    width = _width(dtype)
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


def _passes_of(plan: Plan, order: Order) -> Iterator[PlanPass]:
    """The effects of recording and of each pass that changed anything; the names are those of `passes.py`."""
    tape, xp = plan.tape, namespace("numpy", plan.xp.dtype)
    with xp.arithmetic():
        before = lower.record(tape, xp.dtype)
        cut = demand.restricted(before, xp.float_type)
    asked, ops = len([node for node in tape.nodes if node.args]), [op for op in before.ops if op.kind != VIEW]
    yield PlanPass("record", f"{_counted(asked, 'operation')} become {_counted(len(ops), 'step')}: equal ones are one")
    if held := len([op for op in before.ops if op.out.constant]):
        yield PlanPass("constants", f"computed once, because no input is read: {_counted(held, 'step')}")
    if cut is not before:
        all_entries, read_entries = [sum([op.out.size for op in trace.ops]) for trace in (before, cut)]
        yield PlanPass("ranges", f"entries that no result reads are left out: {all_entries:,} become {read_entries:,}")
    steps = [step for row in order for step in (row.steps if isinstance(row, PlanLoop) else (row,))]
    yield from _passes_of_plan(plan)
    if again := sum([step.memory.startswith("again") for step in steps]):
        yield PlanPass("memory", f"memory that is not needed again is used by {_counted(again, 'step')}")


def _passes_of_plan(plan: Plan) -> Iterator[PlanPass]:
    events = plan.schedule.events
    loops = [event for event in events if isinstance(event, BlockLoop)]
    if loops:
        yield PlanPass("blocks", f"{_counted(len(loops), 'loop')} over blocks of arrays that stay in cache")
    if any(loop.code is not None for loop in loops) or any(core.native for core in plan.cores()):
        yield PlanPass("native", "loops run as machine code")
