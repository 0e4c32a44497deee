"""Runs a Python file with everything recorded, on our tensors or on PyTorch: for `run`, `why` and `graph`."""

from __future__ import annotations

import os
import re
from contextlib import nullcontext

from gradcli.base.diagnostics import error
from gradcli.base.records import NamedTuple
from gradcli.interfaces.commands import room
from gradcli.interfaces.options.declaration import Option

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from contextlib import AbstractContextManager

    from gradcli.eager import torch_alias
    from gradcli.interfaces.options.shared_options import CommandOutput
    from gradcli.recording import runs
    from gradcli.recording.libraries import eager_recorder, jax_recorder, torch_recorder
else:
    runs, eager_recorder = room("runs"), room("eager_recorder")
    torch_alias, torch_recorder, jax_recorder = room("torch_alias"), room("torch_recorder"), room("jax_recorder")

TORCH, JAX, OWN = "torch", "jax", "gradcli"  # the library whose run is recorded
IMPORT = re.compile(rb"^[ \t]*(?:import|from)[ \t]+(torch|jax)\b", re.MULTILINE)
ON = Option(
    "--on",
    choices=("torch", "gradcli"),
    help="Run a Python file on the installed PyTorch, or on gradcli's own tensors.",
)
EVERY = Option(
    "--every", kind="int", bounds=(1, 1_000_000), default=1, help="On PyTorch: record only every Nth training step."
)


def on_torch(file: str, on: str | None) -> str:
    """The library on which a file runs: by --on, else PyTorch if it imports torch and PyTorch is installed, or ours."""
    library = library_of(file, on)
    return on or OWN if library == JAX else library


def library_of(file: str, on: str | None) -> str:
    """The library whose run is recorded: JAX or PyTorch if the file imports it and it is installed, or by --on.

    --on chooses the tensors of files that may import torch: it is nothing to a file that imports only JAX.
    """
    from importlib.util import find_spec

    named = set() if file == "-" else {name.decode() for name in IMPORT.findall(runs.read(file))}
    if named == {JAX} and find_spec(JAX) is not None:
        return JAX
    return on or (TORCH if TORCH in named and find_spec(TORCH) is not None else OWN)


def tensors(file: str, library: str, dtype: str) -> AbstractContextManager[None]:
    """The context in which a file runs, with its format of floats."""
    if library == OWN:
        return torch_alias.aliases(dtype)
    if file != "-":
        runs.read(file)  # a file that cannot be read is reported before a library is loaded
    if library == JAX:
        return jax_recorder.default_dtype(jax_recorder.installed(), dtype)
    return torch_recorder.default_dtype(torch_recorder.installed(), dtype)


class Platform(NamedTuple):
    """The options on the library that a file runs on."""

    on: str | None
    every: int
    dtype: str | None


class FileRun(NamedTuple):
    """How a file is run and recorded: on which library, the format of floats, every how many steps.

    `extents`: large arrays leave their smallest and largest entries; `steps`: how far steps move parameters is kept;
    `quiet`: what the file prints is not shown, and a traceback neither (`show_failure`).
    """

    library: str
    dtype: str = "float32"
    every: int = 1
    extents: bool = False
    steps: bool = False
    quiet: bool = True


def recorded(
    output: CommandOutput, file: str, args: Sequence[str], how: FileRun, texts: Mapping[str, str] | None = None
) -> tuple[runs.RunOutcome, runs.Watch, str]:
    """Run a file; returns its outcome, the record, and the library with its version, empty for our own tensors.

    `texts` stand in the place of files of these names.
    """
    folder = os.path.dirname(os.path.abspath(file)) + os.sep
    if how.library != TORCH and how.every > 1:
        raise error("GC721", "--every needs a run on PyTorch", help="add --on torch")
    inside = tensors(file, how.library, how.dtype)
    watch: runs.Watch
    name = ""
    if how.library == TORCH:
        torch = torch_recorder.installed()
        watch = torch_recorder.TorchWatch(torch, folder, how.extents, how.every, how.steps)
        name = f"PyTorch {torch.__version__}" + (f", one step in {how.every}" if how.every > 1 else "")
    elif how.library == JAX:
        jax = jax_recorder.installed()
        watch, name = jax_recorder.JaxWatch(jax, folder, how.extents), f"JAX {jax.__version__}"
    else:
        watch = eager_recorder.EagerWatch(folder, how.extents, how.steps)
    with runs.silenced() if how.quiet else nullcontext():
        outcome = runs.run_file(file, args, inside=inside, watch=watch, tell=not how.quiet, texts=texts)
    for note in watch.notes:
        output.say(f"note: {note}")
    return outcome, watch, name


def show_failure(output: CommandOutput, outcome: runs.RunOutcome) -> None:
    """Say why a file whose output is hidden has failed: its traceback, or the code that it gave to `exit`."""
    if isinstance(outcome.error, SystemExit):
        if outcome.code:
            output.say(f"the file ended with {runs.one_line(outcome.error)}")
    elif outcome.error is not None:
        runs.report(outcome.error)
