"""Row 6: a warm verdict without proofs: against the bare evaluation in balls, and against 10,000 formulas a minute."""

from __future__ import annotations

from collections.abc import Callable
from itertools import cycle
from typing import Any

from tests.benchmarks.driver import Row, raced, row

FORMULAS = (
    "sin(x)*exp(x) + sqrt(x)",
    "x**3/(1 + x**2)",
    "log(1 + x**2)*cos(x)",
    "exp(-x**2/2)/sqrt(2*pi)",
    "tanh(x)*x",
    "sqrt(1 + x**2)",
    "1/(1 + exp(-x))",
    "erf(x)*x",
    "x*log(x) - x",
    "(1 + x)**(1/x)",
)
X = 1.3
A_MINUTE = 10_000
Found = tuple[Callable[[], None], Any]


def programs() -> list[tuple[Any, Any, Any, Any]]:
    """Of each formula: the value, its leaf, the engine's gradient, the point."""
    from gradcli.language.parser import parse
    from gradcli.lowering import lower
    from gradcli.transforms import derivatives

    found = []
    for text in FORMULAS:
        program = lower(parse(text), at={"x": X}).program
        output, leaf = program.outputs[0], program.leaves["x"].node
        found.append((output, leaf, derivatives.grad(output, [leaf])[0], {"x": ([X], ())}))
    return found


def certified(calls: int) -> Found:
    """E by series, R in balls, their relation."""
    from gradcli.checks.derivatives.claim_comparison import ClaimComparison
    from gradcli.checks.derivatives.derivative_query import DerivativeQuery, PointEvaluation

    made = [
        (ClaimComparison(DerivativeQuery(output, leaf, ("x",)), judged), point)
        for output, leaf, judged, point in programs()
    ]

    def compared(judging: ClaimComparison, point: Any) -> Any:
        return judging.compared(PointEvaluation(judging.query, point, judging.literals))

    def work() -> None:
        for _, (judging, point) in zip(range(calls), cycle(made), strict=False):
            compared(judging, point)

    return work, [compared(judging, point)["claimed"][0] for judging, point in made]


def bare(calls: int) -> Found:
    """The value and the gradient program in balls, with as many bits."""
    from gradcli.checks.evaluate import ball_numbers, balls

    made = programs()
    with ball_numbers.precision(ball_numbers.START_BITS):
        field = balls.BallField()

    def work() -> None:
        with ball_numbers.precision(ball_numbers.START_BITS):
            for _, (output, _, judged, point) in zip(range(calls), cycle(made), strict=False):
                balls.read(field, [output, judged], point)

    with ball_numbers.precision(ball_numbers.START_BITS):
        return work, [float(balls.read(field, [judged], point)[0].flat[0]) for _, _, judged, point in made]


def checks(calls: int) -> Found:
    """Text to report: parsed, lowered, judged at four points."""
    from gradcli.checks import check_script

    def work() -> None:
        for _, text in zip(range(calls), cycle(FORMULAS), strict=False):
            check_script(text, at={"x": X}, prove=False)

    verdicts = [check_script(text, at={"x": X}, prove=False).checks[0].verdict for text in FORMULAS]
    return work, [float(verdict == "CERTIFIED") for verdict in verdicts]


def run(rounds: int, small: bool) -> list[Row]:
    """At most 3 times the bare evaluation; 10,000 formulas a minute."""
    calls = 20 if small else 400
    times = raced({"ours": f"{__name__}:certified", "balls": f"{__name__}:bare"}, rounds, calls)
    whole = raced({"ours": f"{__name__}:checks"}, rounds, calls)
    return [
        row("9 certified derivative", times["ours"] / calls, times["balls"] / calls, 3.0, "bare balls"),
        row("9 formula checked", whole["ours"] / calls, 60 / A_MINUTE, 1.0, "10,000 a minute"),
    ]
