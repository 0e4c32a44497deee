"""`gradcli graph`: draw the computation of a script or of a Python file."""

from __future__ import annotations

from gradcli.base.diagnostics import error
from gradcli.interfaces.command_parts.python_file import EVERY, ON, FileRun, on_torch, recorded, show_failure
from gradcli.interfaces.command_parts.result_views import View
from gradcli.interfaces.commands import room
from gradcli.interfaces.options.declaration import Declaration, Option, PositionalArgument
from gradcli.interfaces.options.shared_options import EVALUATION, Point, evaluation, presentation

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gradcli import calculator
    from gradcli.base.results.graph_vertices import Graph
    from gradcli.interfaces.options.shared_options import CommandOutput
    from gradcli.recording import runs
    from gradcli.rendering import machine
    from gradcli.rendering.graphs import formats
else:
    calculator, runs = room("calculator"), room("runs")
    formats, machine = room("formats"), room("machine")


def graph(
    output: CommandOutput,
    script: str,
    *,
    point: Point,
    view: str,
    names: str,
    max_nodes: int,
    on: str | None,
    every: int,
) -> int:
    """The graph of a computation, as a tree, a drawing or a page.

    Without a point the graph has types only; with one it holds values, and for a scalar output what each
    node sends back. Above --max-nodes nodes, the nodes of a source line become one box.

    The ending of the output file chooses the format: .svg, .html, .dot, .mmd, .json.

    Details:

    A Python file is run; what it prints is not shown. Its graph is that of its last backward. A file that
    imports torch runs on the installed PyTorch where there is one, else (and with --on gradcli) on gradcli's
    tensors, and the title says so.

    Examples:
      gradcli graph "(x*y+x)**2" --at x=2,y=3
      gradcli graph "(x*y+x)**2" --at x=2,y=3 --output graph.svg
      gradcli graph loss.grad --view backward --output loss.html
      gradcli graph "sin(x)*x" --view gradient --names torch --format mermaid
      gradcli graph snippet.py --view backward --output snippet.html
    """
    code, result = 0, None
    if script.endswith(".py"):
        if point.at or point.wrt or view == "gradient":
            named = "--at" if point.at else "--wrt" if point.wrt else "--view gradient"
            raise error("GC721", f"{named} is for scripts", help="set values, types and leaves in the Python file")
        code, result = ran(output, script, on_torch(script, on), every)
    else:
        if on is not None or every > 1:
            raise error("GC721", "--on and --every are for Python files", help="leave them out for a script")
        source, options = evaluation(output, script, point)
        result = calculator.graph(source, **options, gradient=view == "gradient")
    output.emit(
        View(
            texts=lambda form, look: formats.text(
                form, result, look, backward=view == "backward", torch=names == "torch", most=max_nodes
            ),
            payload=lambda: {**machine.opening("graph"), **formats.payload(result)},
            diagnostics=result.diagnostics,
        )
    )
    return code


def ran(output: CommandOutput, file: str, library: str, every: int) -> tuple[int, Graph]:
    """The exit code of a Python file, and the graph that it built."""
    outcome, watch, framework = recorded(output, file, (), FileRun(library, every=every, extents=True))
    show_failure(output, outcome)
    graphs = runs.graphs_of(watch, file)._replace(on=framework)
    return int(outcome.code), runs.drawing(graphs, runs.lines(file))


SOURCE = PositionalArgument(
    "script", "EXPR|FILE|FILE.py|-", "An expression, a .grad or .py file, or - for standard input.", expression=True
)
FORMATS = ("tree", "json", "dot", "mermaid", "svg", "html")
OPTIONS = (
    Option(
        "--view",
        choices=("forward", "backward", "gradient"),
        default="forward",
        help="Values as they are computed, cotangents as they are sent back, or both with the graph of the gradient.",
    ),
    Option("--names", choices=("gradcli", "torch"), default="gradcli", help="Names of nodes: ours, or PyTorch's."),
    Option(
        "--max-nodes",
        kind="int",
        bounds=(1, 100_000),
        default=150,
        help="Draw at most N nodes one by one; combine more.",
    ),
)
DECLARATION = Declaration(
    graph,
    (SOURCE,),
    (*EVALUATION, *OPTIONS, ON, EVERY, *presentation(*FORMATS)),
    groups=(Point,),
    renamed={"--boxes": "--max-nodes", "--style": "--names"},
)
