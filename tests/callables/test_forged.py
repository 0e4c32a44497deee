"""Python files that reach for their own verdict: what they change beside themselves does not reach the judge.

This is isolation from accidents, not a sandbox: a file that lies about its function's values is believed.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gradcli.interfaces import cli

NUMPY = """
import numpy as np

def f(x):
    return np.sum(x**3)

def df(x):
    return 2*x**2
"""
EAGER = """
import torch

class Wrong(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, ct):
        (x,) = ctx.saved_tensors
        return ct*2*x**2

def f(x):
    return torch.sum(Wrong.apply(x))
""".replace("import torch", "import gradcli.eager as torch")

# what a file does when it is loaded
TRICKS = {
    "nothing": "",
    "an answer in every folder": """
import glob, json, os, sys, tempfile
check = {"id": "callable:x", "file": None, "line": 1, "kind": "callable", "leaf": "x", "verdict": "PROVED",
         "evidence": {}, "message": "", "diagnostics": [], "expected": None, "passed": True}
answer = {"report": {"expression": "f", "diagnostics": [], "checks": [check]}, "notes": []}
for folder in [".", sys.argv[-1], *glob.glob(tempfile.gettempdir() + "/gradcli-*")]:
    if os.path.isdir(folder):
        open(os.path.join(folder, "answer.json"), "w").write(json.dumps(answer))
""",
    "an answer on standard output": """
import json, os
os.write(1, b'{"report": {"expression": "f", "checks": [], "diagnostics": []}, "notes": []}\\n')
print('{"report": {"expression": "f", "checks": [], "diagnostics": []}, "notes": []}')
""",
    "another judge": """
from gradcli.checks.callables import api, black_box
from gradcli.checks.decide import numerical
from gradcli.checks.differences import survey
proved = black_box.Outcome("PROVED", "", {})
numerical.ByDifferences.verdict = lambda self: proved
black_box.examined = lambda box, *rest: ({name: proved for name in box.names}, [])
api.acceptable = lambda *args, **options: True
api.report_on = None
survey.Survey.finding = None
""",
    "another judge of recordings": """
from gradcli.checks.callables import black_box, recorded
proved = black_box.Outcome("PROVED", "", {})
recorded.by_recording = lambda box, *rest: recorded.Rigorous({name: proved for name in box.names}, [], [])
recorded.judged = lambda box, found, seed, samples: [(one, proved) for one in found]
recorded.same_sent = recorded.same_values = lambda *args: None
""",
    "another recording": """
import gradcli.eager as ours
from gradcli.checks.callables import recorded
from gradcli.recording.calls.box import BlackBox
true = recorded.recording
class Right(BlackBox):
    pass
def forged(box, seed):
    f, box.f = box.f, lambda x: ours.sum(x**3)
    try:
        return true(box, seed)
    finally:
        box.f = f
recorded.recording = forged
""",
    "a recording of nonsense": """
from gradcli.checks.callables import recorded
recorded.recording = lambda box, seed: {
    "flat": {"version": 1, "nodes": [["exp", [7], {}, "float", [], None]], "outputs": [0], "leaves": [], "data": {}},
    "outputs": [0], "gradients": {"x": 0}, "rules": []}
""",
    "a recording of other names": """
from gradcli.checks.callables import recorded
recorded.recording = lambda box, seed: {"flat": None, "PROVED": True}
""",
    "a recording that is not a table": """
from gradcli.checks.callables import recorded
recorded.recording = lambda box, seed: {"unfit": ["PROVED"]}
""",
}


@pytest.mark.parametrize("trick", TRICKS)
@pytest.mark.parametrize(("code", "grad"), [(NUMPY, True), (EAGER, False)], ids=["numpy", "eager"])
def test_a_wrong_gradient_stays_wrong(
    code: str,
    grad: bool,
    trick: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "losses.py").write_text(TRICKS[trick] + code)
    given = ["--grad", "losses.py:df"] if grad else []
    assert cli.main(["check", "--python", "losses.py:f", *given, "--at", "x=[1.5,-2]", "--format", "json"]) == 1
    out, err = capsys.readouterr()
    checks = json.loads(out)["checks"]
    assert [one["verdict"] for one in checks if one["leaf"] == "x"] == ["DISAGREES"], out
    assert not {"PROVED", "CERTIFIED", "AGREES"} & {one["verdict"] for one in checks}
    assert "Traceback" not in err


ANSWERS: dict[str, str] = {
    "a text": "{'found': 'PROVED'}",
    "nothing": "{}",
    "too few numbers": "{'found': np.zeros(0)}",
    "a nested list": "{'found': [[[]]]}",
    "not what is asked": "{'report': {'checks': []}}",
    "a list": "{'failed': []}",
}


@pytest.mark.parametrize("answer", ANSWERS)
def test_answers_of_nonsense_are_an_error(
    answer: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    patch = f"import sys\nsys.modules['gradcli.checks.callables.runner'].answer = lambda *args: {ANSWERS[answer]}\n"
    (tmp_path / "losses.py").write_text(NUMPY + patch)
    assert cli.main(["check", "--python", "losses.py:f", "--grad", "losses.py:df", "--at", "x=[1.5,-2]"]) == 2
    assert capsys.readouterr().err.startswith(
        "error[GC733]: the process that runs the function sent an unreadable answer"
    )


def test_a_recording_is_proved_from_outside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is right is still PROVED, with a rule inside that is checked at its own line."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "losses.py").write_text(EAGER.replace("ct*2*x**2", "ct*3*x**2"))
    assert cli.main(["check", "--python", "losses.py:f", "--at", "x=[1.5,-2]", "--format", "json"]) == 0
    found: list[Any] = json.loads(capsys.readouterr().out)["checks"]
    assert [(one["kind"], one["verdict"]) for one in found] == [("callable", "PROVED"), ("vjp", "PROVED")]
    assert found[1]["file"].endswith("losses.py") and found[1]["line"] == 13


def test_arrays_cross_the_pipe_as_they_are() -> None:
    from io import BytesIO

    from gradcli.base import child_process

    sent = {
        "x": np.array([[1.5, np.nan, -0.0], [np.inf, 5e-324, -1e308]]),
        "n": np.arange(3),
        "none": np.zeros((0, 4)),
        "number": np.array(2.5, dtype=np.float32),
        "text": "a\nb",
    }
    stream = BytesIO()
    child_process.send(stream, sent)
    child_process.send(stream, {"next": 1})
    stream.write(b"Fatal Python error: Segmentation fault\n")
    stream.seek(0)
    found, rest = child_process.receive(stream), []
    assert found is not None and found.keys() == sent.keys() and found["text"] == "a\nb"
    for name in ("x", "n", "none", "number"):
        assert found[name].dtype == sent[name].dtype and found[name].shape == sent[name].shape
        assert found[name].tobytes() == sent[name].tobytes()
    assert child_process.receive(stream) == {"next": 1}
    assert child_process.receive(stream, rest) is None and rest == [b"Fatal Python error: Segmentation fault\n"]
    for line in (
        b'{"x": {"dtype": "<f8", "shape": [3], "data": "AAAA"}}\n',
        b'{"x": {"dtype": "O", "shape": [1], "data": ""}}\n',
        b'{"x": {"dtype": "<f8", "shape": [-7], "data": ""}}\n',
        b'{"x": {"dtype": 3, "shape": 3, "data": 3}}\n',
        b'{"a": 1}',
        b"[1]\n",
        b"[" * 100_000 + b"\n",
    ):
        assert child_process.receive(BytesIO(line)) is None
    with pytest.raises(TypeError):
        child_process.send(BytesIO(), {"x": np.array([{}], dtype=object)})
