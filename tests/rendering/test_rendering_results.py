"""Results are frozen dataclasses in all that a caller can see, and show themselves in a notebook."""

from __future__ import annotations

import copy
import dataclasses
import os
import pickle
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from gradcli.base.results.calculations import Evaluation, Gradient, Trace
from gradcli.rendering import displayed
from tests.support import handmade

RESULTS = [
    handmade.evaluation,
    handmade.gradient,
    handmade.arrays,
    handmade.hessian,
    handmade.jacobians,
    handmade.naive,
]


@pytest.mark.parametrize("result", RESULTS, ids=lambda result: type(result).__name__)
def test_dataclasses_accept_them(result: Gradient) -> None:
    assert dataclasses.is_dataclass(result)
    names = [field.name for field in dataclasses.fields(result)]
    assert names == list(type(result).__match_args__)
    assert dataclasses.replace(result, expression="other").expression == "other"
    assert dataclasses.asdict(result)["expression"] == result.expression
    with pytest.raises(dataclasses.FrozenInstanceError):
        result.expression = "other"  # type: ignore[misc]
    with pytest.raises(dataclasses.FrozenInstanceError):
        del result.expression


@pytest.mark.parametrize("result", RESULTS, ids=lambda result: type(result).__name__)
def test_copies_are_equal(result: Gradient) -> None:
    assert copy.deepcopy(result) == result
    assert pickle.loads(pickle.dumps(result)) == result
    assert result != dataclasses.replace(result, expression="other")


def test_equality_sees_arrays_and_no_nan() -> None:
    one = Evaluation("x", {}, np.array([1.0, 2.0]))
    assert one == Evaluation("x", {}, np.array([1.0, 2.0]))
    assert one != Evaluation("x", {}, np.array([1.0, 3.0]))
    assert one != Evaluation("x", {}, np.array([1.0, 2.0, 3.0]))
    assert one != Evaluation("x", {}, 1.0)
    assert Evaluation("x", {}, float("nan")) != Evaluation("x", {}, float("nan"))
    with pytest.raises(TypeError):
        hash(one)


def test_wrong_arguments() -> None:
    with pytest.raises(TypeError, match="lacks value"):
        Evaluation("x", {})  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="unexpected or repeated value 'color'"):
        Evaluation("x", {}, 1.0, color=1)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="not 6"):
        Evaluation("x", {}, 1.0, (), None, 5)  # type: ignore[call-arg]


def test_repr_and_patterns() -> None:
    assert repr(handmade.evaluation) == (
        "Evaluation(expression='hypot(x, y)', at={'x': 3.0, 'y': 4.0}, value=5.0, diagnostics=(), exact=None)"
    )
    match handmade.gradient:
        case Gradient(expression, _, value):
            assert (expression, value) == ("(x*y + x)**2", 64.0)
        case _:
            pytest.fail("no match")


@pytest.mark.parametrize("result", RESULTS, ids=lambda result: type(result).__name__)
def test_notebooks(result: Trace) -> None:
    bundle = displayed.bundle(result)
    latex = bundle.pop("text/latex", "")
    assert set(bundle) == {"text/plain", "text/html"}
    assert bool(latex) == (type(result).__name__ in ("Evaluation", "Gradient", "Hessian", "Jacobian"))
    assert latex.count("{") == latex.count("}") and latex[:2] == latex[-2:] in ("", "$$")
    assert bundle["text/plain"] == displayed.text(result)
    plain, html = ({f"{float(one):.5g}" for one in re.findall(r"-?\d+\.?\d*", text)} for text in bundle.values())
    assert len(plain) > 2 and plain <= html  # a table shows all numbers, with fewer digits


def test_notebooks_escape_and_shorten() -> None:
    bundle = displayed.bundle(Gradient("x<y", {}, 1.0, {"<b>": np.zeros(100)}))
    assert "<b>" not in bundle["text/html"]
    assert "&lt;b&gt;" in bundle["text/html"]
    assert all(
        "array 100, min 0, max 0, norm 0" in text and "[50]" not in text
        for kind, text in bundle.items()
        if kind != "text/latex"
    )


def test_dataclasses_is_not_imported_for_a_result() -> None:
    program = (
        "import sys\nfrom gradcli.base.results.calculations import Gradient\n"
        "assert Gradient('x', {}, 1.0, {'x': 1.0}).gradient\n"
        "assert 'dataclasses' not in sys.modules and 'inspect' not in sys.modules"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    subprocess.run([sys.executable, "-c", program], env=environment, check=True)
