"""Laws of recording: it changes no result, it fails on nothing, and what it tells can be rendered."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import gradcli.eager
from gradcli.eager import recorder, running, why
from gradcli.rendering import listings, reasons
from gradcli.rendering.document import Style
from tests.eager_snippets import SNIPPETS
from tests.eager_snippets_more import MORE
from tests.test_eager_against_torch import agree, left_by
from tests.test_rendering_schema import parsed, validator

HERE = str(Path(__file__).parent) + os.sep


ALL = SNIPPETS | MORE


@pytest.mark.parametrize("name", ALL)
def test_recording_changes_nothing_and_fails_on_nothing(name: str) -> None:
    text = ALL[name]
    plain, plain_error, plain_warnings = left_by(text, gradcli.eager)
    watch = running.Watch(HERE)
    names: dict[str, object] = {}
    with watch.watching(names):
        found, error, warnings = left_by(text, gradcli.eager)
    assert recorder.current is None
    assert (error, warnings) == (plain_error, plain_warnings)
    assert sorted(found) == sorted(plain)
    for variable in plain:
        agree(found[variable], plain[variable], f"{name}: {variable}")
    explanation = why.explain(watch, "snippet.py", None)
    validator("why").validate(parsed(reasons.payload(explanation)))
    assert reasons.explanation(explanation, Style()).blocks
    graphs = running.graphs_of(watch, "snippet.py")
    validator("run").validate(parsed(listings.payload(graphs)))
    assert listings.graphs(graphs, Style()).blocks and listings.tidy(graphs).columns


def test_an_entry_comes_after_what_it_reads() -> None:
    watch = running.Watch(HERE)
    with watch.watching({}):
        left_by(
            "x = torch.ones(3, requires_grad=True)\ny = x * 2\ny[0] = 5\nz = (y.T @ y).sum()\nz.backward()",
            gradcli.eager,
        )
    assert all(below < mark for mark, entry in watch.entries.items() for below in entry.inputs)
    assert list(watch.entries) == sorted(watch.entries)
