"""Traces without the nodes that nobody wrote are traces still: what is sent arrives, sums are complete, products are right."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from gradcli import calculator
from gradcli.calculator.traces.folding import MOVING
from gradcli.interfaces import cli
from gradcli.rendering import plain
from gradcli.rendering.document import Style
from gradcli.rendering.documents import trace_tables
from tests.rendering.test_snapshots import on_terminal
from tests.support.rows import all_rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gradcli.base.results.calculations import Passes, Trace

A, X, V, W = [[1.5, 2.0], [3.0, -4.0]], [[1.0, 2.0], [3.0, 4.0], [5.0, 6.5]], [1.0, -2.0], [0.5, 0.25]
SCRIPTS: tuple[tuple[str, dict[str, Any], int], ...] = (  # with the number of inserted nodes
    ("(x*y + x)**2", {"x": 2, "y": 3}, 0),
    ("sum(A @ x)", {"A": A, "x": V}, 2),
    ("sum(A @ x) + sum(A.T @ x)", {"A": A, "x": V}, 3),
    ("mean((X @ w + b - t)**2)", {"X": X, "w": W, "b": 1, "t": [1, 2, 3]}, 4),
    ("sum(exp(A @ x)/sum(exp(A @ x)))", {"A": A, "x": V}, 4),
    ("softmax(x)[0]", {"x": V}, 1),
    ("x[0]*x[-1] + x[0]", {"x": V}, 2),
    ("sum(outer(x, y)*x)", {"x": V, "y": W}, 6),
    ("var(x)", {"x": V}, 2),
    ("sum(concatenate([x, [y, 2]]))", {"x": V, "y": 3}, 1),
    ("sum(stack([x, y])**2)", {"x": 1, "y": 2}, 2),
    ("sum(x[None, :]*y[:, None])", {"x": V, "y": W}, 2),
    ("sum(where(A > 0, A*b, b))", {"A": A, "b": 2}, 2),
    ("sum(maximum(A, x)**2)", {"A": A, "x": V}, 2),
    ("a = x.T; sum(a*a + c)", {"x": A, "c": 2}, 2),
    ("s = sum(x**2, axis=0); s[1]*s[0]", {"x": A}, 2),
    ("sum(inv(A) @ x)", {"A": A, "x": V}, 2),
    ("h = tanh(A @ x + b); sum(h*h) + h[0]", {"A": A, "x": V, "b": W}, 3),
)
IDS = [script for script, _, _ in SCRIPTS]


def shown(trace: Trace) -> Trace | Passes:
    return trace if trace.written is None else trace.written


def close(one: Any, other: Any) -> bool:
    return np.shape(one) == np.shape(other) and bool(np.allclose(one, other, rtol=1e-12, atol=1e-12))


@pytest.mark.parametrize(("script", "at", "inserted"), SCRIPTS, ids=IDS)
def test_what_is_sent_arrives(script: str, at: dict[str, Any], inserted: int) -> None:
    """All that reaches a node adds up to its cotangent; of a leaf, to its gradient. It is read by nodes that are shown."""
    trace = calculator.trace(script, at=at)
    passes = shown(trace)
    assert len(trace.forward) - len(passes.forward) == inserted == sum(step.inserted for step in trace.forward)
    assert not any(step.inserted for step in passes.forward)
    indices = {step.index for step in passes.forward}
    types = {step.index: np.shape(step.value) for step in passes.forward}
    assert all(set(step.inputs) <= indices for step in passes.forward)
    last: dict[int, Any] = {}
    for step in passes.backward:
        if step.index in last:
            assert close(last[step.index], step.cotangent)
        else:
            assert close(step.cotangent, 1.0)  # the output
        assert types[step.index] == np.shape(step.cotangent)
        for sent in step.contributions:
            assert sent.to in indices
            last[sent.to] = sent.accumulated
            assert np.shape(sent.value) == types[sent.to]
    leaves = {step.text: step.index for step in passes.forward if step.primitive == "leaf"}
    for name, value in trace.gradient.items():
        assert close(np.broadcast_to(last[leaves[name]], np.shape(value)), value)


@pytest.mark.parametrize(("script", "at", "inserted"), SCRIPTS, ids=IDS)
def test_contributions_are_cotangents_times_local_partials(script: str, at: dict[str, Any], inserted: int) -> None:
    for step in shown(calculator.trace(script, at=at)).backward:
        for sent in step.contributions:
            if sent.partial is None:
                continue
            product = np.multiply(step.cotangent, sent.partial)
            if sent.summed:
                assert np.isclose(np.sum(product), np.sum(sent.value))
                assert np.size(sent.value) < np.size(product) or np.shape(sent.value) != np.shape(product)
            else:
                assert np.allclose(np.ravel(product), np.ravel(sent.value))


@pytest.mark.parametrize(("script", "at", "inserted"), SCRIPTS, ids=IDS)
def test_the_naive_walk_visits_what_is_shown(script: str, at: dict[str, Any], inserted: int) -> None:
    trace = calculator.trace(script, at=at, why_topo=True)
    passes = shown(trace)
    assert passes.naive is not None and trace.naive is not None
    assert {step.index for step in passes.naive.steps} <= {step.index for step in passes.forward}
    complete = {step.index: step.cotangent for step in passes.backward}
    early = [at for at, step in enumerate(passes.naive.steps) if not close(step.cotangent, complete[step.index])]
    assert passes.naive.parts_at == (early[0] if early else None)
    if passes.naive.parts_at is None:
        assert all(close(passes.naive.gradient[name], value) for name, value in trace.gradient.items())


def test_what_the_script_writes_is_shown() -> None:
    written = {
        "sum(reshape(x, (2, 2)) @ w)": ["reshape"],
        "sum(broadcast_to(w, (3, 2))**2)": ["broadcast"],
        "sum(x.reshape(2, 2).T @ w)": ["reshape", "permute"],
        "def f(a):\n    return reshape(a, (2, 2))\nsum(f(x)*f(y))": ["reshape", "reshape"],
    }
    for script, primitives in written.items():
        trace = calculator.trace(script, at={"x": [1, 2, 3, 4], "y": [1, 2, 3, 4], "w": W})
        assert [
            step.primitive for step in shown(trace).forward if step.primitive in {moving.name for moving in MOVING}
        ] == primitives


# --- on a terminal -------------------------------------------------------------------------------------------


def heading(text: str) -> str:
    """The titles of the backward pass, which may stand on two lines; nothing where it stands as cards."""
    behind = text.partition("after all nodes that read it\n")[2]
    above, rule, _ = behind.partition(" ──")
    return above if rule else ""


@all_rows("cells", [40, 60, 80, 100, 120])
@all_rows(("script", "at", "inserted"), SCRIPTS, ids=IDS)
def test_the_local_partial_is_dropped_last(script: str, at: dict[str, Any], inserted: int, cells: int) -> None:
    text = on_terminal(trace_tables.trace(calculator.trace(script, at=at), Style(None, 40, cells)), cells)
    assert max(map(len, text.splitlines())) <= cells
    found = heading(text)
    if cells >= 80 or "receiver" in found or "so far" in found:
        assert "partial" in found


def test_six_digits_on_a_terminal_all_elsewhere() -> None:
    trace = calculator.trace("x/3 + y", at={"x": 1, "y": 2})
    rounded = on_terminal(trace_tables.trace(trace, Style(None, 40, 80)), 80)
    assert "0.333333" in rounded and "0.3333333" not in rounded and "--digits 17" in rounded
    assert "0.33333333333333331" in on_terminal(trace_tables.trace(trace, Style(17, 40, 80)), 80)
    for style in (Style(), Style(None, 40, None)):
        text = plain.render(trace_tables.trace(trace, style))
        assert "0.3333333333333333" in text and "--digits" not in text
    whole = calculator.trace("x*y", at={"x": 2, "y": 3})
    assert "--digits" not in on_terminal(trace_tables.trace(whole, Style(None, 40, 80)), 80)


def answered(capsys: pytest.CaptureFixture[str], *args: str) -> str:
    assert cli.main(["trace", "sum(A @ x)", "--at", "A=[[1,2],[3,4]],x=[1,2]", *args]) == 0
    return capsys.readouterr().out


def test_all_shows_every_node(capsys: pytest.CaptureFixture[str]) -> None:
    brief = answered(capsys)
    assert "reshape" not in brief and "2 inserted steps are left out: --all shows them" in brief
    whole = answered(capsys, "--all")
    assert whole.count("reshape(shape=") == 2 and "nobody" not in whole
    for style in ("markdown", "latex", "table"):
        assert "reshape" not in answered(capsys, "--format", style)
        assert "reshape" in answered(capsys, "--format", style, "--all")
    for style in ("json", "jsonl", "csv"):
        assert answered(capsys, "--format", style) == answered(capsys, "--format", style, "--all")
        assert "reshape" in answered(capsys, "--format", style)
    assert cli.main(["trace", "x**2", "--at", "x=2", "--plan", "--all"]) == 2
    assert "--all does not go with --plan" in capsys.readouterr().err


@pytest.mark.parametrize(("cells", "few"), [(None, 9), (140, 9), (80, 4)])
def test_large_arrays_are_shown_by_shape_and_norm(cells: int | None, few: int) -> None:
    """A leaf of one entry too many has one row; with --full it has a row for each entry, and no norm is told."""
    for size in (few, few + 1):
        x = np.linspace(1, 2, size)
        trace = calculator.trace("sum(x**2)", at={"x": x})
        documents = [trace_tables.trace(trace, Style(5, 40, cells), full=full) for full in (False, True)]
        short, full = (plain.render(one) if cells is None else on_terminal(one, cells) for one in documents)
        norm = f"{size}, norm {np.linalg.norm(2 * x):.5g}"
        assert (norm in short) == ("--full" in short) == (size > few)
        assert "norm" not in full and f"x[{size - 1}]" in full
        assert (f"x[{size - 1}]" in short) == (size == few)


def test_a_table_off_a_terminal_has_all_digits(capsys: pytest.CaptureFixture[str]) -> None:
    for style in ("table", "plain", "markdown"):
        assert cli.main(["trace", "x/3", "--at", "x=1", "--format", style]) == 0
        assert "0.3333333333333333" in capsys.readouterr().out


def test_names_of_torch_stand_for_the_same_steps() -> None:
    at = {"A": A, "x": V}
    ours, torch = calculator.trace("sum(A @ x)", at=at), calculator.trace("sum(A @ x)", at=at, torch=True)
    assert ours.written is not None and torch.written is not None
    assert steps(ours.written) == steps(torch.written)
    assert [step.primitive for step in torch.written.backward] == ["SumBackward0", "MmBackward0"]


def steps(passes: Passes) -> Sequence[tuple[Any, ...]]:
    return [(step.index, step.inputs, step.inserted) for step in passes.forward]
