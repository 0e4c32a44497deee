"""A question and a point go in; out comes how it is computed when it is asked again: by what, in which order, how well.

The bounds are evaluated at the point, by `execution/plans/bounds.py`, which reads no plan.
"""

from __future__ import annotations

from gradcli.calculator.answers import LARGE, point_of
from gradcli.calculator.questions import gradient_question, value_question
from gradcli.execution import kernels
from gradcli.execution.kernels import described as kernel_rows
from gradcli.execution.plans import described as plan_rows
from gradcli.execution.plans import measured
from gradcli.execution.plans.bounds import bounds, same, told
from gradcli.execution.reports import PlanLoop, PlanMemory, PlanReport
from gradcli.execution.straightline import MOST_NODES as MOST_STRAIGHT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from gradcli.calculator.prepared import Question
    from gradcli.diagnostics import Diagnostic
    from gradcli.execution.reports import PlanRewrite, PlanStep
    from gradcli.lowering import Lowered


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
    plain = question.run(values, backend, dtype)
    runs, reason = _runner(question, dtype, backend)
    order: tuple[PlanStep | PlanLoop, ...] = ()
    rewrites: tuple[PlanRewrite, ...] = ()
    constants, threads, found = 0, 1, same(plain)
    made = question.ready(dtype) if runs == "plan" else None
    if made is not None:
        made.answer(values)  # machine code is made in the first run
        if isinstance(made, kernels.Kernel):
            liberties = kernel_rows.liberties(made)
            order, beside = kernel_rows.order_of(made), kernel_rows.beside(made)
            runs = "machine code" if any(one is not None for one in made.made_native()) else "kernel"
            reason = "all arrays lie along one line, which is cut into blocks"
        else:
            liberties = plan_rows.liberties(made)
            order, beside = plan_rows.order_of(made), made.room() + measured.passing_bytes(made.schedule.events)
            constants = measured.constant_bytes(made)
            beside = max(beside, measured.beside(made, values))
        threads = max([row.threads for row in order if isinstance(row, PlanLoop)], default=1)
        rewrites = tuple(plan_rows.rewrites(tape, dtype, order, liberties))
        found = bounds(tape, values, dtype, liberties)
    else:
        beside = 0 if runs == "straight line" else measured.alive(tape, dtype)
        if runs == "plan":
            runs, reason = "evaluator", "no plan takes this program"
    names = [f"value {i}" for i in range(len(tape.outputs))] if question.lowered.several else ["value"]
    names += [f"d/d{name}" for name in question.names]
    rows = zip(names, tape.outputs, found, strict=True)
    steps = sum([len(row.steps) if isinstance(row, PlanLoop) else 1 for row in order])
    inputs = measured.size_in_bytes([node for node, _ in tape.inputs], dtype)
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
        memory=PlanMemory(inputs, measured.size_in_bytes(tape.outputs, dtype), constants, beside),
        rewrites=rewrites,
        bounds=tuple([told(name, node.type.text(dtype), one) for name, node, one in rows]),
        diagnostics=tuple(notes),
    )


def _runner(question: Question, dtype: str, backend: str) -> tuple[str, str]:
    """What computes the question when it is asked again, and why."""
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
