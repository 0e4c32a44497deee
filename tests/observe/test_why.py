"""`gradcli why`: each reason on a file of its own with a golden answer, silence where all is well, scripts, JSON.

The golden answers lie beside the samples (`samples/eager/why/NAME.why`); after a change on purpose:
`UPDATE_SNAPSHOTS=1 pytest tests/observe/test_why.py`, then read the difference.
"""

from __future__ import annotations

import json
import os
import re
import warnings
from pathlib import Path
from typing import Any

import pytest

from gradcli import calculator, why
from gradcli.base.diagnostics import GradcliError
from gradcli.base.results.findings import (
    Accumulated,
    Explanation,
    Finding,
    GradientPath,
    Masked,
    NodeNorm,
    Unregistered,
)
from gradcli.calculator.script_reasons import FIXES as SCRIPT_CURES
from gradcli.eager.torch_alias import aliases
from gradcli.graph.node_text import kink_texts
from gradcli.interfaces import cli
from gradcli.primitives import catalogue
from gradcli.recording import runs
from gradcli.recording.libraries.eager_recorder import EagerWatch
from gradcli.why.fixes import FIXES
from tests.rendering.test_schema import parsed, validator
from tests.support import why_corpus
from tests.support.rows import all_rows

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "samples" / "eager" / "why"
SAMPLES = sorted(path.stem for path in FOLDER.glob("*.py"))
IMPORT = "import torch\n"


def explained(tmp_path: Path, text: str, tensor: str | None = None) -> Explanation:
    """What `why` finds in a file of this text."""
    path = tmp_path / "file.py"
    path.write_text(IMPORT + text)
    watch = EagerWatch(str(tmp_path) + os.sep)
    with runs.silenced(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        outcome = runs.run_file(str(path), watch=watch, tell=False, inside=aliases())
    return why.explain(watch, str(path), outcome.error, tensor)


def reasons(tmp_path: Path, text: str, tensor: str | None = None) -> list[tuple[str, str | None, int | None]]:
    """The reasons with tensor and line; line 1 is the import."""
    return [(one.reason, one.subject, one.line) for one in explained(tmp_path, text, tensor).findings]


# --- samples ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SAMPLES)
def test_sample_has_its_golden_answer(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    asked = ["--tensor", "x"] if name == "partly" else []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        code = cli.main(["why", "--on", "gradcli", f"samples/eager/why/{name}.py", *asked])
    told = capsys.readouterr().out + f"exit code {code}\n"
    golden = FOLDER / f"{name}.why"
    if os.environ.get("UPDATE_SNAPSHOTS"):
        golden.write_text(told, encoding="utf-8")
    assert told == golden.read_text(encoding="utf-8")


def test_every_reason_has_a_sample_or_a_program() -> None:
    shown = "".join((FOLDER / f"{name}.why").read_text(encoding="utf-8") for name in SAMPLES)
    known = {case.reason for case in why_corpus.cases()}
    missing = [reason for reason in FIXES if f"reason  {reason}\n" not in shown and reason not in known]
    assert not missing


@all_rows("path", sorted((ROOT / "samples" / "eager").glob("*.py")), ids=lambda path: path.stem)
def test_why_is_quiet_on_files_where_all_is_well(path: Path) -> None:
    watch = EagerWatch(str(path.parent) + os.sep)
    with runs.silenced():
        outcome = runs.run_file(str(path), watch=watch, tell=False, inside=aliases())
    found = {one.reason for one in why.explain(watch, str(path), outcome.error).findings}
    assert found == ON_PURPOSE.get(path.stem, set())


# samples that show on purpose what `why` explains
ON_PURPOSE = {
    "branch_not_taken": {"nan-branch"},
    "function_with_options": {"never-required"},
    "gradcheck_nondeterministic": {"wrong-rule"},
    "gradcheck_wrong_rule": {"wrong-rule"},
    "history_leak": {"history"},
    "intermediate_gradients": {"not-leaf"},
    "only_some_inputs": {"not-asked"},
    "retain_graph": {"accumulated"},
    "train_without_zero_grad": {"accumulated"},
}

# --- None ---------------------------------------------------------------------------------------------------

W = "w = torch.tensor([1.0, 2.0], requires_grad=True)\n"


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("(w.data * 2 + w.sum() * 0).sum().backward()", []),
        ("v = torch.ones(2, requires_grad=True)\n(w.data * v).sum().backward()", [("detached", "w", 4)]),
        ("v = torch.ones(2, requires_grad=True)\n(v * w.tolist()[0]).sum().backward()", [("as-number", "w", 4)]),
        ("v = torch.ones(2, requires_grad=True)\n(v * float(w[0])).sum().backward()", [("as-number", "w", 4)]),
        (
            "v = torch.ones(2, requires_grad=True)\n(v * torch.tensor(w.detach().numpy())).sum().backward()",
            [("as-number", "w", 4)],
        ),
        (
            "v = torch.ones(2, requires_grad=True)\nwith torch.no_grad():\n    h = w * 2\n    k = h + 1\n(v * k).sum().backward()",
            [("no-grad", "w", 5)],
        ),
        (
            "v = torch.ones(2, requires_grad=True)\nh = (w * 2).detach()\nk = h + 1\nm = k * 3\n(v * m).sum().backward()",
            [("detached", "w", 4)],
        ),
        ("v = torch.ones(2, requires_grad=True)\n(v[w.argmax()] * 1).backward()", [("step-function", "w", 4)]),
        (
            "v = torch.ones(2, requires_grad=True)\n(v * w.max(dim=0).indices).sum().backward()",
            [("step-function", "w", 4)],
        ),
        ("w.sum().backward()\nw.grad = None\nprint(w.grad)", [("zeroed", "w", 4)]),
        ("w.sum().backward()\nprint(w.grad)\nw.grad = None", []),
        ("h = w * 1\nh.retain_grad()\nw.sum().backward()\nprint(h.grad)", [("no-path", "h", 5)]),
        ("with torch.no_grad():\n    v = w - 1\nprint(v.grad)\nw.sum().backward()", [("no-grad", "v", 4)]),
        ("w = w.double()\nw.sum().backward()\nprint(w.grad)", [("leaf-lost", "w", 3)]),
        (
            "class N:\n    def __init__(self):\n        self.b = torch.ones(1, requires_grad=True)\n\n\nnet = N()\nw.sum().backward()",
            [("no-path", "net.b", 9)],
        ),
        (
            "ws = [torch.ones(1, requires_grad=True) for _ in range(3)]\nws[1].sum().backward()",
            [("no-path", "w, ws[0] and ws[2]", 4)],
        ),
        (
            "def f():\n    b = torch.ones(1, requires_grad=True)\n    (w.sum() + b.detach()).backward()\n\n\nf()",
            [("detached", "b", 5)],
        ),
    ],
)
def test_missing_gradients(tmp_path: Path, text: str, wanted: list[Any]) -> None:
    assert reasons(tmp_path, W + text + "\n") == wanted


def test_a_tensor_that_is_asked_for(tmp_path: Path) -> None:
    text = W + "x = torch.ones(2)\nh = w * x\n(h * h).sum().backward()\n"
    assert reasons(tmp_path, text) == []
    assert reasons(tmp_path, text, "x") == [("never-required", "x", 3)]
    assert reasons(tmp_path, text, "h") == [("not-leaf", "h", 4)]
    assert reasons(tmp_path, text, "w") == []
    assert explained(tmp_path, text, "w").gradients == {"w": "norm 4.472"}


def test_a_tensor_that_the_file_does_not_have(tmp_path: Path) -> None:
    with pytest.raises(GradcliError) as caught:
        explained(tmp_path, W, "ww")
    assert caught.value.diagnostics[0].code == "GC206"
    assert caught.value.diagnostics[0].help == "did you mean w?"


def test_errors_that_the_file_caught_do_not_blind_or_mislead(tmp_path: Path) -> None:
    caught = "l = (w * w).sum()\nl.backward()\ntry:\n    l.backward()\nexcept RuntimeError:\n    pass\nw.grad = None\n"
    text = W + caught + "v = torch.ones(2, requires_grad=True)\n(w.detach() * v).sum().backward()\nprint(w.grad)\n"
    assert reasons(tmp_path, text) == [("detached", "w", 11)]
    assert reasons(tmp_path, W + caught + "torch.ones(2) + torch.ones(3)\n") == [("stopped", None, 10)]
    refused = "try:\n    torch.ones(1).backward()\nexcept RuntimeError:\n    pass\n"
    assert reasons(tmp_path, W + refused + "raise RuntimeError('own')\n") == [("stopped", None, 7)]


# --- zero, NaN, size ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "reason", "quiet"),
    [
        ("(w * 0).sum().backward()", "times-zero", True),
        ("((w - w.detach()) ** 2).sum().backward()", "flat", True),
        ("(w - w).sum().backward()", "flat", True),
        ("w.clamp(min=5.0).sum().backward()", "outside-bounds", True),
        ("torch.where(w > 9, w, torch.zeros(2)).sum().backward()", "not-selected", True),
        (
            "torch.nn.functional.embedding(torch.zeros(3).long(), w[:, None], padding_idx=0).sum().backward()",
            "padding",
            False,
        ),
        ("torch.round(w).sum().backward()", "step-function", False),
        ("torch.sign(w).sum().backward()", "step-function", False),
        ("torch.floor(w * 3).sum().backward()", "step-function", False),
        ("torch.relu(-w).sum().backward()", "dead-relu", False),
        ("torch.sigmoid(-200 * w).sum().backward()", "saturated", False),
        ("torch.tanh(200 * w).sum().backward()", "saturated", False),
    ],
)
def test_zero_gradients(tmp_path: Path, text: str, reason: str, quiet: bool) -> None:
    (found,) = reasons(tmp_path, W + text + "\n", "w")
    assert found[0] == reason and found[1] == "w"
    assert (reasons(tmp_path, W + text + "\n") == []) == quiet


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("torch.log(w - 1).sum().backward()", ("nan-forward", 3)),
        ("torch.log(w - 2).sum().backward()", ("nan-forward", 3)),
        ("torch.sqrt(w - 1).sum().backward()", ("nan-backward", 3)),
        ("x = w - 1\ny = x / x\n(y * 2).sum().backward()", ("nan-forward", 4)),
        ("(torch.exp(w * 100)).sum().backward()", ("nan-forward", 3)),
        ("x = torch.tensor([1.0, float('inf')])\n(w * x).sum().backward()", ("nan-data", 3)),
    ],
)
def test_where_the_first_nan_comes_from(tmp_path: Path, text: str, wanted: tuple[str, int]) -> None:
    found = reasons(tmp_path, W + text + "\n")
    assert [(reason, line) for reason, _, line in found] == [wanted]


COLUMN = "w = torch.ones(3, 1, requires_grad=True)\ny = torch.arange(3.)\n"


@pytest.mark.parametrize(
    ("loss", "wanted"),
    [
        ("(w - y)", [("broadcast", None, 4)]),
        ("torch.nn.functional.mse_loss(y, w)", [("broadcast", None, 4)]),
        ("torch.nn.functional.l1_loss(w, y)", [("broadcast", None, 4)]),
        ("(w - y[:, None])", []),
        ("(w[:, 0] - y)", []),
        ("(w[:, 0][:, None] - y)", []),  # every pair on purpose
        ("(w - y[:2])", []),
        ("(w[:1] - y[:1])", []),
    ],
)
def test_targets_that_are_compared_with_every_output(tmp_path: Path, loss: str, wanted: list[Any]) -> None:
    text = f"{COLUMN}loss = {loss}.abs().sum()\nloss.backward()\n"
    assert reasons(tmp_path, text) == wanted


def test_an_infinite_mask_is_no_fault(tmp_path: Path) -> None:
    text = "w = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)\nmask = torch.tensor([True, False, False])\n"
    text += "s = w.masked_fill(mask, float('-inf'))\ntorch.softmax(s, dim=0)[1].log().backward()\n"
    assert reasons(tmp_path, text) == []


def test_norms_are_shown_where_a_gradient_explodes(tmp_path: Path) -> None:
    (found,) = explained(tmp_path, W + "h = w * 1\nfor _ in range(20):\n    h = h * 10\nh.sum().backward()\n").findings
    assert found.reason == "exploding" and found.line == 5
    assert isinstance(found.evidence, GradientPath)
    norms = found.evidence.norms
    assert len(norms) == 12 and norms[0].arrived < norms[-1].sent


# --- what adds up -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("for _ in range(3):\n    (w * w).sum().backward()", []),  # nobody looks at the sum
        ("for _ in range(3):\n    (w * w).sum().backward()\nprint(w.grad)", [("accumulated", "w", 4)]),
        ("for k in range(3):\n    (w * k).sum().backward()\n    print(w.grad)", [("accumulated", "w", 4)]),
        ("for k in range(3):\n    (w * k).sum().backward()\nprint(w.grad)", []),
        ("for k in range(3):\n    (w * k).sum().backward()", []),
        ("for _ in range(3):\n    (w * w).sum().backward()\n    w.grad.zero_()\n(w * w).sum().backward()", []),
        ("for _ in range(3):\n    (w * w).sum().backward()\n    w.grad = None\n(w * w).sum().backward()", []),
        ("for _ in range(3):\n    (w * w).sum().backward()\n    w.grad.data.zero_()\n(w * w).sum().backward()", []),
        ("for _ in range(3):\n    (w * w).sum().backward()\n    w.data -= 0.1 * w.grad", [("accumulated", "w", 4)]),
        ("for _ in range(3):\n    (w * w).sum().backward()\n    with torch.no_grad():\n        w -= 0.1 * w.grad", [("accumulated", "w", 4)]),
        ("for _ in range(3):\n    (w * w).sum().backward()\n    with torch.no_grad():\n        w -= 0.1 * w.grad\n        w.grad.zero_()\n(w * 1).sum().backward()", []),
    ],
)  # fmt: skip
def test_gradients_that_add_up(tmp_path: Path, text: str, wanted: list[Any]) -> None:
    assert reasons(tmp_path, W + text + "\n") == wanted


PINN = """x = torch.tensor([1.0, 2.0], requires_grad=True)
for _ in range(4):
    (slope,) = torch.autograd.grad((w * x * x).sum(), x, create_graph=True)
    (slope**2 * (1 + w.detach())).sum().backward()
    with torch.no_grad():
        w -= 0.01 * w.grad
    w.grad = None
"""
UNREGISTERED = """class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.ws = [torch.nn.Parameter(torch.ones(2))]
        self.last = torch.nn.Linear(2, 1)

    def forward(self, x):
        return self.last(x * self.ws[0])


model = Model()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(3):
    optimizer.zero_grad()
    model(torch.tensor([[1.0, 2.0]])).sum().backward()
    optimizer.step()
"""


def test_a_parameter_that_the_optimizer_does_not_know_is_told_points_of_a_penalty_are_not(tmp_path: Path) -> None:
    assert reasons(tmp_path, W + PINN) == []
    assert reasons(tmp_path, UNREGISTERED) == [("unregistered", "model.ws", 5)]


MASKED = """scores = torch.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
mask = torch.tensor([[False, True], [True, True]])
s = {mask}
p = {softmax}
{loss}.backward()
"""


@pytest.mark.parametrize(
    ("mask", "softmax", "loss"),
    [
        ("scores.masked_fill(mask, float('-inf'))", "torch.softmax(s, -1)", "p.sum()"),
        ("scores + torch.where(mask, float('-inf'), 0.0)", "torch.softmax(s, -1)", "p[0, 0]"),
        ("torch.where(mask.T, float('-inf'), scores)", "torch.nn.functional.softmax(s, 0)", "p.sum()"),
        ("scores + torch.full((2, 2), float('-inf')).triu()", "torch.softmax(s, -1)", "(p * torch.eye(2)).sum()"),
    ],
)
def test_rows_of_a_softmax_that_are_masked_throughout(tmp_path: Path, mask: str, softmax: str, loss: str) -> None:
    text = MASKED.format(mask=mask, softmax=softmax, loss=loss)
    (found,) = explained(tmp_path, text).findings
    assert found.reason == "masked-row" and found.line == 5
    assert isinstance(found.evidence, Masked)
    assert (found.evidence.rows, found.evidence.of) == (1, 2)
    assert found.evidence.mask == 4


def test_masked_rows_are_blamed_for_nan_only(tmp_path: Path) -> None:
    fill = "scores.masked_fill(mask, float('-inf'))"
    text = MASKED.format(mask=fill, softmax="torch.softmax(s, -1)", loss="p[0].sum()")
    assert reasons(tmp_path, text) == []  # the masked row is not read, and the mask keeps its gradient away
    text = MASKED.format(mask=fill, softmax="torch.log_softmax(s, -1)", loss="p[0].sum()")
    assert [one for one, _, _ in reasons(tmp_path, text)] == ["nan-forward"]  # the masked entry is read
    text = MASKED.format(mask="scores.masked_fill(mask, -1e30)", softmax="torch.softmax(s, -1)", loss="p.sum()")
    assert "masked-row" not in {one for one, _, _ in reasons(tmp_path, text)}
    text = MASKED.format(mask="scores / 0", softmax="torch.softmax(s, -1)", loss="p.sum()")
    assert [one for one, _, _ in reasons(tmp_path, text)] == ["nan-forward"]


NET = """from torch import nn
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        {held}
        self.last = nn.Linear(2, 1)
    def forward(self, x):
        return self.last({use})
model = Net()
optimizer = torch.optim.SGD({given}, lr=0.1)
for _ in range(2):
    optimizer.zero_grad()
    model(torch.ones(3, 2)).sum().backward()
    optimizer.step()
"""
LAYERS = [
    ("self.layers = [nn.Linear(2, 2), nn.Tanh()]", "self.layers[1](self.layers[0](x))", "torch.nn.ModuleList", 1, 2),
    ("self.layers = [[nn.Linear(2, 2)], [nn.Linear(2, 2)]]", "self.layers[0][0](x)", "torch.nn.ModuleList", 2, 4),
    ("self.layers = {'a': nn.Linear(2, 2)}", "self.layers['a'](x)", "torch.nn.ModuleDict", 1, 2),
    ("self.layers = (nn.Parameter(torch.ones(2)),)", "x * self.layers[0]", "torch.nn.ParameterList", 0, 1),
    ("self.layers = {1: nn.Parameter(torch.ones(2))}", "x * self.layers[1]", "torch.nn.ParameterDict", 0, 1),
    ("self.layers = torch.ones(2, requires_grad=True)", "x * self.layers", "torch.nn.Parameter", 0, 1),
]


@pytest.mark.parametrize(("held", "use", "wanted", "layers", "parameters"), LAYERS)
def test_parameters_in_plain_containers(
    tmp_path: Path, held: str, use: str, wanted: str, layers: int, parameters: int
) -> None:
    text = NET.format(held=held, use=use, given="model.parameters()")
    (found,) = explained(tmp_path, text).findings
    assert (found.reason, found.subject, found.line) == ("unregistered", "model.layers", 6)
    assert wanted in found.cure and "`layers` of Net" in found.message and "model.parameters()" in found.message
    assert isinstance(found.evidence, Unregistered)
    assert (found.evidence.layers, found.evidence.parameters) == (layers, parameters)
    asked = explained(tmp_path, text, "model.last.bias").findings
    assert [one.reason for one in asked] == []


@pytest.mark.parametrize(
    ("held", "use", "given"),
    [
        (LAYERS[0][0], LAYERS[0][1], "[*model.parameters(), *model.layers[0].parameters()]"),
        ("self.layers = nn.ModuleList([nn.Linear(2, 2)])", "self.layers[0](x)", "model.parameters()"),
        ("self.one = nn.Linear(2, 2)\n        self.layers = [self.one]", "self.layers[0](x)", "model.parameters()"),
        ("self.layers = [nn.Linear(2, 2).requires_grad_(False)]", "self.layers[0](x)", "model.parameters()"),
        ("self.layers = [nn.Linear(2, 2)]", "self.layers[0](x).detach()", "model.parameters()"),
    ],
)
def test_containers_whose_parameters_are_trained_or_not_meant_to_be(
    tmp_path: Path, held: str, use: str, given: str
) -> None:
    found = reasons(tmp_path, NET.format(held=held, use=use, given=given))
    assert "unregistered" not in [one for one, _, _ in found]


def test_an_optimizer_without_parameters_and_an_update_by_hand(tmp_path: Path) -> None:
    text = NET.format(held=LAYERS[0][0], use="x", given="model.parameters()").replace("self.last = ", "last = ")
    assert [one for one, _, _ in reasons(tmp_path, text)] == ["unregistered", "stopped"]
    by_hand = "with torch.no_grad():\n        for p in model.parameters(): p -= 0.1 * p.grad"
    text = NET.format(held=LAYERS[0][0], use=LAYERS[0][1], given="[torch.zeros(1, requires_grad=True)]")
    text = text.replace("optimizer = ", "other = ").replace("optimizer.step()", by_hand)
    text = text.replace("other = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.1)\n", "")
    assert ("unregistered", "model.layers", 6) in reasons(tmp_path, text.replace("optimizer.zero", "model.zero"))


def test_the_factor_is_shown(tmp_path: Path) -> None:
    (found,) = explained(tmp_path, W + "for _ in range(4):\n    (w * w).sum().backward()\nprint(w.grad)\n").findings
    assert found.evidence == Accumulated(backwards=4, factor=4)
    assert found.numbers() == {"backwards": 4, "factor": 4}
    assert "4 times the gradient of one backward" in found.message


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("h = []\nfor _ in range(4):\n    l = (w * w).sum()\n    l.backward()\n    h.append(l)\n    w.grad = None", ["history"]),
        ("h = []\nfor _ in range(4):\n    l = (w * w).sum()\n    l.backward()\n    h.append(l.item())\n    w.grad = None", []),
        ("h = {}\nfor k in range(4):\n    h[k] = (w * w).sum()\n    h[k].backward()\n    w.grad = None", ["history"]),
        ("hs = [w * k for k in range(4)]\nsum(h.sum() for h in hs).backward()", []),
        ("for _ in range(4):\n    (w * w).sum().backward(retain_graph=True)\n    w.grad = None", ["retain-graph"]),
        ("for _ in range(4):\n    h = w * w\n    h.sum().backward(retain_graph=True)\n    (h * 2).sum().backward()\n    w.grad = None", []),
        ("l = (w * w).sum()\nfor _ in range(4):\n    l.backward(retain_graph=True)\n    w.grad = None", []),
    ],
)  # fmt: skip
def test_graphs_that_stay_alive(tmp_path: Path, text: str, wanted: list[str]) -> None:
    assert [reason for reason, _, _ in reasons(tmp_path, W + text + "\n")] == wanted


# --- the command --------------------------------------------------------------------------------------------


def command(tmp_path: Path, text: str, *args: str) -> int:
    (tmp_path / "file.py").write_text(IMPORT + text)
    return cli.main(["why", str(tmp_path / "file.py"), *args])


def test_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command(tmp_path, W + "print('noise')\nw.detach().sum()\nprint(w.grad)\n", "--format", "json") == 0
    out = capsys.readouterr().out
    assert out.count("\n") == 1
    found = json.loads(out)
    validator("why").validate(found)
    assert found["findings"][0]["reason"] == "never-ran" and found["gradients"] == {"w": "None"}


@pytest.mark.parametrize("name", SAMPLES)
def test_json_of_every_sample(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    cli.main(["why", str(FOLDER / f"{name}.py"), "--format", "json"])
    validator("why").validate(json.loads(capsys.readouterr().out))


@pytest.mark.parametrize("style", ["plain", "table", "csv", "markdown", "latex", "jsonl"])
def test_every_format(tmp_path: Path, style: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert command(tmp_path, W + "w.detach().sum()\nprint(w.grad)\n", "--format", style) == 0
    assert "never-ran" in capsys.readouterr().out.replace("\\", "")


def test_the_exit_code_is_the_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command(tmp_path, "import sys\nsys.exit(3)\n") == 3
    assert "ended with SystemExit: 3" in capsys.readouterr().err
    assert command(tmp_path, "1 / 0\n") == 1
    told = capsys.readouterr()
    assert "ZeroDivisionError" in told.err and "line 2" in told.out
    assert command(tmp_path, "x = = 1\n") == 1
    assert "SyntaxError" in capsys.readouterr().out


def test_arguments_reach_the_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = "import sys\nw = torch.ones(len(sys.argv[1:]), requires_grad=True)\nw.sum().backward()\n"
    assert command(tmp_path, text, "--tensor", "w", "a", "--b", "c", "d") == 0
    assert "norm 2" in capsys.readouterr().out


def test_code_without_a_file_and_other_files(tmp_path: Path) -> None:
    (tmp_path / "beside_why.py").write_text("def cut(x):\n    return x.detach()\n")
    text = "import beside_why\n" + W + "(beside_why.cut(w) * torch.ones(2, requires_grad=True)).sum().backward()\n"
    (found,) = [one for one in explained(tmp_path, text).findings if one.reason == "detached"]
    assert "beside_why.py, line 2" in found.message
    text = (
        W
        + "exec(compile('v = w.detach() * torch.ones(2, requires_grad=True)\\nv.sum().backward()', '<made>', 'exec'))\n"
    )
    assert "detached" in [reason for reason, _, _ in reasons(tmp_path, text)]


def test_long_graphs_and_loops_end(tmp_path: Path) -> None:
    text = W + "h = w\nfor _ in range(3000):\n    h = h + 1\nh.sum().backward()\nprint((h * 1).grad)\n"
    assert [reason for reason, _, _ in reasons(tmp_path, text)] == ["not-leaf"]


def test_containers_in_circles_end(tmp_path: Path) -> None:
    assert reasons(tmp_path, W + "a = [w]\na.append(a)\nb = {1: a}\na.append(b)\nw.sum().backward()\n") == []


def test_recording_keeps_no_tensor_alive(tmp_path: Path) -> None:
    text = (
        "import gc, weakref\ngc.disable()\nx = torch.ones(3, requires_grad=True)\ny = x * 2\nheld = weakref.ref(y)\n"
        "z = y.sum()\ndel y\nz.backward()\nassert held() is None\n"
    )
    assert reasons(tmp_path, text) == []


# --- scripts ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("script", "at", "wanted"),
    [
        ("x**2", {"x": 3}, []),
        ("x*detach(x - 1)", {"x": 1}, ["times-zero", "detached"]),
        ("detach(x)*y", {"x": 1, "y": 2}, ["detached"]),
        ("where(x > 0, sqrt(x), 0)", {"x": 0}, ["branch"]),
        ("where(x > 0, x, 2*y)", {"x": 1, "y": 1}, ["branch"]),
        ("floor(x)", {"x": 2.5}, ["step-function"]),
        ("floor(x)", {"x": 2}, ["step-function"]),
        ("where(x > 0, 1, 2)", {"x": 2.5}, ["step-function"]),
        ("relu(x)", {"x": 0}, ["kink"]),
        ("abs(x) + x", {"x": 0}, ["kink"]),
        ("relu(x)", {"x": -1}, ["branch"]),
        ("sigmoid(50*x)", {"x": 1}, ["saturated"]),
        ("(x - 1)**2", {"x": 1}, ["flat"]),
        ("x - x + 0*y", {"x": 1, "y": 2}, ["cancels", "times-zero"]),
        ("sqrt(x*x)", {"x": 0}, ["not-finite"]),
        ("exp(log(x))", {"x": 0}, ["not-finite"]),
        ("log(x)", {"x": -1}, ["not-finite"]),
        ("1/x", {"x": 1e-9}, ["exploding"]),
        ("exp(-x**2)", {"x": 8}, ["vanishing"]),
        ("sum(where(x > 0, x, 0))", {"x": [1, -1]}, []),
    ],
)
def test_reasons_of_scripts(script: str, at: dict[str, Any], wanted: list[str]) -> None:
    found = calculator.why(script, at=at)
    assert [one.reason for one in found.findings] == wanted
    assert all(one.cure == SCRIPT_CURES[one.reason] for one in found.findings)


@pytest.mark.parametrize(
    ("script", "at", "words"),
    [
        ("x**x", {"x": 0}, "x = 0"),
        ("p**q", {"p": 0, "q": 0}, "(p = 0): its derivative is taken as q*p**(q - 1) in the base, but 0 for q = 0"),
        ("maximum(a, b + 1)", {"a": 1, "b": 0}, "(a = b + 1)"),
        ("clip(q, 0, 1)", {"q": 0}, "(q = 0): its derivative is taken as 1 in q"),
        (
            "mod(q + 1, r)",
            {"q": 1, "r": 1},
            "(q + 1 a multiple of r): its derivative is taken as 1 in q + 1, -(q + 1)/r",
        ),
        ("heaviside(2*q, r)", {"q": 0, "r": 1}, "0 in 2*q, 1 in r"),
        ("atan2(p, q)", {"p": 0, "q": -1}, "(p = 0 and q < 0): its derivative is taken as the limit from p > 0"),
        (
            "hypot(sin(u)*cos(u)*exp(u)*(u + 1)*(u + 2)*(u + 3), v)",
            {"u": 0, "v": 0},
            "(the first argument = 0 and v = 0)",
        ),
    ],
)
def test_reasons_speak_of_the_scripts_own_names(script: str, at: dict[str, Any], words: str) -> None:
    (found,) = [one for one in calculator.why(script, at=at).findings if one.reason in ("kink", "step-function")]
    assert words in found.message
    assert set(re.findall(r"\b[a-z]\b", found.message)) <= {*at, "a"}


def test_no_text_about_a_kink_keeps_the_name_of_a_declared_operand() -> None:
    for primitive in catalogue().values():
        for kink in primitive.kinks:
            code = kink.surface.__code__
            operands = code.co_varnames[: code.co_argcount]
            told = " ".join(kink_texts(kink, [f"t{at}" for at in range(len(operands))]))
            assert not set(re.findall(r"[a-z]\w*", told)) & set(operands), (primitive.name, told)


@pytest.mark.parametrize(
    ("text", "cure"),
    [
        ("w = torch.ones(2, requires_grad=True)\nw = 0.1 * w\nw.sum().backward()\nprint(w.grad)\n", "`w = (0.1"),
        (
            "theta = torch.ones(2, requires_grad=True)\ntheta.sum().backward()\ntheta = theta - 0.1 * theta.grad\n"
            "theta.sum()\nprint(theta.grad)\n",
            "theta -= 0.1 * theta.grad",
        ),
        ("data = torch.tensor([float('nan')], requires_grad=True)\ndata.sum().backward()\n", "isfinite(data)"),
    ],
)
def test_cures_speak_of_the_files_own_names(tmp_path: Path, text: str, cure: str) -> None:
    (found,) = explained(tmp_path, text).findings
    assert cure in found.cure and "$" not in found.cure


def test_no_cure_keeps_a_placeholder() -> None:
    golden = "".join(path.read_text("utf-8") for path in FOLDER.glob("*.why"))
    assert "$" not in golden


def test_a_script_with_a_constant_and_one_leaf_that_is_asked_for() -> None:
    script = "const k = 2\ny = 3.0\nx = 1.0\nk*floor(y)*x\n"
    assert [one.reason for one in calculator.why(script).findings] == ["step-function"]
    assert [one.reason for one in calculator.why(script, tensor="k").findings] == ["const"]
    assert calculator.why(script, tensor="x").findings == ()
    found = calculator.why(script, tensor="y")
    assert found.findings[0].line == 4 and list(found.gradients) == ["y"]
    with pytest.raises(GradcliError) as caught:
        calculator.why(script, tensor="z")
    assert caught.value.diagnostics[0].code == "GC206"


def test_a_script_file_by_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "loss.grad").write_text("x = 2.0\ny = floor(x)\ny*y\n")
    assert cli.main(["why", str(tmp_path / "loss.grad")]) == 0
    assert "jumps here" in capsys.readouterr().out
    assert cli.main(["why", "x**2", "--at", "x=3", "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    validator("why").validate(found)
    assert found["findings"] == [] and found["gradients"] == {"x": "6"}
    assert cli.main(["why", "x +"]) == 2
    assert cli.main(["why", str(tmp_path / "file.py"), "--at", "x=1"]) == 2


def test_findings_are_plain_data() -> None:
    path = GradientPath(2.0, (NodeNorm("n", None, 1.0, 2.0),))
    one = Finding("exploding", "a and b", None, "m", "c", path, ("a", "b"))
    row = {"node": "n", "line": None, "arrived": 1.0, "sent": 2.0}
    assert parsed(one.numbers()) == {"norm": 2.0, "norms": [row], "others": [], "tensors": ["a", "b"]}
