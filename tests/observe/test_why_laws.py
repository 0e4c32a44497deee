"""Laws of recording: it changes no result, it fails on nothing, and what it tells can be rendered."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import gradcli.eager
from gradcli import why
from gradcli.eager._core import events
from gradcli.eager.torch_alias import aliases
from gradcli.recording import runs
from gradcli.recording.libraries.eager_recorder import EagerWatch
from gradcli.rendering.document import Style
from gradcli.rendering.documents import listings
from gradcli.rendering.documents import why_findings as reasons
from gradcli.why import story
from tests.eager.test_against_torch import agree, left_by
from tests.rendering.test_schema import parsed, validator
from tests.support.eager_snippets import SNIPPETS
from tests.support.eager_snippets_more import MORE
from tests.support.rows import all_rows

HERE = str(Path(__file__).parents[1]) + os.sep


ALL = SNIPPETS | MORE


@pytest.fixture(scope="module", autouse=True)
def files_are_parsed_once() -> Iterator[None]:
    """The lines that a record of a snippet names stand in the same few files."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(story, "SourceTree", cache(story.SourceTree))
        yield


@all_rows("name", ALL)
def test_recording_changes_nothing_and_fails_on_nothing(name: str) -> None:
    text = ALL[name]
    plain, plain_error, plain_warnings = left_by(text, gradcli.eager)
    watch = EagerWatch(HERE)
    names: dict[str, object] = {}
    with watch.watching(names):
        found, error, warnings = left_by(text, gradcli.eager)
    assert events.own.current is None
    assert (error, warnings) == (plain_error, plain_warnings)
    assert sorted(found) == sorted(plain)
    for variable in plain:
        agree(found[variable], plain[variable], f"{name}: {variable}")
    explanation = why.explain(watch, "snippet.py", None)
    validator("why").validate(parsed(reasons.payload(explanation)))
    assert reasons.explanation(explanation, Style()).blocks
    graphs = runs.graphs_of(watch, "snippet.py")
    validator("run").validate(parsed(listings.payload(graphs)))
    assert listings.graphs(graphs, Style()).blocks and listings.tidy(graphs).columns


def test_an_entry_comes_after_what_it_reads() -> None:
    watch = EagerWatch(HERE)
    with watch.watching({}):
        left_by(
            "x = torch.ones(3, requires_grad=True)\ny = x * 2\ny[0] = 5\nz = (y.T @ y).sum()\nz.backward()",
            gradcli.eager,
        )
    assert all(below < mark for mark, entry in watch.entries.items() for below in entry.inputs)
    assert list(watch.entries) == sorted(watch.entries)


FUNCTIONS = """
import sys, torch

class Net:
    def __init__(self):
        self.w = torch.ones(2, requires_grad=True)
    def __call__(self, x):
        hidden = x * self.w
        return hidden.sum()

def depth(x, n):
    deeper = x * 2
    return deeper if n == 0 else depth(deeper, n - 1)

def numbers():
    for i in range(2):
        made = torch.full((2,), float(i), requires_grad=True) * 1
        yield made

def fails():
    lost = torch.ones(3) * 2
    raise ValueError

def train():
    net = Net()
    loss = net(depth(torch.ones(2), 3))
    try:
        fails()
    except ValueError:
        pass
    total = sum(one.sum() for one in numbers())
    (loss + total).backward()

before = sys.gettrace()
train()
same = sys.gettrace() is before
"""


def test_names_in_functions_are_those_at_their_ends(tmp_path: Path) -> None:
    """Functions inside functions, recursion, generators and functions that fail, without a trace of all calls."""
    path = tmp_path / "functions.py"
    path.write_text(FUNCTIONS)
    watch = EagerWatch(str(tmp_path) + os.sep)
    outcome = runs.run_file(str(path), watch=watch, inside=aliases())
    assert outcome.code == 0 and outcome.names["same"] is True
    names = {(subject.scope, subject.name) for subject in watch.subjects.values()}
    assert {("__call__", "hidden"), ("depth", "deeper"), ("fails", "lost"), ("numbers", "made")} <= names
    assert {("train", "loss"), ("train", "total"), ("train", "net.w")} <= names
    assert not watch.functions.running
    fine = next(subject for subject in watch.subjects.values() if subject.name == "net.w")
    assert fine.grad == "fine" and fine.norm == pytest.approx(16 * 2**0.5)


@pytest.mark.parametrize("scale", [1.0, 1e-12, 1e-30, 1e25, 3e38, 0.0])
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_sizes_in_single_precision_are_those_in_double(scale: float, dtype: str) -> None:
    from gradcli.recording.runs.tensors import size_of

    with np.errstate(all="ignore"):
        array = (np.linspace(-1, 1, 40).reshape(5, 8) * scale).astype(dtype)
    size, exact = size_of(array), size_of(array, True)
    assert size.finite == exact.finite == bool(np.isfinite(array).all())
    assert size.norm == pytest.approx(exact.norm, rel=1e-6, nan_ok=True)
    for bad in (np.nan, np.inf):
        array[2, 3] = bad
        assert not size_of(array).finite


@pytest.mark.peers
def test_every_kind_of_node_that_why_reads_is_one_of_pytorch() -> None:
    from gradcli.why.readings import READINGS, WHY_ZERO, kind_of

    torch = pytest.importorskip("torch")
    kinds = set(map(kind_of, dir(torch._C._functions)))
    assert not [kind for reading in READINGS.values() for kind in reading - kinds]
    reasons = [READINGS[word] for word in WHY_ZERO]
    assert len(set().union(*reasons)) == sum(map(len, reasons))  # a kind has one reason at most
