"""`gradcli plot`: a function with its gradient, a claim, errors of differences by step, or the pattern of a matrix."""

from __future__ import annotations

from gradcli.base.diagnostics import GradcliError, error
from gradcli.interfaces.command_parts.check_inputs import boxes, one_claim, ranges_apart
from gradcli.interfaces.command_parts.result_views import View
from gradcli.interfaces.commands import room
from gradcli.interfaces.options.declaration import Declaration, Option
from gradcli.interfaces.options.shared_options import EVALUATION, SCRIPT, Point, allowed, load, names, presentation

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from gradcli import calculator
    from gradcli.base.results.calculations import Hessian, Jacobian
    from gradcli.calculator import plotting
    from gradcli.interfaces.options.shared_options import CommandOutput
    from gradcli.language.source import Source
    from gradcli.rendering.curves import plots, spy_plots, vector_plots
else:
    calculator, plotting = room("calculator"), room("plotting")
    plots, spy_plots, vector_plots = room("plots"), room("spy_plots"), room("vector_plots")

PICTURES = ("png", "pdf", "jpg")  # by matplotlib


def plot(
    output: CommandOutput,
    script: str,
    *,
    point: Point,
    box: tuple[str, ...],
    claim: str | None,
    step_sizes: bool,
    spy: bool,
) -> int:
    """A function with its gradient, as a plot.

    Along one leaf the value and the derivative are drawn below each other; over two leaves, lines of equal
    value with the direction of the gradient. --claim draws a hand-written derivative beside the right one,
    --step-sizes the error of finite differences at the point against their step. --spy shows which entries of the
    Hessian of a number, or of the Jacobian of an array, may differ from 0.

    In a terminal plots are drawn with characters. --output plot.svg draws a picture; .png, .pdf and .jpg need
    matplotlib (extra: plot).

    Examples:
      gradcli plot "x*exp(-x**2)"
      gradcli plot "sin(a*x)" --at a=2,x=0:6.28
      gradcli plot "x**2 + x*y + 2*y**2"
      gradcli plot "sin(x**2)" --claim "x = cos(x**2)" --box x=0:2
      gradcli plot "exp(x)" --at x=1 --step-sizes
      gradcli plot "sum((x[1:] - x[:-1]**2)**2)" --at "x=ones(40)" --spy
    """
    wrt, bounds = point.wrt, allowed(point.limit, output)
    at, ranges = ranges_apart(point.at)
    leaf, stated = (None, None) if claim is None else one_claim(claim)
    if leaf is not None and wrt not in (None, leaf):
        raise error("GC721", "--claim and --wrt name different leaves", help="leave --wrt out")
    picture = output.format if output.format in PICTURES else None
    if picture and output.settings["output"] is None:
        raise error("GC721", f"--format {picture} needs a file to write", help=f"write --output plot.{picture}")
    if spy:
        return pattern(output, load(script, output, bounds), at=at, wrt=names(wrt), limits=bounds)
    result = plotting.plot(
        load(script, output, bounds),
        at=at,
        wrt=names(leaf or wrt),
        ranges=boxes((*box, *ranges)),
        claim=stated,
        steps=step_sizes,
        limits=bounds,
    )
    if picture:
        output.save(output.settings["output"], plots.figure(result, picture))
        return 0
    return show(output, result, plots, vector_plots)


def pattern(output: CommandOutput, source: Source, **options: Any) -> int:
    """Show where the Hessian, or the Jacobian, has entries."""
    if output.format in PICTURES:
        raise error("GC721", f"--spy draws no {output.format}", help="write --output pattern.svg")
    result: Hessian | Jacobian
    try:
        result = calculator.hessian(source, sparse=True, **options)
    except GradcliError as problem:
        if all(note.code != "GC307" for note in problem.diagnostics):
            raise
        result = calculator.jacobian(source, sparse=True, **options)
    return show(output, result, spy_plots, spy_plots)


def show(output: CommandOutput, result: Any, drawn: Any, pictures: Any) -> int:
    """Write a result in the format that was asked for: the module `pictures` makes the SVG, `drawn` all others."""
    if output.format == "svg":
        output.write((pictures.svg(result),))
    else:
        output.emit(
            View(
                document=lambda style: drawn.plot(result, style),
                payload=lambda: drawn.payload(result),
                tidy=lambda: drawn.tidy(result),
            )
        )
    return 0


AT, WRT, LIMIT = (option for option in EVALUATION if option.spellings[0] in ("--at", "--wrt", "--limit"))
DECLARATION = Declaration(
    plot,
    (SCRIPT,),
    (
        AT,
        WRT,
        Option(
            "--box",
            kind="texts",
            metavar="LEAF=LO:HI",
            help="The range of a leaf, as --at x=0:1 gives it too. Default: 3 to either side of the point.",
        ),
        Option("--claim", metavar="LEAF=SCRIPT", help="A hand-written derivative, drawn next to the right one."),
        Option("--step-sizes", kind="flag", help="Draw the error of finite differences against their step."),
        Option("--spy", kind="flag", help="Draw where the Hessian or the Jacobian has entries."),
        LIMIT,
        *presentation("table", "plain", "json", "csv", "svg", *PICTURES),
    ),
    conflicts={"claim": ("step_sizes", "spy"), "spy": ("step_sizes", "box")},
    renamed={"--steps": "--step-sizes"},
    groups=(Point,),
)
