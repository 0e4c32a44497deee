"""`gradcli why`: explain why gradients of a Python file or a script are None, zero, NaN or huge."""

from __future__ import annotations

from gradcli.commands import room
from gradcli.commands._declaration import Declaration, Operand, Option
from gradcli.commands._python_file import EVERY, ON, on_torch, recorded, show_failure
from gradcli.commands._shared import OUTPUT, Point, evaluation
from gradcli.commands._views import View
from gradcli.diagnostics import error

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gradcli import calculator
    from gradcli.commands._shared import Output
    from gradcli.observe import why as watching
    from gradcli.rendering.documents import reasons
    from gradcli.results.findings import Explanation
else:
    calculator, watching, reasons = room("calculator"), room("watching"), room("reasons")


def why(
    output: Output,
    file: str,
    args: tuple[str, ...],
    *,
    tensor: str | None,
    at: tuple[str, ...],
    dtype: str | None,
    on: str | None,
    every: int,
) -> int:
    """Why is this gradient None, zero, NaN or huge?

    A Python file is run, and everything that it does with tensors is recorded; its own output is not shown.
    A file that imports torch runs on the installed PyTorch where there is one, else (and with --on gradcli)
    on gradcli's tensors, and the first line says so. --every 10 records every tenth training step.

    Each reason comes with the line and what to do about it: detached, computed under no_grad, not a leaf,
    no path from the loss, added up over several backwards, zeroed, changed in place, a step function, dead
    units, vanishing or exploding, the first NaN. A script is explained at its point.

    Without --tensor only what looks wrong is reported. The exit code is that of the file.

    Examples:
      gradcli why snippet.py
      gradcli why train.py --tensor w
      gradcli why --on torch --every 10 train.py
      gradcli why loss.grad --at x=0
      gradcli why "where(x > 0, sqrt(x), 0)" --at x=0
    """
    if not file.endswith(".py"):
        if args:
            raise error("GC721", "only a Python file takes arguments", help="leave out what follows the script")
        if on is not None or every > 1:
            raise error("GC721", "--on and --every are for Python files", help="leave them out for a script")
        source, options = evaluation(output, file, Point(at, dtype=dtype or "float64"))
        show(output, calculator.why(source, tensor=tensor, **options))
        return 0
    if at:
        raise error("GC721", "--at is for scripts", help="set the values in the Python file")
    outcome, watch, framework = recorded(
        output, file, args, torch=on_torch(file, on), every=every, dtype=dtype or "float32", extents=False, quiet=True
    )
    show_failure(output, outcome)
    show(output, watching.explain(watch, file, outcome.error, tensor)._replace(on=framework))
    return int(outcome.code)


def show(output: Output, explanation: Explanation) -> None:
    """Emit an explanation."""
    output.emit(view(explanation))


def view(explanation: Explanation) -> View:
    """The view of an explanation."""
    return View(
        document=lambda style: reasons.explanation(explanation, style),
        payload=lambda: reasons.payload(explanation),
        tidy=lambda: reasons.tidy(explanation),
    )


FILE = Operand("file", "FILE.py|FILE|EXPR", "A Python file, a .grad file, or an expression.", expression=True)
ARGS = Operand("args", "ARGS", "Arguments of a Python file.", required=False, rest=True)
DECLARATION = Declaration(
    why,
    (FILE, ARGS),
    (
        Option("--tensor", metavar="NAME", help="Explain one tensor: w, model.0.weight, or a leaf of a script."),
        Option(
            "--at",
            many=True,
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
)
