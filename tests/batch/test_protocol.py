"""The JSON Lines protocol: every line is answered, in order, and a bad one never stops the rest."""

from __future__ import annotations

import json
import sys
import time
import tracemalloc
from typing import Any

import pytest

from gradcli.base.diagnostics import Diagnostic
from gradcli.batch import serve
from gradcli.batch.json_lines import MOST_SCRIPTS, Answer, QuestionCache
from gradcli.rendering import machine


def answers(*requests: Any) -> list[dict[str, Any]]:
    lines = [request if isinstance(request, str) else json.dumps(request) for request in requests]
    found: list[dict[str, Any]] = []
    count = serve(lines, lambda answer: found.append(json.loads(machine.answer(answer.id, answer.outcome))))
    assert count == len(found)
    return found


def one(**request: Any) -> dict[str, Any]:
    return answers(request)[0]


def test_the_commands() -> None:
    point = {"x": 2, "y": 3}
    found = one(id="a", command="grad", script="(x*y+x)**2", at=point, wrt=["x", "y"])
    assert (found["id"], found["value"], found["gradient"]) == ("a", 64.0, {"x": 64.0, "y": 32.0})
    assert one(id=1, command="eval", script="hypot(x, y)", at={"x": 3, "y": 4})["value"] == 5.0
    found = one(id=None, command="hessian", script="x**2*y", at=point)
    assert found["hessian"] == {"x": {"x": 6.0, "y": 4.0}, "y": {"x": 4.0, "y": 0.0}}
    found = one(id=[1, {"k": 2}], command="check", script="x**2*y", at=point, claims={"x": "2*x*y"})
    assert found["id"] == [1, {"k": 2}]
    assert [(c["kind"], c["leaf"], c["verdict"]) for c in found["checks"]] == [
        ("gradient", "x", "PROVED"),
        ("gradient", "y", "PROVED"),
        ("claim", "x", "PROVED"),
    ]
    assert found["summary"]["passed"] == 3


def test_arrays_statements_and_sugar() -> None:
    found = one(
        command="grad",
        script="def f(a, b): return a*exp(-b**2)\ns = 0\nfor i in range(3): s = s + f(x[i], y)\ns",
        at={"x": [1, 2, 3], "y": 0.5},
    )
    assert found["value"] == pytest.approx(4.672804698428429, rel=1e-12)
    assert found["gradient"]["y"] == pytest.approx(-4.672804698428429, rel=1e-12)
    found = one(command="grad", script="2x^2 + np.sin(x).sum(axis=0)", at={"x": 0.25})
    assert found["gradient"]["x"] == pytest.approx(1.9689124217106446, rel=1e-12)


def test_not_finite_numbers_are_words() -> None:
    found = one(command="grad", script="log(x)", at={"x": 0})
    assert (found["value"], found["gradient"]) == ("-inf", {"x": "inf"})
    assert found["diagnostics"]
    assert one(command="eval", script="x + y", at={"x": "inf", "y": 1})["value"] == "inf"
    assert one(command="eval", script="sum(x)", at={"x": ["nan", "-inf"]})["value"] == "nan"


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        ({"command": "grad", "script": "sine(x)", "at": {"x": 1}}, "GC2"),
        ({"command": "grad", "script": "a + b", "at": {"a": [1, 2, 3], "b": [1, 2, 3, 4]}}, "GC3"),
        ({"command": "grad", "script": "1 +"}, "GC1"),
        ({"command": "grad", "script": "x*", "at": {"x": 1}}, "GC1"),
        ({"command": "grad", "script": "x", "at": {"x": "two"}}, "GC3"),
        ({"command": "grad", "script": "x", "at": {"x": {"y": 1}}}, "GC3"),
        ({"command": "grad", "script": "x", "at": {"x": [[1], [1, 2]]}}, "GC3"),
        ({"command": "grad", "script": "x*y", "at": {"x": 1}}, "GC2"),
        ({"command": "grad", "script": "x", "at": {"x": 1}, "wrt": ["z"]}, "GC2"),
        ({"command": "grad", "script": "x", "at": [1]}, "GC903"),
        ({"command": "grad", "script": "x", "at": {"x": 1}, "wrt": "x"}, "GC903"),
        ({"command": "grad", "script": 3}, "GC903"),
        ({"command": "grad"}, "GC903"),
        ({"command": "gradient", "script": "x"}, "GC902"),
        ({"script": "x"}, "GC902"),
        ({}, "GC902"),
        ({"command": "check", "script": "x**2", "at": {"x": 1}, "claims": ["x"]}, "GC903"),
        ({"command": "check", "script": "x**2", "at": {"x": 1}, "claims": {"x": 3}}, "GC903"),
        ({"command": "check", "script": "x**2", "at": {"x": 1}, "claims": {"q": "x"}}, "GC2"),
        ({"command": "check", "script": "x**2", "at": {"x": 1}, "samples": "many"}, "GC903"),
    ],
)
def test_errors_have_a_code(request_: dict[str, Any], code: str) -> None:
    found = one(id="e", **request_)
    assert found["id"] == "e"
    assert found["error"]["code"].startswith(code)
    assert found["error"]["message"]
    assert set(found["error"]) >= {"code", "message", "span"}


def test_spans_point_into_the_script() -> None:
    assert one(command="grad", script="sine(x)", at={"x": 1})["error"]["span"] == [1, 1, 1, 5]


@pytest.mark.parametrize(
    "line",
    [
        "this line is not JSON",
        "[1, 2]",
        "3",
        "null",
        '"text"',
        '{"id": NaN}',
        "{",
        "[" * 100_000,
        '{"id": ' + "9" * 5000 + "}",
    ],
    ids=lambda line: line[:12],
)
def test_a_bad_line_never_stops_the_rest(line: str) -> None:
    found = answers(line, {"id": "after", "command": "grad", "script": "log(x)", "at": {"x": 0.001}})
    assert found[0]["id"] is None
    assert found[0]["error"]["code"] == "GC901"
    assert found[1]["id"] == "after"
    assert found[1]["gradient"]["x"] == pytest.approx(1000.0)


def test_the_number_of_a_bad_line_is_told() -> None:
    found = answers({"command": "eval", "script": "1"}, "", "  \n", "nonsense")
    assert len(found) == 2
    assert found[1]["error"]["message"] == "line 4 is not a JSON object"


def test_a_fault_of_ours_is_answered_too(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> Any:
        raise RuntimeError("a fault")

    monkeypatch.setattr(QuestionCache, "answer", broken)
    found = answers({"id": 7, "command": "eval", "script": "1"})
    assert found[0]["error"]["code"] == "GC999"
    assert found[0]["id"] == 7


def test_names_that_the_script_does_not_use_are_ignored() -> None:
    assert one(command="eval", script="x + 1", at={"x": 1, "unused": [1, 2]})["value"] == 2.0
    found = one(command="grad", script="x + 1", at={"x": 1, "b": [1, 2]}, wrt=["x", "b"])
    assert found["gradient"] == {"x": 1.0, "b": [0.0, 0.0]}


def test_a_kept_script_is_asked_again_at_its_own_values() -> None:
    script = "n = 3\ns = 0\nfor i in range(n): s = s + x**i\ns"
    found = answers(
        *[{"command": "grad", "script": script, "at": {"x": 0.5, "n": n}, "wrt": ["x"]} for n in (1, 3, 2, 3)]
    )
    assert [answer["value"] for answer in found] == [1.0, 1.75, 1.5, 1.75]
    shapes = [{"command": "eval", "script": "sum(x)", "at": {"x": x}} for x in ([1, 2], [[1, 2], [3, 4]], 5, [1])]
    assert [answer["value"] for answer in answers(*shapes)] == [3.0, 10.0, 5.0, 1.0]


def test_the_number_of_kept_scripts_is_bounded() -> None:
    cache = QuestionCache()
    for i in range(MOST_SCRIPTS + 40):
        cache.answer("eval", f"x + {i}", {"x": 1.0}, None)
    assert len(cache._questions) == MOST_SCRIPTS
    assert cache._nodes < 10 * MOST_SCRIPTS


def test_memory_does_not_grow_with_the_number_of_requests() -> None:
    line = json.dumps({"command": "grad", "script": "(x*y + x)**2", "at": {"x": 2, "y": 3}})
    serve([line] * 50, lambda answer: None)
    tracemalloc.start()
    serve((line for _ in range(300)), lambda answer: None)
    first = tracemalloc.get_traced_memory()[0]
    serve((line for _ in range(3000)), lambda answer: None)
    second = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert second - first < 200_000


def test_small_requests_are_quick() -> None:
    """Two thousand in a second is the aim; a quarter of it must hold on any machine."""
    lines = [
        json.dumps({"id": i, "command": "grad", "script": "x**2*sin(y)", "at": {"x": 1 + i / 1000, "y": 0.4}})
        for i in range(2000)
    ]
    start = time.process_time()
    serve(lines, lambda answer: machine.answer(answer.id, answer.outcome))
    assert time.process_time() - start < 4


def test_answers_come_one_by_one() -> None:
    order: list[str] = []

    def lines() -> Any:
        for i in range(3):
            order.append(f"read {i}")
            yield json.dumps({"command": "eval", "script": str(i)})

    serve(lines(), lambda answer: order.append("wrote"))
    assert order == ["read 0", "wrote", "read 1", "wrote", "read 2", "wrote"]


def test_an_answer_is_an_id_and_an_outcome() -> None:
    found: list[Answer] = []
    serve(["nonsense"], found.append)
    assert isinstance(found[0].outcome, Diagnostic)
    assert "GC901" in repr(found[0])


def test_scalar_requests_need_nothing_heavy() -> None:
    import subprocess

    code = (
        "import sys; from gradcli.batch import serve; out = []; "
        'serve([\'{"command": "grad", "script": "x**2", "at": {"x": 3}}\'], out.append); '
        "print([m for m in ('numpy', 'sympy', 'flint', 'rich') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
