"""`gradcli why`: explain why gradients of a Python file or a script are None, zero, NaN or huge."""

from __future__ import annotations

import sys
from time import monotonic

from gradcli.base.diagnostics import error, visible
from gradcli.base.records import NamedTuple
from gradcli.interfaces.command_parts.python_file import (
    EVERY,
    ON,
    FileRun,
    Platform,
    library_of,
    recorded,
    show_failure,
)
from gradcli.interfaces.command_parts.result_views import View
from gradcli.interfaces.commands import room
from gradcli.interfaces.options.declaration import Declaration, Option, PositionalArgument
from gradcli.interfaces.options.shared_options import OUTPUT, Point, evaluation

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gradcli import calculator
    from gradcli import why as watching
    from gradcli.base.results.findings import Explanation
    from gradcli.base.results.training_steps import TrainingSteps
    from gradcli.interfaces.command_parts import tried_patches
    from gradcli.interfaces.options.shared_options import CommandOutput
    from gradcli.recording import runs
    from gradcli.recording.runs import step_rows as run_steps
    from gradcli.rendering.documents import why_findings
    from gradcli.rendering.graphs import formats
else:
    calculator, watching, why_findings = room("calculator"), room("watching"), room("why_findings")
    formats, runs, run_steps, tried_patches = room("formats"), room("runs"), room("run_steps"), room("tried_patches")


class Remedies(NamedTuple):
    """What is done with the reasons of a Python file."""

    fix: bool
    write: bool
    tables: bool
    html: str | None


def why(
    output: CommandOutput,
    file: str,
    args: tuple[str, ...],
    *,
    tensor: str | None,
    at: tuple[str, ...],
    remedies: Remedies,
    platform: Platform,
) -> int:
    """Why is this gradient None, zero, NaN or huge?

    A Python file is run, and everything that it does with tensors is recorded; its own output is not shown.
    A file that imports torch runs on the installed PyTorch where there is one, else (and with --on gradcli)
    on gradcli's tensors, and the first line says so. --every 10 records every tenth training step.

    Each reason comes with the line and what to do about it: detached, computed under no_grad, not a leaf,
    no path from the loss, added up over several backwards, zeroed, changed in place, a step function, an
    optimizer that does not move it, a loss that is not what is meant, dead units, vanishing or exploding,
    the first NaN. A script is explained at its point.

    Details:

    --fix shows each fix as a patch, runs the file with it, and says whether that helps; your file stays as
    it is. --fix --write then asks, and writes the patches that help. --tables adds tables of the training
    steps and of the parameters, --html a page with the graph.

    Without --tensor only what looks wrong is reported. The exit code is that of the file.

    Examples:
      gradcli why snippet.py
      gradcli why --fix train.py
      gradcli why train.py --tensor w
      gradcli why --on torch --every 10 train.py
      gradcli why loss.grad --at x=0
      gradcli why "where(x > 0, sqrt(x), 0)" --at x=0
    """
    if not file.endswith(".py"):
        if args:
            raise error("GC721", "only a Python file takes arguments", help="leave out what follows the script")
        if platform.on is not None or platform.every > 1 or any(remedies):
            names = "--on, --every, --fix, --write, --tables and --html"
            raise error("GC721", f"{names} are for Python files", help="leave them out for a script")
        source, options = evaluation(output, file, Point(at, dtype=platform.dtype or "float64"))
        show(output, calculator.why(source, tensor=tensor, **options))
        return 0
    if at:
        raise error("GC721", "--at is for scripts", help="set the values in the Python file")
    begun, tabled = monotonic(), remedies.tables or remedies.html is not None
    how = FileRun(
        library_of(file, platform.on), platform.dtype or "float32", platform.every, remedies.html is not None, tabled
    )
    outcome, watch, framework = recorded(output, file, args, how)
    took = monotonic() - begun
    show_failure(output, outcome)
    result = watching.explain(watch, file, outcome.error, tensor)._replace(on=framework)
    if remedies.fix or remedies.write:
        result = tried_patches.Trials(file, args, how, outcome, took).tried(result)
    table = run_steps.training_steps(watch) if tabled else None
    show(output, result, table if remedies.tables else None)
    if remedies.html is not None:
        graphs = runs.graphs_of(watch, file)._replace(on=framework)
        graph = runs.drawing(graphs, runs.lines(file)) if graphs.forward else None
        page = why_findings.explanation(result, why_findings.PAGE, table)
        output.save(remedies.html, (formats.beside(graph, page, file),))
    if remedies.write:
        written(output, result)
    return int(outcome.code)


def written(output: CommandOutput, result: Explanation) -> None:
    """Write the patches that help, after asking for each file."""
    patches = tried_patches.combined(result.findings)
    if not patches:
        output.say("no patch that helps: nothing is written")
    for patch in patches:
        output.say(f"write this to {visible(patch.file, 200)}? [y/N]")
        if sys.stdin.readline().strip().lower() in ("y", "yes"):
            output.save(patch.file, (tried_patches.applied(patch),))
            output.say(f"wrote {visible(patch.file, 200)}")


def show(output: CommandOutput, explanation: Explanation, steps: TrainingSteps | None = None) -> None:
    """Emit an explanation."""
    output.emit(view(explanation, steps))


def view(explanation: Explanation, steps: TrainingSteps | None = None) -> View:
    """The view of an explanation."""
    return View(
        document=lambda style: why_findings.explanation(explanation, style, steps),
        payload=lambda: why_findings.payload(explanation, steps),
        tidy=lambda: why_findings.tidy(explanation),
    )


FILE = PositionalArgument(
    "file", "FILE.py|FILE|EXPR", "A Python file, a .grad file, or an expression.", expression=True
)
ARGS = PositionalArgument("args", "ARGS", "Arguments of a Python file.", required=False, rest=True)
DECLARATION = Declaration(
    why,
    (FILE, ARGS),
    (
        Option("--tensor", metavar="NAME", help="Explain one tensor: w, model.0.weight, or a leaf of a script."),
        Option("--fix", kind="flag", help="Show fixes as patches, and run the file with each to see whether it helps."),
        Option("--write", kind="flag", help="After --fix: ask, and write the patches that help."),
        Option("--tables", kind="flag", help="Add tables of the training steps and of the parameters."),
        Option("--html", metavar="FILE", help="Write a page with the reasons, the tables and the graph."),
        Option(
            "--at",
            kind="texts",
            metavar="NAME=VALUE,...",
            help="The point of a script: x=2,y=3 or x=[1,2,3]. May be repeated.",
        ),
        Option(
            "--dtype", choices=("float32", "float64"), help="Format of floats. Default: float32, in scripts float64."
        ),
        ON,
        EVERY,
        *OUTPUT,
    ),
    groups=(Remedies, Platform),
    renamed={"--steps": "--tables"},
)
