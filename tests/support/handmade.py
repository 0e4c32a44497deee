"""Results made by hand, so that what is shown can be tested without computing anything."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from gradcli.base.diagnostics import Diagnostic, Span
from gradcli.base.results.calculations import (
    BackwardStep,
    Contribution,
    Evaluation,
    ForwardStep,
    Gradient,
    Hessian,
    Jacobian,
    NaiveTrace,
    Trace,
)
from gradcli.base.results.plan_reports import PlanLoop, PlanMemory, PlanPass, PlanReport, PlanStep
from gradcli.batch.totals import Totals
from gradcli.checks.report import Report


class Text:
    """A source of text lines, as diagnostics need it."""

    def __init__(self, text: str, name: str = "<expression>") -> None:
        self.name = name
        self.text = text

    def line(self, number: int, /) -> str:
        lines = self.text.split("\n")
        return lines[number - 1] if number <= len(lines) else ""


TEXT = "(x*y + x)**2"
POINT = {"x": 2.0, "y": 3.0}

NOTE = Diagnostic("GC401", "log is not defined at -2.0", Span(1, 1, 1, 7), severity="warning")

evaluation = Evaluation("hypot(x, y)", {"x": 3.0, "y": 4.0}, 5.0)
several = Evaluation("x*y, [x, y]", POINT, (6.0, np.array([2.0, 3.0])))
gradient = Gradient(TEXT, POINT, 64.0, {"x": 64.0, "y": 32.0})
noted = Gradient("log(x)", {"x": -2.0}, float("nan"), {"x": -0.5}, None, (NOTE,))
higher = Gradient("x**3", {"x": 2.0}, 8.0, {"x": 12.0}, {"x": (12.0, 12.0, 6.0)})
arrays = Gradient(
    "r = X @ w - t\nmean(r**2)",
    {
        "X": np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]),
        "w": np.array([0.5, -1.0]),
        "t": np.array([1.0, 0.0, -1.0]),
    },
    6.25,
    {
        "w": np.array([-14.999999999999998, -20.0]),
        "X": np.array([[-5.0 / 6, 10.0 / 6]] * 3),
    },
)
large = Gradient("sum(w**2)", {"w": np.arange(2000.0)}, 2664667000.0, {"w": 2 * np.arange(2000.0)})
hessian = Hessian(
    "x**2*y + sin(y)",
    {"x": 1.5, "y": -0.5},
    -1.604425538604203,
    {"x": -1.5, "y": 3.1275825618903728},
    {"x": {"x": -1.0, "y": 3.0}, "y": {"x": 3.0, "y": 0.479425538604203}},
)
vector_hessian = Hessian(
    "sum(w**3)",
    {"w": np.array([1.0, 2.0]), "b": 1.0},
    9.0,
    {"w": np.array([3.0, 12.0]), "b": 0.0},
    {
        "w": {"w": np.array([[6.0, 0.0], [0.0, 12.0]]), "b": np.zeros(2)},
        "b": {"w": np.zeros(2), "b": 0.0},
    },
)
jacobian = Jacobian("[x*y, x + y]", POINT, np.array([6.0, 5.0]), {"x": np.array([3.0, 1.0]), "y": np.array([2.0, 1.0])})
jacobians = Jacobian("x*y, x + y", POINT, (6.0, 5.0), ({"x": 3.0, "y": 2.0}, {"x": 1.0, "y": 1.0}))


def step(index: int, primitive: str, inputs: tuple[int, ...], value: Any, text: str, column: int) -> ForwardStep:
    return ForwardStep(index, primitive, inputs, "f64", value, text, Span(1, column, 1, column + 1), {})


FORWARD = (
    step(0, "leaf", (), 2.0, "x", 2),
    step(1, "leaf", (), 3.0, "y", 4),
    step(2, "mul", (0, 1), 6.0, "x*y", 3),
    step(3, "add", (2, 0), 8.0, "x*y + x", 5),
    ForwardStep(4, "pow", (3,), "f64", 64.0, TEXT, Span(1, 8, 1, 10), {"n": 2}),
)
BACKWARD = (
    BackwardStep(4, "pow", 1.0, (Contribution(3, 16.0, 16.0, 16.0),)),
    BackwardStep(3, "add", 16.0, (Contribution(2, 1.0, 16.0, 16.0), Contribution(0, 1.0, 16.0, 16.0))),
    BackwardStep(2, "mul", 16.0, (Contribution(0, 3.0, 48.0, 64.0), Contribution(1, 2.0, 32.0, 32.0))),
    BackwardStep(1, "leaf", 32.0, ()),
    BackwardStep(0, "leaf", 64.0, ()),
)
NAIVE = NaiveTrace(
    (
        BACKWARD[0],
        BACKWARD[1],
        BackwardStep(0, "leaf", 16.0, ()),
        BACKWARD[2],
        BackwardStep(1, "leaf", 32.0, ()),
    ),
    2,
    {"x": 16.0, "y": 32.0},
)
trace = Trace(TEXT, POINT, 64.0, FORWARD, BACKWARD, {"x": 64.0, "y": 32.0})
naive = Trace(TEXT, POINT, 64.0, FORWARD, BACKWARD, {"x": 64.0, "y": 32.0}, NAIVE)


plan = PlanReport(
    "sum(tanh(A @ x)**2)",
    {"x": [1.0, 2.0]},
    "plan",
    "arrays of fixed shapes: calls of NumPy, recorded once",
    "plan",
    2,
    19,
    4,
    (
        PlanStep("1", "matrix product", ("A", "x"), "f64[300,1]", 120_000, 2_400, "", Span(1, 10, 1, 15)),
        PlanLoop(
            "2",
            100_000,
            6_250,
            2,
            (
                PlanStep("2.1", "subtract", ("#1", "1"), "f64[100000]", 100_000, 800_000, "", None),
                PlanStep("2.2", "exp", ("#2.1[1:]",), "f64[99999]", 99_999, 799_992, "again #2.1", None),
            ),
        ),
        PlanStep("3", "det", ("#2.2",), "f64", None, 8, "result", None),
    ),
    PlanMemory(481_600, 481_608, 0, 4_936),
    (
        PlanPass("record", "19 operations become 9 steps: equal ones are one"),
        PlanPass("blocks", "1 loop over blocks of arrays that stay in cache"),
    ),
)


def check(verdict: str, passed: bool, **fields: Any) -> Any:
    """A check as `checks` reports it."""
    usual: dict[str, Any] = {
        "id": "case-1",
        "file": None,
        "line": None,
        "kind": "gradient",
        "leaf": "x",
        "evidence": {},
        "message": "",
        "diagnostics": (),
        "expected": None,
        "seconds": 0.25,
    }
    return SimpleNamespace(verdict=verdict, passed=passed, **{**usual, **fields})


def report(*checks: Any, expression: str = TEXT, file: str | None = None, diagnostics: Any = ()) -> Any:
    """A report as `checks` returns it."""
    return Report(expression, checks, tuple(diagnostics), file)


def totals(*reports: Any, stopped: str = "", selected: int = 0) -> Totals:
    """The counts of some reports."""
    counts = Totals(selected=selected or len(reports), stopped=stopped)
    for one in reports:
        counts.add(one)
    return counts


good = report(
    check("CERTIFIED", True, leaf="x", message="within 2 ulp at 4 points"),
    check("PROVED", True, kind="claim", leaf="y"),
)
bad = report(
    check("CERTIFIED", True, leaf="w", file="models/loss.grad", message="within 3 ulp at 4 points"),
    check(
        "DISAGREES",
        False,
        id="loss-w",
        kind="claim",
        leaf="w",
        file="models/loss.grad",
        line=9,
        message="the claim is 1.5 times the derivative",
        evidence={
            "claimed": [1.5, -3.0],
            "exact": ["1.0", "-2.0"],
            "counterexample": {"at": {"w": 0.5, "b": -1.0}, "entry": "", "exact": "1.0", "claimed": "1.5"},
            "diagnosis": [
                {
                    "name": "constant factor",
                    "text": "consistent with a constant factor 3/2: the derivative is (2/3) of the claim",
                }
            ],
            "points": 4,
        },
    ),
    check("KINK", False, leaf="b", file="models/loss.grad", line=4, evidence={"left": -1.0, "right": 1.0}),
    check("INCONCLUSIVE", False, leaf="c", file="models/loss.grad", evidence={"tried": ["balls", "differences"]}),
    expression="loss",
    file="models/loss.grad",
)
