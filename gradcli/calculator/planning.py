"""Describes how a question is computed when it is repeated: by which evaluator, in which order, in how much memory."""

from __future__ import annotations

from gradcli.calculator.answers import LARGE, point_of
from gradcli.calculator.questions import gradient_question, value_question
from gradcli.execution import plan_report
from gradcli.execution.emit_python import MOST_NODES as MOST_STRAIGHT
from gradcli.results.plan_reports import PlanLoop, PlanMemory, PlanReport

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from gradcli.calculator.prepared import Question
    from gradcli.diagnostics import Diagnostic
    from gradcli.lowering import Lowered
    from gradcli.results.plan_reports import PlanPass, PlanStep


def plan_question(lowered: Lowered) -> Question:
    """Value and gradient of a scalar output; the outputs alone where there is no such gradient."""
    outputs = lowered.program.outputs
    scalar = len(outputs) == 1 and not outputs[0].type.shape
    leaves = lowered.wrt or any(not leaf.const for leaf in lowered.program.leaves.values())
    return gradient_question(lowered) if scalar and leaves else value_question(lowered)


def plan_of(
    question: Question, point: Mapping[str, Any], dtype: str, backend: str, notes: Sequence[Diagnostic] = ()
) -> PlanReport:
    """The report of a question at a point; raises GradcliError as its evaluation does."""
    values, tape = question.values(point), question.tape
    question.run(values, backend, dtype)
    runs, reason = _runner(question, dtype, backend)
    order: tuple[PlanStep | PlanLoop, ...] = ()
    passes: tuple[PlanPass, ...] = ()
    constants, threads = 0, 1
    temporaries = 0 if runs == "straight line" else plan_report.evaluator_bytes(tape, dtype)
    made = question.ready(dtype) if runs == "plan" else None
    if made is not None:
        made.answer(values)  # machine code is made in the first run
        order = plan_report.order_of(made)
        constants, temporaries = plan_report.constant_bytes(made), plan_report.temporaries(made)
        passes = tuple(plan_report.passes_of(made, order))
        threads = max([row.threads for row in order if isinstance(row, PlanLoop)], default=1)
    elif runs == "plan":
        runs, reason = "evaluator", "no plan takes this program"
    steps = sum([len(row.steps) if isinstance(row, PlanLoop) else 1 for row in order])
    inputs = plan_report.bytes_of([node for node, _ in tape.inputs], dtype)
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
        memory=PlanMemory(inputs, plan_report.bytes_of(tape.outputs, dtype), constants, temporaries),
        passes=passes,
        diagnostics=tuple(notes),
    )


def _runner(question: Question, dtype: str, backend: str) -> tuple[str, str]:
    """What computes the question in repeated evaluations, and why."""
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


def _once(question: Question, dtype: str, backend: str) -> str:
    """What answers a single call."""
    if question.tape.scalar or dtype == "complex128" or backend not in ("auto", "numpy"):
        return "evaluator"
    if question.entries() < LARGE:
        return f"evaluator: a plan is worth its making from {LARGE:,} entries in all arrays"
    return "plan"
