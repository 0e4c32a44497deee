"""Every script under samples/ goes in: it evaluates, its value and gradient are golden, and check finds nothing to say.

The golden numbers are in snapshots/samples.json. They were compared with the claims of the samples when they were made
(`gradcli check` decides those); after a change on purpose: `UPDATE_SNAPSHOTS=1 pytest tests/project/test_samples.py`, then read
the difference.
"""

from __future__ import annotations

import json
import os
import re
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gradcli
from gradcli.checks import check_names
from gradcli.interfaces import cli
from gradcli.language import read_source
from tests.support.rows import all_rows

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "samples"
GOLDEN = Path(__file__).parents[1] / "snapshots" / "samples.json"
SAMPLES = sorted(path for path in FOLDER.rglob("*.grad") if path.parent.name != "errors")
NAMES = [str(path.relative_to(FOLDER)) for path in SAMPLES]
TOLERANCE = 1e-12  # relative to the largest entry of a result: libraries differ in the last digits
# residuals that are small beside the data lose digits: a change of the point by one unit in the last place moves these
# results by up to 1e-12
ROUGH = {"regression/sirstv.grad": 1e-10, "regression/norris.grad": 1e-11, "regression/longley.grad": 1e-10}


@cache
def answer(name: str) -> dict[str, Any]:
    """The value of a sample, and its gradient or, for several outputs or an array, its Jacobian."""
    source = read_source(str(FOLDER / name))
    value = gradcli.evaluate(source).value
    scalar = not isinstance(value, tuple) and not np.ndim(value)
    if scalar:
        return {"value": plain(value), "gradient": {k: plain(v) for k, v in gradcli.grad(source).gradient.items()}}
    found = gradcli.jacobian(source).jacobian
    tables = found if isinstance(found, tuple) else (found,)
    return {"value": plain(value), "jacobian": [{k: plain(v) for k, v in table.items()} for table in tables]}


def plain(value: Any) -> Any:
    """Numbers and nested lists; what JSON cannot say as a word."""
    if isinstance(value, tuple):
        return [plain(one) for one in value]
    listed = value.tolist() if hasattr(value, "tolist") else value
    if isinstance(listed, list):
        return [plain(one) for one in listed]
    return listed if np.isfinite(listed) else repr(float(listed))


CANCELLED = 1e-15  # what is left of numbers about 1 that cancel differs between processors


def agree(found: Any, golden: Any, where: str, tolerance: float = TOLERANCE) -> None:
    """Equal keys and shapes, and entries within the tolerance; NaN and infinities in the same places."""
    if isinstance(golden, dict):
        assert list(found) == list(golden), where
        for key in golden:
            agree(found[key], golden[key], f"{where}.{key}", tolerance)
    elif isinstance(golden, list) and golden and isinstance(golden[0], dict):
        assert len(found) == len(golden), where
        for position, (one, other) in enumerate(zip(found, golden, strict=True)):
            agree(one, other, f"{where}[{position}]", tolerance)
    else:
        try:
            one, other = np.array(found, dtype=float), np.array(golden, dtype=float)
        except ValueError:  # several outputs of different shapes
            for position, pair in enumerate(zip(found, golden, strict=True)):
                agree(*pair, f"{where}[{position}]", tolerance)
            return
        assert one.shape == other.shape, where
        finite = other[np.isfinite(other)]
        scale = np.abs(finite).max() if finite.size else 1.0
        slack = tolerance * scale + CANCELLED
        np.testing.assert_allclose(one, other, rtol=tolerance, atol=slack, err_msg=where)


@all_rows("name", NAMES)
def test_value_and_gradient_are_golden(name: str) -> None:
    if os.environ.get("UPDATE_SNAPSHOTS"):
        text = json.dumps({name: answer(name) for name in NAMES}, indent=1, ensure_ascii=False)
        text = re.sub(r"\[\s+([^\[\]{}]*?)\s+\]", lambda m: f"[{' '.join(m[1].split())}]", text)  # a row on one line
        GOLDEN.write_text(text + "\n", encoding="utf-8")
    golden = json.loads(GOLDEN.read_text(encoding="utf-8"))
    agree(answer(name), golden[name], name, ROUGH.get(name, TOLERANCE))


def test_every_sample_is_golden() -> None:
    assert sorted(json.loads(GOLDEN.read_text(encoding="utf-8"))) == sorted(NAMES)
    assert len(NAMES) >= 40


@all_rows("name", NAMES)
def test_a_sample_says_where_it_is_from(name: str) -> None:
    head = (FOLDER / name).read_text(encoding="utf-8")[:1500]
    assert head.startswith("# ")
    assert "Source" in head


@pytest.mark.parametrize("every", [pytest.param(8, id="some"), pytest.param(1, id="all", marks=pytest.mark.deep)])
def test_every_sample_and_error_passes_its_check(
    every: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`gradcli check samples/`, as the README says it; here, where other tests judge the same kinds, every eighth of them."""
    monkeypatch.chdir(ROOT)
    chosen = sorted(FOLDER.rglob("*.grad"))[::every]
    operands = ["samples"] if every == 1 else [str(path.relative_to(ROOT)) for path in chosen]
    report = tmp_path / "report.json"
    code = cli.main(["check", *operands, "--jobs", "2", "--json", str(report)])
    out, err = capsys.readouterr()
    assert code == 0, out[-3000:] + err[-1000:]
    found = json.loads(report.read_text(encoding="utf-8"))
    assert {os.path.normpath(one["file"]) for one in found["checks"]} == {
        str(path.relative_to(ROOT)) for path in chosen if has_checks(path)
    }
    assert not [one for one in found["checks"] if one["verdict"] == "INCONCLUSIVE"]
    for path in chosen:  # the names of checks are known before anything is judged
        judged = [(one["id"], one["line"]) for one in found["checks"] if ROOT / one["file"] == path]
        assert check_names(read_source(str(path))) == judged, path


def has_checks(path: Path) -> bool:
    """A script without a leaf has nothing to judge."""
    return path.stem not in ("GC209_reassigned", "GC209_constants_only")
