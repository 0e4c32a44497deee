"""`gradcli trace`: print both passes of reverse mode at a point, step by step."""

from __future__ import annotations

from gradcli.base.records import NamedTuple
from gradcli.interfaces.command_parts import quiz_session
from gradcli.interfaces.command_parts.result_views import View
from gradcli.interfaces.commands import room
from gradcli.interfaces.options.declaration import Declaration, Option
from gradcli.interfaces.options.shared_options import EVALUATION, OUTPUT, SCRIPT, Point, evaluation

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gradcli import calculator
    from gradcli.base.results.calculations import Trace
    from gradcli.base.results.plan_reports import PlanReport
    from gradcli.derivation import quiz as quizzes
    from gradcli.interfaces.options.shared_options import CommandOutput
    from gradcli.rendering import machine
    from gradcli.rendering.documents import planned
    from gradcli.rendering.documents import trace_tables as listing
else:
    calculator, listing, machine, planned = room("calculator"), room("trace"), room("machine"), room("planned")
    quizzes = room("quizzes")


class StepView(NamedTuple):
    """What is shown of each step."""

    why_topo: bool
    names: str
    all: bool
    full: bool
    iteration: int | None
    symbolic: bool


def trace(
    output: CommandOutput,
    script: str,
    *,
    point: Point,
    stepview: StepView,
    plan: bool,
    quiz: bool,
) -> int:
    """The forward and the backward pass, step by step.

    Forward: every node of the computation in topological order, with what it reads and its value.
    Backward: which node sends which cotangent to which (the cotangent times the local partial), and what
    the receiver holds then.

    Details:

    A node passes its cotangent on only when every node that reads it has contributed. With --why-topo the
    depth-first order, which passes cotangents on too early, is shown beside the right one, with the wrong
    gradient that it gives.

    Inserted nodes, such as the reshapes and broadcasts that an operation on arrays needs, are left out:
    what is sent to them is shown where it arrives. With --all they are shown too; JSON and CSV always include
    them. A terminal shows 6 digits; elsewhere, and with --digits 17, all are shown. An array of many
    entries is shown by its shape and norm, with --full by its entries.

    A long loop is one node: its first and its last iteration are shown step by step, with --iteration 500 that
    iteration too.

    With --symbolic each local partial has its formula beside its number, such as cos(x) = -0.416147. An
    operation that mixes entries, such as a matrix product, has what it sends on for a cotangent ct instead:
    A @ x sends A.T @ ct to x.

    With --quiz nothing is shown: you enter each local partial in turn. Type a formula, or its number at
    this point; a wrong answer is diagnosed, an empty line shows the right one. Answers may come through a pipe.

    With --plan the trace shows instead how value and gradient are computed in repeated evaluations: the
    order of work, blocks and threads, memory, and what the passes of the planner did.

    Examples:
      gradcli trace "(x*y+x)**2" --at x=2,y=3
      gradcli trace "sin(x)*x" --at x=2 --symbolic
      gradcli trace "h = x**2; h*sin(h)" --at x=2 --why-topo
      gradcli trace "sin(x)*x" --at x=2 --names torch
      gradcli trace loss.grad --format json
      gradcli trace "sum(tanh(A@x)**2)" --at "A=randn(300,20),x=randn(20)" --plan
    """
    source, options = evaluation(output, script, point)
    if plan:
        output.emit(planned_view(calculator.plan(source, **options)))
        return 0
    if quiz:
        quiz_session.possible(output, script)
        stepview = stepview._replace(symbolic=True)
    result = calculator.trace(
        source,
        **options,
        why_topo=stepview.why_topo,
        torch=stepview.names == "torch",
        iteration=stepview.iteration,
        symbolic=stepview.symbolic,
    )
    if quiz:
        return quiz_session.quiz(output, list(quizzes.partial_questions(result)))
    output.emit(traced_view(result, stepview.all, stepview.full))
    return 0


def traced_view(result: Trace, whole: bool = False, full: bool = False) -> View:
    """The view of a trace; `whole` for every node, `full` for every entry."""
    return View(
        document=lambda look: listing.trace(result, look, whole, full),
        payload=lambda: machine.trace("trace", result),
        lines=lambda: machine.trace_lines("trace", result),
        tidy=lambda: listing.tidy(result),
        diagnostics=result.diagnostics,
    )


def planned_view(report: PlanReport) -> View:
    """The view of a plan."""
    return View(
        document=lambda look: planned.report(report, look),
        payload=lambda: machine.plan("trace", report),
        lines=lambda: machine.plan_lines("trace", report),
        tidy=lambda: planned.tidy(report),
        diagnostics=report.diagnostics,
    )


WHY = Option("--why-topo", kind="flag", help="Show the naive depth-first order next to the right one.")
NAMES = Option("--names", choices=("gradcli", "torch"), default="gradcli", help="Names of nodes: ours, or PyTorch's.")
PLAN = Option("--plan", kind="flag", help="Show how value and gradient are computed: order of work, memory, passes.")
ALL = Option("--all", kind="flag", help="Show every node, including inserted ones such as reshapes.")
FULL = Option("--full", kind="flag", help="Show the entries of large arrays, not their shape and norm.")
ITERATION = Option(
    "--iteration",
    kind="int",
    bounds=(1, None),
    help="Show this iteration of a long loop too; the first iteration is 1.",
)
SYMBOLIC = Option("--symbolic", kind="flag", help="Show each local partial as a formula beside its number.")
QUIZ = Option("--quiz", kind="flag", help="Ask you for the local partials one by one, and check your answers.")
DECLARATION = Declaration(
    trace,
    (SCRIPT,),
    (*EVALUATION, WHY, NAMES, PLAN, ALL, FULL, ITERATION, SYMBOLIC, QUIZ, *OUTPUT),
    groups=(Point, StepView),
    conflicts={"plan": ("why_topo", "names", "all", "full", "iteration", "symbolic", "quiz")},
    renamed={"--turn": "--iteration", "--style": "--names"},
)
