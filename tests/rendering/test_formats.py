"""What the finders really find can be shown: every variant of every kind of result, in every format.

`test_rendering_snapshots` shows results made by hand. Here the results come from the finders, so a finder that fills
a record with something else than the renderer expects fails in the format that reads it.
"""

from __future__ import annotations

import contextlib
import io
import itertools
import math
import os
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from gradcli import calculator, checks, why
from gradcli.base.results import findings
from gradcli.base.results.curves import step_sequence
from gradcli.calculator.script_reasons import FIXES as SCRIPT_CURES
from gradcli.eager.torch_alias import aliases
from gradcli.interfaces import cli
from gradcli.interfaces.command_parts.result_views import View, calculation
from gradcli.interfaces.commands.trace import planned_view, traced_view
from gradcli.interfaces.commands.why import view as why_view
from gradcli.language import read_source
from gradcli.recording import runs
from gradcli.recording.libraries.eager_recorder import EagerWatch
from gradcli.rendering.document import Style
from gradcli.rendering.documents.convergence import convergence
from gradcli.why.fixes import FIXES
from tests.checks.test_corpus import claims_of
from tests.rendering.test_report_formats import READERS, text_of
from tests.rendering.test_schema import LINES, SCHEMAS, parsed, validator
from tests.rendering.test_snapshots import every_format
from tests.support.corpus import corpus
from tests.support.report_views import report_view
from tests.support.rows import all_rows

if TYPE_CHECKING:
    from collections.abc import Iterable

ROOT = Path(__file__).parents[2]
WHY = sorted((ROOT / "samples" / "eager" / "why").glob("*.py"))


def shown(view: View) -> str:
    """A view in every format; its JSON obeys the schema."""
    payload = parsed(view.payload())
    validator(payload["command"]).validate(payload)
    for line in view.records():
        validator(LINES.get(line["command"], line["command"])).validate(parsed(line))
    return every_format(view)


# --- why -----------------------------------------------------------------------------------------------------

DIVERGING = {
    "scalar": "w = torch.tensor(1.0, requires_grad=True)\nfor _ in range(60):\n    l = (w*3 - 1)**2\n    l.backward()\n"
    "    with torch.no_grad():\n        w -= 100*w.grad\n    w.grad = None\n",
    "mlp": "m = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))\n"
    "o = torch.optim.SGD(m.parameters(), lr=1e3)\nx, y = torch.randn(16, 4), torch.randn(16, 1)\nfor _ in range(20):\n"
    "    o.zero_grad()\n    l = torch.nn.functional.mse_loss(m(x), y)\n    l.backward()\n    o.step()\n",
}


def explained(path: Path, tensor: str | None = None) -> findings.Explanation:
    watch = EagerWatch(str(path.parent) + os.sep)
    with runs.silenced(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        outcome = runs.run_file(str(path), watch=watch, tell=False, inside=aliases())
    return why.explain(watch, str(path), outcome.error, tensor)


@all_rows("path", WHY, ids=lambda path: path.stem)
def test_every_reason_in_every_format(path: Path) -> None:
    found = explained(path, "x" if path.stem == "partly" else None)
    text = shown(why_view(found))
    for one in found.findings:
        assert text.replace("\\", "").count(one.reason) >= 9  # three widths, three digits, plain, and five formats


@pytest.mark.parametrize("name", DIVERGING)
def test_losses_that_diverge_in_every_format(name: str, tmp_path: Path) -> None:
    path = tmp_path / "file.py"
    path.write_text(f"import torch\ntorch.manual_seed(0)\n{DIVERGING[name]}")
    found = explained(path)
    (one,) = [one for one in found.findings if one.reason == "diverged"]
    assert isinstance(one.evidence, findings.Growth)
    first, last = one.evidence.norms
    assert 1e3 * first < last < float("inf")
    assert "diverged" in shown(why_view(found))


@pytest.mark.parametrize("style", ["table", "plain", "markdown", "latex", "json", "jsonl", "csv"])
def test_a_loss_that_diverges_by_the_command(style: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file.py").write_text(f"import torch\n{DIVERGING['scalar']}")
    assert cli.main(["why", "--on", "gradcli", "--format", style, str(tmp_path / "file.py")]) == 0
    assert "lower the learning rate" in capsys.readouterr().out


def test_the_schema_names_the_fields_of_every_record_of_a_finding() -> None:
    told = SCHEMAS["why"]["properties"]["findings"]["items"]["properties"]["evidence"]["properties"]
    records = findings.Evidence.__args__  # type: ignore[attr-defined]
    fields = {name for record in records for name in record._fields}
    assert set(told) == fields | {"tensors"}
    finders = "".join(path.read_text("utf-8") for path in (ROOT / "gradcli" / "why").rglob("*.py"))
    finders += (ROOT / "gradcli" / "calculator" / "script_reasons.py").read_text("utf-8")
    assert not [record.__name__ for record in records if f"{record.__name__}(" not in finders]


SCRIPTS: dict[str, tuple[str, dict[str, Any], str | None]] = {
    "const": ("const k = 2\nx = 3.0\nk*x", {}, "k"),
    "no-path": ("x = 2.0\ny = 3.0\nz = 2*y\nx", {}, "y"),
    "detached": ("detach(x)*y", {"x": 1, "y": 2}, None),
    "branch": ("where(x > 0, sqrt(x), 0)", {"x": 0}, None),
    "step-function": ("sum(floor(x))", {"x": [2.5, 2.0]}, None),
    "kink": ("abs(x) + x", {"x": 0}, None),
    "saturated": ("sigmoid(50*x)", {"x": 1}, None),
    "times-zero": ("x*detach(x - 1)", {"x": 1}, None),
    "flat": ("(x - 1)**2", {"x": 1}, None),
    "cancels": ("x - x + 0*y", {"x": 1, "y": 2}, None),
    "not-finite": ("exp(log(x))", {"x": 0}, None),
    "not-finite, matrix": ("sum(log(A @ x))", {"A": [[1, 2], [0, 0]], "x": [1, 1]}, None),
    "not-finite, point": ("2*x", {"x": float("inf")}, None),
    "vanishing": ("exp(-x**2)", {"x": 8}, None),
    "exploding": ("1/x", {"x": 1e-9}, None),
}


def test_every_reason_of_scripts_in_every_format() -> None:
    told = set()
    for name, (script, at, tensor) in SCRIPTS.items():
        found = calculator.why(script, at=at, tensor=tensor)
        told |= {one.reason for one in found.findings}
        assert name.partition(",")[0] in shown(why_view(found))
    assert told == set(SCRIPT_CURES)
    assert told - set(FIXES)  # two lists of their own


# --- check ---------------------------------------------------------------------------------------------------


def in_every_format(reports: Iterable[Any]) -> set[str]:
    """The verdicts of reports, each of which every format can show, for all checks and for failing ones."""
    verdicts = set()
    for report in reports:
        for show in ("all", "failing"):  # with and without `--digits`
            shown(report_view([report], show))
        failed = sum(not one.passed for one in report.checks)
        for name, reader in READERS.items():
            assert reader(text_of(name, report)) == (min(failed, 10) if name == "github" else failed), name
        verdicts |= {one.verdict for one in report.checks}
    return verdicts


def test_verdicts_on_planted_errors_in_every_format() -> None:
    reports = []
    for formula in corpus()[7::120]:
        point = formula.points(2)[1]
        claims = [(one.leaf, one.text) for i, one in enumerate(claims_of(formula, point)) if i % 11 in (0, 1, 7, 9)][:4]
        reports.append(checks.check_script(formula.script(point, claims), steps=True))
    assert {"PROVED", "DISAGREES"} <= in_every_format(reports)


POINTS: tuple[tuple[str, dict[str, Any], dict[str, Any]], ...] = (
    ("x**2*sin(y)", {"x": 1.5, "y": 2}, {"claims": {"x": "2*x*cos(y)", "y": "nan*x"}}),
    ("x**2", {"x": 1e200}, {"claims": {"x": "x**2"}}),
    ("log(x)", {"x": -1}, {}),
    ("sqrt(x)", {"x": 0}, {}),
    ("relu(x)", {"x": 0}, {}),
    ("floor(x)", {"x": 2}, {}),
    ("1/x", {"x": 0}, {}),
    ("exp(x)", {"x": 800}, {"require": "precise"}),
    ("(1 - cos(x))/x**2", {"x": 1e-7}, {}),
    ("sum(A @ x)", {"A": [[1, 2], [3, 4]], "x": [1, 1]}, {"claims": {"x": "[1, 2]", "A": "[[1, 1], [1, 2]]"}}),
    ("sum(inv(A))", {"A": [[1.0, 2.0], [2.0, 1.0]]}, {}),
    ("x*abs(x - 0.25)", {"x": 0.1}, {"box": {"x": (0.0, 1.0)}}),
    ("exp(x)", {"x": 0.1}, {"box": {"x": (0.0, 1.0)}}),
    ("z**2*exp(z)", {"z": 1 + 2j}, {"claims": {"z": "2*z*exp(z)"}, "dtype": "complex128"}),
    ("x**x", {"x": 0}, {"claims": {"x": "inf"}}),
    ("y/x + 1", {}, {}),
    ("sum(x)", {"x": []}, {}),
)


def test_verdicts_on_points_of_every_kind_in_every_format() -> None:
    reports = [
        checks.check_script(text, at=at, **{"steps": "box" not in more, **more})  # type: ignore[arg-type]
        for text, at, more in POINTS
    ]
    found = in_every_format(reports)
    assert {"PROVED", "DISAGREES", "UNDEFINED", "KINK", "DISCONTINUOUS", "BOUNDARY"} <= found


@pytest.mark.parametrize("name", ["wrong_sign", "noisy", "kink"])
def test_verdicts_on_functions_in_every_format(name: str) -> None:
    import numpy as np

    import gradcli

    cases: dict[str, tuple[Any, Any, dict[str, Any]]] = {
        "wrong_sign": (lambda x: float(np.sum(np.sin(x))), lambda x: -np.cos(x), {"x": np.array([0.3, 0.7])}),
        "noisy": (lambda x: round(float(x) ** 2, 3), lambda x: 2 * x, {"x": 1.5}),
        "kink": (lambda x: float(np.abs(x).sum()), np.sign, {"x": np.array([0.0, 1.0])}),
    }
    f, df, at = cases[name]
    for one in (df, lambda x: df(x) * np.nan, lambda x: df(x) * np.inf):
        in_every_format([gradcli.check_callable(f, grad=one, at=at)])


def test_an_infinite_claim_is_not_called_imprecise() -> None:
    """Infinity is no larger than a tolerance relative to infinity: it was called right to some digits, which then failed."""
    import numpy as np

    import gradcli

    report = gradcli.check_callable(lambda x: float(np.log(x)), grad=lambda x: np.inf / x, at={"x": 1e-300})
    assert in_every_format([report]) <= {"DISAGREES", "INCONCLUSIVE"}


WORDS: tuple[float | str, ...] = (0.0, 1.5, "nan", "inf", "-inf")


def test_step_sequences_with_numbers_that_are_not_finite() -> None:
    """Evidence is JSON data, in which such numbers are words; whichever of them is one, the plot can be drawn."""
    fields = ("claimed", "exact", "estimate", "bound", "rate")
    for slopes in (["nan", 1.0, 2.0], [1.0, 1.5, "inf"], [1.0, 1.5, 1.25], []):
        for combination in itertools.product((None, *WORDS), repeat=len(fields)):
            evidence = {"steps": [0.5, 0.25, 0.125][: len(slopes)], "slopes": slopes}
            evidence |= {name: value for name, value in zip(fields, combination, strict=True) if value is not None}
            for digits in (None, 3):
                list(convergence(step_sequence(evidence), Style(digits)))
    found = step_sequence({"steps": [0.5], "slopes": ["inf"], "claimed": "nan", "of": "x"})
    assert found.slopes == (math.inf,) and found.claimed != found.claimed and found.exact is None
    assert set(found.evidence()) == {"steps", "slopes", "of", "claimed"}


def test_samples_of_check_in_every_format() -> None:
    paths = sorted(path for path in (ROOT / "samples").rglob("*.grad") if path.parent.name not in ("errors", "eager"))
    found = in_every_format(checks.check_script(read_source(str(path))) for path in paths[3::24])
    assert found


# --- the calculator ------------------------------------------------------------------------------------------

RESULTS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("(x*y + x)**2", {"x": 2, "y": 3}),
    ("log(x)*sqrt(y)", {"x": -1, "y": 0}),
    ("sum((X @ w - t)**2)", {"X": [[1, 2], [3, 4], [5, 6]], "w": [1, 2], "t": [1, 1, 1]}),
    ("sum(where(x > 0, x, 0)*2)", {"x": [1, -1]}),
    ("h = x**2\nfor i in range(3):\n    h = h*sin(h)\nh", {"x": 2}),
    ("logsumexp(x) + max(x)", {"x": [1.0, 2.0, float("inf")]}),
    ("mean(softmax(x)**2)", {"x": [[1, 2, 3], [1, 1, 1]]}),
    ("sum(x*(A @ x))", {"x": [1, 2], "A": [[2, 1], [1, 3]]}),
)


@pytest.mark.parametrize(("script", "at"), RESULTS, ids=[script[:20] for script, _ in RESULTS])
def test_results_in_every_format(script: str, at: dict[str, Any]) -> None:
    with contextlib.redirect_stderr(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for torch in (False, True):
            for topo in (False, True):
                shown(traced_view(calculator.trace(script, at=at, torch=torch, why_topo=topo)))
        shown(planned_view(calculator.plan(script, at=at)))
        shown(calculation("eval", calculator.evaluate(script, at=at)))
        shown(calculation("grad", calculator.grad(script, at=at)))
        if at:
            shown(calculation("hessian", calculator.hessian(script, at=at)))
            shown(calculation("jacobian", calculator.jacobian(script, at=at)))
