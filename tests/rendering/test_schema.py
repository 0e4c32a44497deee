"""Machine formats obey the schemas that are shipped beside them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest
from jsonschema import Draft202012Validator
from referencing import Registry, Resource

from gradcli import rendering
from gradcli.base.codes import CODES
from gradcli.base.diagnostics import Diagnostic, Span
from gradcli.base.results.calculations import Evaluation, Gradient
from gradcli.rendering import machine
from gradcli.rendering.documents import catalogue
from tests.rendering.test_snapshots import VIEWS
from tests.support import handmade

FOLDER = Path(rendering.__file__).parent / "schema"
SCHEMAS: dict[str, Any] = {path.stem: json.loads(path.read_text()) for path in sorted(FOLDER.glob("*.json"))}
REGISTRY = Registry().with_resources(
    (f"{name}.json", Resource.from_contents(schema)) for name, schema in SCHEMAS.items()
)
LINES = {"trace": "trace-line", "check": "check-line"}


def validator(name: str) -> Draft202012Validator:
    return Draft202012Validator(SCHEMAS[name], registry=REGISTRY)


def parsed(payload: dict[str, Any]) -> Any:
    """A payload as a program receives it."""
    return json.loads(machine.text(payload), parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))


@pytest.mark.parametrize("name", SCHEMAS)
def test_schemas_are_schemas(name: str) -> None:
    Draft202012Validator.check_schema(SCHEMAS[name])
    assert SCHEMAS[name]["$id"] == f"{name}.json"


@pytest.mark.parametrize("name", VIEWS)
def test_results_obey(name: str) -> None:
    view = VIEWS[name]()
    payload = parsed(view.payload())
    validator(payload["command"]).validate(payload)
    for line in view.records():
        validator(LINES.get(line["command"], line["command"])).validate(parsed(line))


def test_numbers_that_are_not_finite_and_complex_numbers() -> None:
    at = {"x": float("inf"), "z": np.array([1 + 2j, complex("nan")])}
    result = Gradient("x", at, float("nan"), {"x": -float("inf"), "z": 3j, "w": np.array([[1.0, np.inf]])})
    payload = parsed(machine.calculation("grad", result))
    validator("grad").validate(payload)
    assert payload["at"] == {"x": "inf", "z": [[1.0, 2.0], ["nan", 0.0]]}
    assert payload["value"] == "nan"
    assert payload["gradient"] == {"x": "-inf", "z": [0.0, 3.0], "w": [[1.0, "inf"]]}


def test_refusals() -> None:
    one = Diagnostic("GC301", "cannot add", Span(1, 2, 3, 4), help="slice one", source=handmade.Text("a + b"))
    two = Diagnostic("GC601", "no such file")
    payload = parsed(machine.refusal("grad", [one, two]))
    validator("error").validate(payload)
    assert payload["error"]["span"] == [1, 2, 3, 4]
    assert [problem["code"] for problem in payload["errors"]] == ["GC301", "GC601"]
    validator("error").validate(parsed(machine.refusal(None, [two])))


def test_explanations() -> None:
    every = [catalogue.explanation_fields(code, one) for code, one in CODES.items()]
    validator("explain").validate(parsed({**machine.opening("explain"), "codes": every}))


@pytest.mark.parametrize(
    "outcome",
    [
        handmade.gradient,
        handmade.evaluation,
        handmade.hessian,
        handmade.noted,
        handmade.bad,
        Diagnostic("GC201", "unknown function `sine`", Span(1, 1, 1, 5)),
        {"error": {"code": "GC901", "message": "line 12 is not a JSON object", "span": None}},
    ],
)
def test_batch_answers(outcome: Any) -> None:
    line = machine.answer("one", outcome)
    assert "\n" not in line
    payload = json.loads(line)
    assert payload["id"] == "one"
    validator("batch").validate(payload)


@pytest.mark.parametrize(
    "line",
    [
        {"id": 1, "command": "grad", "script": "x", "at": {"x": [1, [2, "nan"]]}, "wrt": ["x"]},
        {"command": "check", "script": "x**2", "claims": {"x": "2*x"}},
    ],
)
def test_batch_requests(line: dict[str, Any]) -> None:
    validator("batch-request").validate(line)


@pytest.mark.parametrize("broken", [{"value": float("inf")}, {"at": [1]}, {"schema_version": 2}, {"value": None}])
def test_schemas_refuse(broken: dict[str, Any]) -> None:
    payload = machine.calculation("eval", Evaluation("x", {}, 1.0)) | broken
    if broken.get("value") == float("inf"):
        payload["value"] = "infinity"
    with pytest.raises(jsonschema.ValidationError):
        validator("eval").validate(payload)
