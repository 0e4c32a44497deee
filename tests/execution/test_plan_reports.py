"""Plans on GradBench; what the report of a plan says of order, memory and passes."""

from __future__ import annotations

import gc
import json
import tracemalloc
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import gradcli
from gradcli import calculator
from gradcli.base.results.plan_reports import PlanLoop
from gradcli.calculator.repeated.planning import plan_question
from gradcli.execution.compiler.numpy_plan import Plan
from gradcli.interfaces import cli
from gradcli.rendering.documents import planned
from tests.execution.test_plans import question
from tests.project.test_gradbench import CASES, DATA, FOLDER
from tests.rendering.test_schema import validator
from tests.support.passes import PASSES
from tests.support.rounding import allowed, beyond

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from gradcli.base.results.plan_reports import PlanReport

MIB = 1 << 20


def check(tape: Any, values: Mapping[str, Any], made: Any) -> None:
    """A plan gives what the evaluator gives, as far as rounding allows."""
    assert not beyond(made.answer(values), allowed(tape, values))


def test_a_constant_gradient_has_the_shape_of_its_leaf() -> None:
    f = gradcli.compile("x = zeros(3)\nz = zeros(1)\nsum(sin(x)) + sum(z)")
    for _ in range(2):
        slopes = f.value_and_grad(x=np.linspace(0, 1, 40_000), z=np.ones(1))[1]
        assert np.array_equal(slopes["z"], np.ones(1))
        assert slopes["z"].shape == (1,)


SHORT = [case for case in CASES if case[3] != "particle-1"]  # 100,000 nodes


@pytest.mark.parametrize(("name", "point"), [(case[0], case[2]) for case in SHORT], ids=[case[3] for case in SHORT])
def test_gradbench(name: str, point: dict[str, Any]) -> None:
    leaves = [leaf for leaf in point if leaf not in DATA]
    f = gradcli.compile((FOLDER / f"{name}.grad").read_text(encoding="utf-8"), wrt=leaves)
    found, given = f._question("plan", plan_question, point)
    if found.tape.scalar:  # generated code runs it
        return
    made = found.ready("float64")
    check(found.tape, found.values(given), made)
    passes = [one.name for one in f.plan(**point).passes]
    assert passes[0] == "record" and set(passes) <= {"record", "constants", *PASSES}


def test_an_answer_that_is_off_is_seen() -> None:
    tape, values = question("sum(tanh(A@x)**2)", {"A": np.ones((30, 20)), "x": np.linspace(0, 1, 20)})

    class Off(Plan):
        def answer(self, given: Mapping[str, Any]) -> list[Any]:
            return [np.multiply(one, 1 + 1e-11) for one in tape.run(given, backend="numpy")]

    check(tape, values, Plan(tape))
    with pytest.raises(AssertionError):
        check(tape, values, Off(tape))


@pytest.mark.parametrize(
    ("names", "line"),
    [
        (("x", "y", "y"), "x, y, y"),
        (("u", *["w"] * 99), "u, w (99 times)"),
        (tuple([f"#{i}" for i in range(20)]), ", ".join([f"#{i}" for i in range(20)])),
        (tuple([f"#{i}" for i in range(1000)]), ", ".join([f"#{i}" for i in range(19)]) + ", ... (1,000 in all)"),
    ],
)
def test_long_lists_of_operands_fit_a_line(names: tuple[str, ...], line: str) -> None:
    assert planned._operands(names) == line


# --- memory -----------------------------------------------------------------------------------------------------------------

N = 100_000
ROOMS: list[tuple[str, Callable[[], dict[str, Any]]]] = [
    ("sum(logsumexp(X, axis=1))", lambda: {"X": np.random.default_rng(0).normal(size=(N, 20))}),
    ("sum(100*(x[1:] - x[:-1]**2)**2)", lambda: {"x": np.linspace(0, 1, 20 * N)}),
    ("sum((X@w - 1)**2)", lambda: {"X": np.random.default_rng(0).normal(size=(N, 20)), "w": np.ones(20)}),
    ("sum(sort(x)*cumsum(x))", lambda: {"x": np.linspace(0, 1, 10 * N)}),
    ("y = where(x > 0.5, x*c, sin(x)); sum(cumsum(y)*y)", lambda: {"x": np.linspace(0, 1, 10 * N), "c": 2.0}),
    ("sum(norm(X, axis=1))", lambda: {"X": np.random.default_rng(0).normal(size=(2 * N, 6))}),
    ("sum(tanh(A@B)**2)", lambda: {"A": np.ones((900, 900)), "B": np.ones((900, 900))}),
]


@pytest.mark.parametrize(("text", "point"), ROOMS, ids=[row[0] for row in ROOMS])
def test_memory_is_what_the_report_says(text: str, point: Callable[[], dict[str, Any]]) -> None:
    given = point()
    f = gradcli.compile(text)
    report = f.plan(**given)
    f.value_and_grad(**given)
    made = gradcli.compile(text)
    tracemalloc.start()
    try:
        result = made.value_and_grad(**given)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    told = report.memory.results + report.memory.constants + report.memory.temporaries
    assert report.memory.inputs == sum(np.asarray(one).nbytes for one in given.values())
    assert report.memory.results == 8 + sum(np.asarray(one).nbytes for one in result[1].values())
    assert peak < told + 16 * MIB, (peak / MIB, told / MIB, report.runs)
    if report.runs == "plan":  # others may use the memory of earlier results again
        assert told < peak + 16 * MIB, (peak / MIB, told / MIB)


def test_what_can_be_cut_needs_no_more_than_64_mib_beside() -> None:
    wide = "sum(norm(X, axis=1))", lambda: {"X": np.random.default_rng(0).normal(size=(11 * N, 6))}
    for text, point in (*ROOMS[:3], ("sum(exp(-X**2)@w)", ROOMS[2][1]), wide):
        held = gradcli.compile(text).plan(**point()).memory
        assert held.temporaries + held.constants < 64 * MIB, (text, held)


def test_memory_of_a_run_is_free_when_it_ends() -> None:
    """A large workspace does not wait for the collector of cycles."""
    random = np.random.default_rng(0)
    given = {name: random.normal(size=(1_200, 1_200)) for name in "ABC"}
    f = gradcli.compile("y = tanh(A@B@C)\nsum(logsumexp(y, axis=1)) + sum(y**2)")
    told = f.plan(**given).memory
    f.value_and_grad(**given)
    gc.collect()
    gc.disable()
    tracemalloc.start()
    try:
        for _ in range(4):
            f.value_and_grad(**given)
        kept, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
        gc.enable()
    assert told.temporaries > 64 * MIB  # else it is kept on purpose
    assert kept < MIB
    assert peak < told.results + told.constants + told.temporaries + 16 * MIB


# --- what is shown -------------------------------------------------------------------------------------------------------------


def report_of(text: str, **at: Any) -> PlanReport:
    return calculator.plan(text, at=at)


def test_who_runs_what() -> None:
    assert report_of("(x*y + x)**2", x=2, y=3).runs == "straight line"
    assert report_of("sum(x**2)", x=[1.0, 2.0]).runs == "plan"
    assert report_of("sum(sin(x))", x=np.ones(100_000)).runs == "plan"
    assert calculator.plan("sum(x**2)", at={"x": [1.0, 2.0]}, dtype="complex128").runs == "evaluator"


def test_steps_are_named_by_what_reads_them() -> None:
    report = report_of("sum(tanh(A@x)**2)", A=np.ones((30, 20)), x=np.ones(20))
    steps = [step for row in report.order for step in (row.steps if isinstance(row, PlanLoop) else (row,))]
    places = {f"#{step.place}" for step in steps}
    for step in steps:
        for name in step.reads:
            assert not name.startswith("#") or name.split("[")[0].split(".T")[0] in places
    assert steps[0].reads == ("A", "x")
    assert steps[0].operations == 2 * 30 * 20
    assert sum(step.memory == "result" for step in steps) == 3
    reused = [step for step in steps if step.memory.startswith("again ")]
    assert reused
    assert all(step.memory.removeprefix("again ") in places for step in reused)


def test_a_notebook_shows_it() -> None:
    shown = report_of("sum(x**2)", x=[1.0, 2.0])._repr_mimebundle_()
    assert "sum over axis 0" in shown["text/plain"]
    assert "<table>" in shown["text/html"]


@pytest.mark.parametrize(
    ("text", "at"),
    [("(x*y + x)**2", "x=2,y=3"), ("sum(tanh(A@x)**2)", "A=randn(30,20),x=randn(20)"), ("sum(exp(x))", "x=randn(33000)"),
     ("x + y", "x=inf,y=1"), ("sum(x)", "x=[inf,-inf,1]"), ("sum(logsumexp(X, axis=1))", "X=randn(3000,3)")],
)  # fmt: skip
def test_command(text: str, at: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["trace", text, "--at", at, "--plan"]) == 0
    shown = capsys.readouterr().out
    assert "Memory while it runs" in shown
    assert cli.main(["trace", text, "--at", at, "--plan", "--format", "json"]) == 0
    payload = json.loads(capsys.readouterr().out)
    validator("trace").validate(payload)
    assert payload["plan"]["memory"]["peak"] == sum(
        payload["plan"]["memory"][name] for name in ("inputs", "results", "constants", "temporaries")
    )
    assert cli.main(["trace", text, "--at", at, "--plan", "--format", "jsonl"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    for line in lines:
        validator("trace-line").validate(line)
    assert len(lines) == 1 + len(payload["plan"]["order"])
    for form in ("csv", "markdown", "latex", "table"):
        assert cli.main(["trace", text, "--at", at, "--plan", "--format", form]) == 0
        assert capsys.readouterr().out


def test_two_views_at_once_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    for other in (["--why-topo"], ["--names", "torch"]):
        assert cli.main(["trace", "x*x", "--at", "x=2", "--plan", *other]) == 2
        assert f"{other[0]} does not go with --plan" in capsys.readouterr().err


def test_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "plan.json"
    assert cli.main(["trace", "sum(x**2)", "--at", "x=[1,2]", "--plan", "--output", str(out)]) == 0
    assert json.loads(out.read_text())["plan"]["runs"] == "plan"
