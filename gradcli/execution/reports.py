"""What a plan says of itself: frozen records of its order of work, memory and rounding; data that computes nothing."""

from __future__ import annotations

from gradcli.execution.results import Record, Shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from gradcli.diagnostics import Diagnostic, Span
    from gradcli.execution.results import Value


class PlanStep(Record):
    """One step: `reads` names other steps (#3), leaves and numbers; `operations` is None where nobody counts.

    `memory` says where the result stands: "result", "sum" (added up block by block), "again #3" (where that of step 3
    stood), else "".
    """

    place: str
    operation: str
    reads: tuple[str, ...]
    type: str
    operations: int | None
    nbytes: int
    memory: str
    span: Span | None


class PlanLoop(Record):
    """Steps that are taken block by block: `count` entries along an axis, `block` at a time, on some threads.

    `when` says on what condition they are taken, where there is one.
    """

    place: str
    count: int
    block: int
    threads: int
    steps: tuple[PlanStep, ...]
    when: str = ""


class PlanMemory(Record):
    """Bytes: of inputs, of results, of constants that are kept, and of everything else that is alive at once."""

    inputs: int
    results: int
    constants: int
    beside: int

    def peak(self) -> int:
        return self.inputs + self.results + self.constants + self.beside


class PlanRewrite(Record):
    """What was changed, and its class: "exact", "reordered" or "vector function"."""

    kind: str
    what: str


class PlanBound(Record):
    """An output: its largest entry, and how far the evaluator's result may be from this one in any entry.

    `kind` is "exact" (the same bits), "bounded" or "unknown"; `relative` is the largest bound over the size of its
    entry, None where an entry that may differ is 0. `lost` names operations behind which nothing is known, `trusted`
    those that are taken to be exact for a matrix nearby.
    """

    output: str
    type: str
    largest: float
    kind: str
    bound: float
    relative: float | None
    lost: tuple[str, ...] = ()
    trusted: tuple[str, ...] = ()


class PlanReport(Shown):
    """How a value and its gradient are computed when they are asked for again: by what and why, in which order.

    `runs` is "straight line", "kernel", "machine code", "plan" or "evaluator"; `once` says the same of a single call
    of `gradcli grad`. `nodes` counts the nodes of the program, `steps` what is left of them.
    """

    expression: str
    at: dict[str, Value]
    runs: str
    reason: str
    once: str
    threads: int
    nodes: int
    steps: int
    order: tuple[PlanStep | PlanLoop, ...]
    memory: PlanMemory
    rewrites: tuple[PlanRewrite, ...]
    bounds: tuple[PlanBound, ...]
    diagnostics: tuple[Diagnostic, ...] = ()

    def _rows(self) -> Iterator[tuple[str, object]]:
        yield "expression", self.expression
        yield "runs as", f"{self.runs}: {self.reason}"
        for row in self.order:
            if isinstance(row, PlanLoop):
                yield row.place, f"{row.count:,} in blocks of {row.block:,}, threads: {row.threads}"
                yield from ((step.place, f"{step.operation}  {step.type}  {step.memory}") for step in row.steps)
            else:
                yield row.place, f"{row.operation}  {row.type}  {row.memory}"
        yield "bytes", f"{self.memory.peak():,}"
        for one in self.bounds:
            yield one.output, one.kind if one.kind != "bounded" else f"within {one.bound:.3g}"
