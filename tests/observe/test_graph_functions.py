"""A custom Function in a picture: its own name, what it saved, and where its backward is."""

from __future__ import annotations

import os
from typing import Any

import pytest

from gradcli.eager.torch_alias import aliases
from gradcli.recording import runs
from gradcli.recording.libraries.eager_recorder import EagerWatch
from gradcli.rendering.document import Style
from gradcli.rendering.graphs import formats

SOURCE = """\
import torch


class LogCosh(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, scale):
        t = torch.tanh(x)
        ctx.save_for_backward(x, t)
        return torch.log(torch.cosh(x)) * scale

    @staticmethod
    def backward(ctx, grad):
        x, t = ctx.saved_tensors
        return grad * t * 2, None


class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = 2 * x
        ctx.save_for_backward(y, None)
        return y

    @staticmethod
    def backward(ctx, grad):
        return 2 * grad


w = torch.tensor([0.3, 0.7], requires_grad=True)
hidden = w * w
loss = Double.apply(LogCosh.apply(hidden, 2.0).sum())
loss.backward()
"""


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Any:
    path = tmp_path_factory.mktemp("graph") / "own.py"
    path.write_text(SOURCE)
    watch = EagerWatch(str(path.parent) + os.sep, extents=True)
    assert runs.run_file(str(path), watch=watch, inside=aliases()).code == 0
    return runs.drawing(runs.graphs_of(watch, str(path)), SOURCE.splitlines())


def test_the_name_is_that_of_the_class(graph: Any) -> None:
    by_name = {one.name: one for one in graph.vertices}
    assert {"LogCosh", "Double"} <= by_name.keys()
    assert by_name["LogCosh"].torch == "LogCoshBackward" and by_name["LogCosh"].line == 31
    assert by_name["LogCosh"].note == "saved hidden, t; backward in line 11"
    assert by_name["Double"].note == "saved its result; backward in line 24"


@pytest.mark.parametrize("form", ["tree", "svg", "html"])
def test_what_it_saved_is_told(graph: Any, form: str) -> None:
    told = formats.text(form, graph, Style())
    assert "LogCosh" in told and "saved hidden, t; backward in line 11" in told


def test_machines_read_it_too(graph: Any) -> None:
    nodes = formats.payload(graph)["nodes"]
    assert [one["note"] for one in nodes if "note" in one] == [
        "saved hidden, t; backward in line 11",
        "saved its result; backward in line 24",
    ]
