"""How often a right gradient is called wrong, and a wrong one right: over a table of functions, and over the samples.

The usual suite takes a slice; `pytest -m deep -s` prints the whole table.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize

import gradcli
from gradcli import check_callable
from gradcli.language import read_source
from tests.support.callable_cases import Case, cases

pytestmark = pytest.mark.usefixtures("values_only")
FOLDER = Path(__file__).parents[2] / "samples"
NAMES = ["x", "y", "z"]
ALLOWED = 0.005  # the share of false alarms that is promised at most
# what is planted in the first argument's gradient, and the share that has to be called wrong; none may pass
PLANTED: dict[str, tuple[Callable[[Any], Any], float]] = {
    "1e-6 relative": (lambda g: g * (1 + 1e-6), 0.95),
    "1e-4 relative": (lambda g: g * (1 + 1e-4), 0.99),
    "1 %": (lambda g: g * 1.01, 0.99),
    "sign": (lambda g: -g, 0.99),
    "zero": (lambda g: 0 * g, 0.99),
    "1e-4 of the largest, in one entry": (lambda g: g + 1e-4 * np.abs(g).max() * one_hot(g), 0.99),
}


def one_hot(gradient: Any) -> Any:
    found = np.zeros(np.shape(gradient))
    found.flat[np.argmax(np.abs(gradient))] = 1.0
    return found


def verdicts(case: Case, df: Callable[..., Any], seed: int) -> list[Any]:
    report = check_callable(case.f, df, at=case.point(seed), names=NAMES[: len(case.arguments)], title=case.name)
    return list(report.checks)


def measured(points: int, every: int = 1) -> Counter[str]:
    """The verdicts on right gradients."""
    found: Counter[str] = Counter()
    for case in cases()[::every]:
        for seed in range(points):
            found.update(one.verdict for one in verdicts(case, case.df, seed))
    return found


def planted(change: Callable[[Any], Any], points: int, every: int = 1) -> Counter[str]:
    """The verdicts on gradients that are wrong by the first argument."""
    found: Counter[str] = Counter()
    for case in cases()[::every]:
        for seed in range(points):

            def wrong(*arguments: Any, case: Case = case) -> Any:
                right = case.df(*arguments)
                if isinstance(right, tuple):
                    return (change(np.asarray(right[0])), *right[1:])
                return change(np.asarray(right))

            right = case.df(*case.point(seed))
            if np.any(right[0] if isinstance(right, tuple) else right):
                found[verdicts(case, wrong, seed)[0].verdict] += 1
    return found


def judged(found: Counter[str], text: str) -> None:
    total = sum(found.values())
    print(f"{text}: {dict(found)} of {total}")
    assert total and found["DISAGREES"] <= ALLOWED * total, found
    assert found["AGREES"] >= 0.99 * total, found


def test_the_table_is_large() -> None:
    assert len({case.name for case in cases()}) == len(cases()) >= 150


def test_right_gradients_agree() -> None:
    judged(measured(1), "right gradients")


@pytest.mark.parametrize("name", PLANTED)
def test_planted_errors_never_pass(name: str) -> None:
    change, share = PLANTED[name]
    found = planted(change, 1, every=3)
    assert found["AGREES"] == 0, found
    assert found["DISAGREES"] >= share * sum(found.values()), found


def at_mixed_magnitudes(points: int, every: int = 1) -> Counter[str]:
    """The verdicts at points whose entries lie up to twelve orders of magnitude apart, as far as f is finite there."""
    found: Counter[str] = Counter()
    for case in cases()[::every]:
        for seed in range(points):
            generator = np.random.default_rng([seed, 7])
            point = [np.asarray(one) * 10 ** generator.uniform(-6, 6, np.shape(one)) for one in case.point(seed)]
            at = tuple(one if one.ndim else float(one) for one in point)
            try:
                with np.errstate(all="ignore"):
                    if not np.isfinite(case.f(*at)):
                        continue
            except OverflowError:  # Python's own numbers
                continue
            report = check_callable(case.f, case.df, at=at, names=NAMES[: len(at)], title=case.name, timeout=30)
            found.update(one.verdict for one in report.checks)
    return found


def at_minima(every: int = 1) -> Counter[str]:
    """The verdicts where a minimiser stops: gradients that are almost zero, of numbers that are not."""
    found: Counter[str] = Counter()
    bounded = ("rosenbrock", "least squares", "logistic", "booth", "matyas", "rastrigin", "styblinski", "huber")
    bounded += ("quadratic", "sum of squares", "poisson", "variance", "mean of squares", "cumulative", "convolution")
    for case in [one for one in cases() if one.name.startswith(bounded)][::every]:
        x = np.array(case.point(0)[0], dtype=float)
        if x.ndim != 1:
            continue
        stopped = minimize(case.f, x, jac=case.df, method="BFGS").x
        report = check_callable(case.f, case.df, at=stopped, names=["x"], title=case.name)
        found.update(one.verdict for one in report.checks)
    return found


def test_points_of_mixed_magnitude() -> None:
    found = at_mixed_magnitudes(1, every=3)
    assert sum(found.values()) > 40 and found["DISAGREES"] == 0, found


def test_where_a_minimiser_stops() -> None:
    found = at_minima()
    assert sum(found.values()) >= 12 and found["DISAGREES"] == 0, found


@pytest.mark.deep
def test_many_points_of_mixed_magnitude() -> None:
    found = at_mixed_magnitudes(20)
    total = sum(found.values())
    print(f"mixed magnitudes: {dict(found)} of {total}")
    assert found["DISAGREES"] <= ALLOWED * total


@pytest.mark.deep
def test_right_gradients_agree_at_many_points() -> None:
    judged(measured(60), "right gradients, 60 points each")


@pytest.mark.deep
@pytest.mark.parametrize("name", PLANTED)
def test_planted_errors_never_pass_at_many_points(name: str) -> None:
    change, share = PLANTED[name]
    found = planted(change, 6)
    print(f"{name}: {dict(found)}")
    assert found["AGREES"] == 0, found
    assert found["DISAGREES"] >= share * sum(found.values()), found


def scripts() -> list[Path]:
    """Samples whose gradient is that of their value: nothing is held, no rule is written by hand."""
    held = ("detach", "stop_gradient", ".vjp(", "# expect: kink", "# expect: undefined", "round(", "step(")
    found = []
    for path in sorted(FOLDER.glob("*/*.grad")):
        text = path.read_text(encoding="utf-8")
        if path.parent.name != "errors" and not any(word in text for word in held):
            found.append(path)
    return found


def of_script(path: Path, points: int) -> Counter[str]:
    """The verdicts on the engine's own gradient of a sample, as if it were a black box, at its point and beside it."""
    found: Counter[str] = Counter()
    source = read_source(str(path))
    try:
        result = gradcli.grad(source)
    except gradcli.GradcliError:  # several outputs
        return found
    base = {name: np.asarray(result.at[name], dtype=float) for name in result.gradient}
    compiled = gradcli.compile(source)
    for seed in range(points if base else 0):
        generator = np.random.default_rng(seed)
        at = {
            name: value * (1 + 0.2 * generator.uniform(-1, 1, value.shape)) if seed else value
            for name, value in base.items()
        }
        point = {name: value if value.shape else float(value) for name, value in at.items()}
        report = check_callable(
            lambda **leaves: compiled(**leaves),
            lambda **leaves: compiled.value_and_grad(**leaves)[1],
            at=point,
            title=path.stem,
            timeout=30,
        )
        found.update(one.verdict for one in report.checks)
    return found


@pytest.mark.deep
def test_gradients_of_the_samples_agree_as_black_boxes() -> None:
    found: Counter[str] = Counter()
    for path in scripts():
        found += of_script(path, 4)
    total = sum(found.values())
    print(f"samples: {dict(found)} of {total}")
    assert total > 400 and found["DISAGREES"] <= ALLOWED * total
