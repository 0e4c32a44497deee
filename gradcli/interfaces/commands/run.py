"""`gradcli run`: run a Python file on gradcli's tensors; with --trace, list the graphs that it built."""

from __future__ import annotations

from gradcli.base.diagnostics import error
from gradcli.interfaces.command_parts.python_file import EVERY, ON, FileRun, Platform, recorded, tensors
from gradcli.interfaces.command_parts.result_views import View
from gradcli.interfaces.commands import room
from gradcli.interfaces.options.declaration import Declaration, Option, PositionalArgument
from gradcli.interfaces.options.shared_options import OUTPUT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gradcli.interfaces.options.shared_options import CommandOutput
    from gradcli.recording import runs
    from gradcli.rendering.documents import listings
    from gradcli.rendering.graphs import formats
else:
    formats, listings = room("formats"), room("listings")
    runs = room("runs")


def run(
    output: CommandOutput,
    file: str,
    args: tuple[str, ...],
    *,
    trace: bool,
    graph: str | None,
    platform: Platform,
    backward: int | None,
    last: bool,
) -> int:
    """Run a PyTorch-style Python file on gradcli's tensors.

    The file runs as `python FILE` would run it, with its arguments; `import torch` gives gradcli's tensors,
    with PyTorch's semantics. A missing name is an error that suggests the nearest one. The exit code is the
    file's own.

    Details:

    --trace prints, after the output of the file, the graphs that it built: operations in forward order,
    each backward, what was added into .grad and what .grad is then, with source lines. --backward 3 shows the
    third backward and the operations that it went through, --last the last one. --output writes to a file.

    --graph draws the graph of the last backward into a file: .svg, .html, .dot or .mmd.

    With --on torch the file runs on the installed PyTorch, and trace and graph show what PyTorch built.

    Options come before FILE or directly after it; from the first other argument on, everything is the
    file's (-- ends the options at once).

    Examples:
      gradcli run snippet.py
      gradcli run --trace snippet.py
      gradcli run --trace -o graphs.json snippet.py
      gradcli run --trace --last train.py
      gradcli run train.py --epochs 3
      gradcli run --on torch --trace snippet.py
      gradcli run --on torch --graph loss.svg snippet.py
      gradcli run - < snippet.py
    """
    library, dtype = platform.on or "gradcli", platform.dtype or "float32"
    chosen = -1 if last else backward
    if chosen is not None and not trace:
        hint = "write --trace --last, or --trace --backward N"
        raise error("GC721", "--backward and --last say what --trace shows", help=hint)
    if graph is not None:
        formats.form_of(graph)  # an ending without a format is reported before the file runs
        output.expect(graph)
    if not trace and graph is None:
        return int(runs.run_file(file, args, inside=tensors(file, library, dtype)).code)
    how = FileRun(library, dtype, platform.every, extents=True, quiet=False)
    outcome, watch, framework = recorded(output, file, args, how)
    graphs = runs.graphs_of(watch, file)._replace(on=framework)
    if graph is not None:
        picture = runs.drawing(graphs, runs.lines(file))
        output.save(graph, formats.saved(graph, picture))
    if trace:
        graphs = graphs if chosen is None else graphs.only(chosen)
        output.emit(
            View(
                document=lambda style: listings.graphs(graphs, style),
                payload=lambda: listings.payload(graphs),
                tidy=lambda: listings.tidy(graphs),
            )
        )
    return int(outcome.code)


FILE = PositionalArgument("file", "FILE.py|-", "A Python file, or - for standard input.")
ARGS = PositionalArgument(
    "args", "ARGS", "Arguments of the file, as it finds them in sys.argv.", required=False, rest=True
)
DECLARATION = Declaration(
    run,
    (FILE, ARGS),
    (
        Option("--trace", kind="flag", help="Print the graphs that the file built, after what it prints."),
        Option("--graph", metavar="FILE", help="Draw the graph of the last backward: FILE.svg, .html, .dot or .mmd."),
        ON,
        EVERY,
        Option("--dtype", choices=("float32", "float64"), default="float32", help="Default format of floats."),
        Option(
            "--backward", kind="int", bounds=(1, None), metavar="N", help="With --trace: show only the Nth backward."
        ),
        Option("--last", kind="flag", help="With --trace: show only the last backward."),
        *OUTPUT,
    ),
    groups=(Platform,),
    conflicts={"last": ("backward",)},
    renamed={"--real-torch": "--on=torch"},
)
