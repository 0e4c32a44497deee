"""Runs a Python file with everything recorded, on our tensors or on PyTorch: for `run`, `why` and `graph`."""

from __future__ import annotations

import os
import re

from gradcli.commands import room
from gradcli.commands._declaration import Option
from gradcli.diagnostics import error

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from gradcli.commands._shared import Output
    from gradcli.eager import running
    from gradcli.eager.running.script import Outcome
    from gradcli.frameworks import torch_recorder
else:
    running, torch_recorder = room("running"), room("torch_recorder")

IMPORT = re.compile(rb"^[ \t]*(?:import|from)[ \t]+torch\b", re.MULTILINE)
ON = Option(
    "--on",
    choices=("torch", "gradcli"),
    help="The tensors of a Python file: the installed PyTorch's, or gradcli's own.",
)
EVERY = Option(
    "--every", kind="int", low=1, high=1_000_000, default=1, help="On PyTorch: record only every Nth training step."
)


def on_torch(file: str, on: str | None) -> bool:
    """Whether a file runs on the installed PyTorch: where that is said, or it imports torch and there is one."""
    if on is not None:
        return on == "torch"
    from importlib.util import find_spec

    return file != "-" and IMPORT.search(running.read(file)) is not None and find_spec("torch") is not None


def recorded(
    output: Output, file: str, args: Sequence[str], *, torch: bool, every: int, dtype: str, extents: bool, quiet: bool
) -> tuple[Outcome, running.Watch, str]:
    """Run a file; what it left, the record, and the name of its PyTorch, empty for our own tensors.

    `quiet`: what it prints is not shown, and a traceback neither (`show_failure`).
    """
    folder = os.path.dirname(os.path.abspath(file)) + os.sep
    if not torch:
        if every > 1:
            raise error("GC721", "--every samples the steps of a run on PyTorch", help="add --on torch")
        ours = running.Watch(folder, extents)
        return run(file, args, ours, quiet=quiet, dtype=dtype), ours, ""
    if file != "-":
        running.read(file)  # a file that cannot be read is reported before PyTorch is loaded
    installed = running.installed()
    watch = torch_recorder.TorchWatch(installed, folder, extents, every)
    with torch_recorder.default_dtype(installed, dtype):
        outcome = run(file, args, watch, quiet=quiet, alias=False)
    for note in watch.notes:
        output.say(f"note: {note}")
    sampled = f", one step in {every}" if every > 1 else ""
    return outcome, watch, f"PyTorch {installed.__version__}{sampled}"


def run(
    file: str,
    args: Sequence[str],
    watch: running.Watch,
    *,
    quiet: bool,
    dtype: str | None = None,
    alias: bool = True,
) -> Outcome:
    """Run a file, its output shown or not."""
    if not quiet:
        return running.run_file(file, args, watch=watch, dtype=dtype, alias=alias)
    with running.hushed():
        return running.run_file(file, args, watch=watch, dtype=dtype, alias=alias, tell=False)


def show_failure(output: Output, outcome: Outcome) -> None:
    """Say why a file whose output is hidden has failed: its traceback, or the code that it gave to `exit`."""
    if isinstance(outcome.error, SystemExit):
        if outcome.code:
            output.say(f"the file ended with {running.told(outcome.error)}")
    elif outcome.error is not None:
        running.report(outcome.error)
