"""The report of a plan: frozen records of its order of work, its memory and its passes; data that computes nothing."""

from __future__ import annotations

from gradcli.base.results.calculations import DisplayedResult, Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gradcli.base.diagnostics import Diagnostic, Span
    from gradcli.base.results.calculations import Value


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
    """Steps that are taken block by block: `count` entries along an axis, `block` at a time, on some threads."""

    place: str
    count: int
    block: int
    threads: int
    steps: tuple[PlanStep, ...]


class PlanMemory(Record):
    """Bytes: of inputs, of results, of constants that are kept, and of all temporaries that are alive at once."""

    inputs: int
    results: int
    constants: int
    temporaries: int

    def peak(self) -> int:
        return self.inputs + self.results + self.constants + self.temporaries


class PlanPass(Record):
    """A pass of the planner, by name, and what it did."""

    name: str
    what: str


class PlanReport(DisplayedResult):
    """How a value and its gradient are computed when they are requested again: by what and why, in which order.

    `runs` is "straight line", "plan" or "evaluator"; `once` says the same of a single call
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
    passes: tuple[PlanPass, ...]
    diagnostics: tuple[Diagnostic, ...] = ()
