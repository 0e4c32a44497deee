"""A Python file and its arguments in, what it prints and its exit code out; with --trace the graphs it built."""

from __future__ import annotations

import os

from gradcli.commands import room
from gradcli.commands._declaration import Declaration, Operand, Option
from gradcli.commands._shared import OUTPUT
from gradcli.commands._views import View
from gradcli.diagnostics import error

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gradcli.commands._shared import Output
    from gradcli.eager import running
    from gradcli.rendering import listings
else:
    listings, running = room("listings"), room("running")


def run(output: Output, file: str, args: tuple[str, ...], *, trace: bool, real_torch: bool, dtype: str) -> int:
    """Run a PyTorch-style Python file on gradcli's tensors.

    The file runs as `python FILE` would run it, with its arguments; `import torch` gives gradcli's tensors,
    with PyTorch's semantics. What is missing says so by name, with the nearest name that exists. The exit
    code is the file's own.

    --trace prints, behind the output of the file, the graphs that it built: operations in forward order,
    each backward, and what was added into .grad, with source lines. --output writes them to a file.

    Options stand before FILE or directly behind it; from the first other argument on, everything is the
    file's (-- ends the options at once).

    Examples:
      gradcli run snippet.py
      gradcli run --trace snippet.py
      gradcli run --trace -o graphs.json snippet.py
      gradcli run train.py --epochs 3
      gradcli run --real-torch snippet.py
      gradcli run - < snippet.py
    """
    if real_torch:
        if trace:
            raise error("GC721", "--trace shows gradcli's own graphs, not those of the installed PyTorch")
        if file != "-":
            running.read(file)  # a file that cannot be read is told first
        running.installed().set_default_dtype(getattr(running.installed(), dtype))
        return int(running.run_file(file, args, alias=False).code)
    watch = running.Watch(os.path.dirname(os.path.abspath(file)) + os.sep, extents=True) if trace else None
    outcome = running.run_file(file, args, dtype=dtype, watch=watch)
    if watch is not None:
        graphs = running.graphs_of(watch, file)
        output.emit(
            View(
                document=lambda style: listings.graphs(graphs, style),
                payload=lambda: listings.payload(graphs),
                tidy=lambda: listings.tidy(graphs),
            )
        )
    return int(outcome.code)


FILE = Operand("file", "FILE.py|-", "A Python file, or - for standard input.")
ARGS = Operand("args", "ARGS", "Arguments of the file, as it finds them in sys.argv.", required=False, rest=True)
DECLARATION = Declaration(
    run,
    (FILE, ARGS),
    (
        Option("--trace", kind="flag", help="Print the graphs that the file built, behind what it prints."),
        Option("--real-torch", kind="flag", help="Leave `import torch` to the installed PyTorch."),
        Option("--dtype", choices=("float32", "float64"), default="float32", help="Default format of floats."),
        *OUTPUT,
    ),
)
