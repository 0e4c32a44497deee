"""Runs a Python file with everything recorded, on our tensors or on PyTorch: for `run`, `why` and `graph`."""

from __future__ import annotations

import os
import re
from contextlib import nullcontext

from gradcli.commands import room
from gradcli.commands._declaration import Option
from gradcli.diagnostics import error
from gradcli.records import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from contextlib import AbstractContextManager

    from gradcli import observe
    from gradcli.commands._shared import Output
    from gradcli.eager import run_recorder, torch_alias
    from gradcli.frameworks import torch_recorder
else:
    observe, run_recorder = room("observe"), room("run_recorder")
    torch_alias, torch_recorder = room("torch_alias"), room("torch_recorder")

IMPORT = re.compile(rb"^[ \t]*(?:import|from)[ \t]+torch\b", re.MULTILINE)
ON = Option(
    "--on",
    choices=("torch", "gradcli"),
    help="Run a Python file on the installed PyTorch, or on gradcli's own tensors.",
)
EVERY = Option(
    "--every", kind="int", low=1, high=1_000_000, default=1, help="On PyTorch: record only every Nth training step."
)


def on_torch(file: str, on: str | None) -> bool:
    """Whether a file runs on the installed PyTorch: by --on, else if it imports torch and PyTorch is installed."""
    if on is not None:
        return on == "torch"
    from importlib.util import find_spec

    return file != "-" and IMPORT.search(observe.read(file)) is not None and find_spec("torch") is not None


def tensors(file: str, torch: bool, dtype: str) -> AbstractContextManager[None]:
    """The context in which a file runs: `torch` is the installed PyTorch or gradcli's tensors; its format of floats."""
    if not torch:
        return torch_alias.aliases(dtype)
    if file != "-":
        observe.read(file)  # a file that cannot be read is reported before PyTorch is loaded
    return torch_recorder.default_dtype(torch_recorder.installed(), dtype)


class Recording(NamedTuple):
    """How a file is run and recorded: on `torch` or on our tensors, the format of floats, every how many steps.

    `extents`: large arrays leave their smallest and largest entries; `steps`: how far steps move parameters is kept;
    `quiet`: what the file prints is not shown, and a traceback neither (`show_failure`).
    """

    torch: bool
    dtype: str = "float32"
    every: int = 1
    extents: bool = False
    steps: bool = False
    quiet: bool = True


def recorded(
    output: Output, file: str, args: Sequence[str], how: Recording, texts: Mapping[str, str] | None = None
) -> tuple[observe.Outcome, observe.Watch, str]:
    """Run a file; returns its outcome, the record, and the version of its PyTorch, empty for our own tensors.

    `texts` stand in the place of files of these names.
    """
    folder = os.path.dirname(os.path.abspath(file)) + os.sep
    if not how.torch and how.every > 1:
        raise error("GC721", "--every needs a run on PyTorch", help="add --on torch")
    inside = tensors(file, how.torch, how.dtype)
    watch: observe.Watch
    if how.torch:
        torch = torch_recorder.installed()
        watch = torch_recorder.TorchWatch(torch, folder, how.extents, how.every, how.steps)
    else:
        watch = run_recorder.EagerWatch(folder, how.extents, how.steps)
    with observe.silenced() if how.quiet else nullcontext():
        outcome = observe.run_file(file, args, inside=inside, watch=watch, tell=not how.quiet, texts=texts)
    for note in watch.notes:
        output.say(f"note: {note}")
    sampled = f", one step in {how.every}" if how.every > 1 else ""
    return outcome, watch, f"PyTorch {torch.__version__}{sampled}" if how.torch else ""


def show_failure(output: Output, outcome: observe.Outcome) -> None:
    """Say why a file whose output is hidden has failed: its traceback, or the code that it gave to `exit`."""
    if isinstance(outcome.error, SystemExit):
        if outcome.code:
            output.say(f"the file ended with {observe.one_line(outcome.error)}")
    elif outcome.error is not None:
        observe.report(outcome.error)
