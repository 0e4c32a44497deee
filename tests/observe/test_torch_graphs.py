"""The graphs of a program on PyTorch and on our tensors: the same nodes, edges, values and gradients.

What `run --trace` gives as JSON is compared, apart from the order in which nodes were made inside one call. Where the
two differ, a table says why; a program in it that no longer differs fails the test.
"""

from __future__ import annotations

import json
import math
import os
import warnings
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import gradcli.eager
from gradcli.eager.torch_alias import aliases
from gradcli.recording import runs
from gradcli.recording.libraries.eager_recorder import EagerWatch
from gradcli.rendering import machine
from gradcli.rendering.documents import listings
from tests.support.eager_snippets import SNIPPETS
from tests.support.eager_snippets_more import MORE
from tests.support.eager_training_snippets import OPTIM, USES
from tests.support.eager_tutorial_snippets import TUTORIALS

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.peers
torch: Any = pytest.importorskip("torch")
from gradcli.recording.libraries.torch_recorder import TorchWatch  # noqa: E402

SAMPLES = sorted((Path(__file__).parents[2] / "samples" / "eager").rglob("*.py"))
HEAD = "import torch\nfrom torch import nn\nimport torch.nn.functional as F\n"
PROGRAMS = SNIPPETS | MORE | OPTIM | USES | TUTORIALS

DIFFERENT = {
    "our rules have nodes of their own in the graph of a derivative": [
        *("derivatives_of_derivatives", "hessian_vector_product", "newton_step", "create graph", "third order"),
        *("sum of squares in three orders", "complex second", "second of relu", "second derivative of a sigmoid"),
        *("second derivative of a quotient", "gradient penalty", "penalty with only_inputs", "heat equation residual"),
        *("residual of a differential equation", "meta learning through modules", "meta learning, one inner step"),
        *("meta-learning with a learned step", "conjugate gradient with products"),
    ],
    "inside a transform, in forward mode and in a batched backward nothing is recorded on PyTorch": [
        *("func_transforms", "newton in two dimensions", "forward and reverse agree", "forward_mode", "batched"),
        *("batched graph", "grad by position", "dual over reverse", "reverse over dual"),
    ],
    "torch.autograd.functional runs operations of its own": [
        *("jacobian_and_hessian", "jacobian", "hessian", "hvp", "jacobian of a network"),
        "hessian times vector, Pearlmutter",
    ],
    "gradcheck calls the function as often as each of the two needs": [
        *(
            "gradcheck",
            "gradcheck float32",
            "gradcheck_discontinuity",
            "gradcheck_in_place",
            "gradcheck_nondeterministic",
        ),
        *("gradcheck_passes", "gradcheck_single_precision", "gradcheck_wrong_rule", "function wrong gradient"),
        *("checking a rule", "implicit function as a Function"),
    ],
    "PyTorch's CopySlices holds what was written into a view; ours leads to it": [
        *("writing_into_a_view", "in place view op", "in place transposed", "in place slice", "in place slice saved"),
        *("in place takes history", "a diagonal is written"),
    ],
    "an operation that raises an error has left nodes before": [
        *("half and singles", "in place leaf view", "inference in place tracked"),
    ],
    "a backward that PyTorch refuses has begun before": [
        *("backward inputs plain", "backward seeds count", "grad no grad input"),
    ],
    "ours is composed of other operations": [
        *("formats of reductions", "complex z.conj().real"),
        "linalg torch.logdet(m)",
    ],
    "PyTorch runs a node of which nobody asked a gradient": ["backward inputs intermediate"],
    "PyTorch does not tell of a leaf that a backward begins at": ["backward leaf itself"],
    "what a hook or a change in place replaced is seen before it, not after it": [
        *("packing saved tensors", "dirty", "detach_"),
    ],
    "register_multi_grad_hook of PyTorch makes a view of each leaf to find its accumulator": [
        "hook on several gradients"
    ],
    "test_against_torch.py says why the values differ": ["in place y.logit_()"],
}
WHY = {name: reason for reason, names in DIFFERENT.items() for name in names}


def payload(path: Path, on_torch: bool) -> Any:
    """The graphs of a run, as `run --trace --format json` gives them."""
    folder = str(path.parent) + os.sep
    watch = TorchWatch(torch, folder, extents=True) if on_torch else EagerWatch(folder, extents=True)
    (torch if on_torch else gradcli.eager).manual_seed(0)
    with runs.silenced(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        runs.run_file(str(path), watch=watch, tell=False, inside=None if on_torch else aliases("float32"))
    assert all(note.endswith(" nothing is recorded") for note in getattr(watch, "notes", ()))
    return json.loads(machine.text(listings.payload(runs.graphs_of(watch, str(path)))))


def near(one: Any, other: Any) -> bool:
    """Whether numbers agree in single precision; PyTorch does not show every value inside of a call."""
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(near, one, other))
    if isinstance(one, (int, float)) and isinstance(other, (int, float)):
        return math.isclose(one, other, rel_tol=2e-3, abs_tol=1e-4)
    return bool(one == other) or other is None


def identities(forward: Any) -> dict[int | None, int]:
    """For each row a number that does not depend on the order of the rows."""
    found: dict[int | None, int] = {None: 0}
    for row in forward:
        what = (row["node"], row["name"], row["line"], row["text"], row["type"])
        found[row["index"]] = hash((*what, tuple(found[read] for read in row["reads"])))
    return found


def unlike(mine: list[Any], theirs: list[Any], key: Callable[[Any, int], Any], values: Callable[[Any], Any]) -> Any:
    """The rows of two lists, `mine` and `theirs`, that have no counterpart with the same key and near values."""
    groups: dict[Any, tuple[list[Any], list[Any]]] = defaultdict(lambda: ([], []))
    for side, rows in enumerate((mine, theirs)):
        for row in rows:
            groups[key(row, side)][side].append(values(row))
    ordered = [(sorted(a, key=str), sorted(b, key=str), a, b) for a, b in groups.values()]
    return [(a, b) for a, b, first, second in ordered if not (near(a, b) or near(first, second))]


def differences(ours: Any, theirs: Any) -> list[Any]:
    """What differs between the graphs of two runs."""
    known = identities(ours["forward"]), identities(theirs["forward"])
    found = unlike(
        ours["forward"], theirs["forward"], lambda row, side: known[side][row["index"]], lambda x: x["value"]
    )
    if len(ours["backwards"]) != len(theirs["backwards"]):
        return [*found, "the number of backwards"]

    def step(row: Any, side: int) -> Any:
        sent = sorted(known[side][one["to"]] for one in row["contributions"])
        return row["node"], row["line"], known[side][row["index"]], tuple(sent)

    def added(row: Any, side: int) -> Any:
        return row["name"], known[side].get(row["index"]), row["count"]

    for mine, other in zip(ours["backwards"], theirs["backwards"], strict=True):
        found += [name for name in ("line", "retain_graph", "create_graph") if mine[name] != other[name]]
        found += unlike(mine["steps"], other["steps"], step, lambda row: [row["norm"], row["cotangent"]])
        found += unlike(mine["added"], other["added"], added, lambda row: [row["value"], row["grad"]])
    return found


def compared(name: str, path: Path) -> None:
    """Compare the graphs of a file; they differ where the table says so, and only there."""
    found = differences(payload(path, False), payload(path, True))
    assert bool(found) is (name in WHY), found or f"no longer differs: {WHY[name]}"


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)
def test_a_sample_has_the_same_graphs(path: Path) -> None:
    compared(path.stem, path)


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_has_the_same_graphs(name: str, tmp_path: Path) -> None:
    path = tmp_path / "file.py"
    path.write_text(HEAD + PROGRAMS[name])
    compared(name, path)
