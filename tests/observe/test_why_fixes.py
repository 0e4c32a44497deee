"""`why --fix`: a patch is shown, tried in a process of its own, and written only after a yes; steps and pages."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest

from gradcli.base.results.findings import Edit, Patch
from gradcli.interfaces import cli
from tests.rendering.test_schema import validator

DETACHED = "import torch\nw = torch.ones(2, requires_grad=True)\nv = torch.ones(2, requires_grad=True)\n"
DETACHED += "loss = ((w * 3).detach() * v).sum()\nloss.backward()\nprint(w.grad)\n"
STEP = (
    "import torch\nw = torch.tensor([0.3, 1.7], requires_grad=True)\ny = torch.round(w * 2) * 3\ny.sum().backward()\n"
)
STOPS = "import torch\nx = torch.tensor([0.0, 1.0], requires_grad=True)\ny = torch.exp(x)\ny += 1\ny.sum().backward()\n"
USELESS = "import torch\nw = torch.ones(2, requires_grad=True)\nx = torch.tensor([-1.0, 4.0])\n"
USELESS += "h = torch.log(w * x)\nloss = h.sum() + float('nan')\nloss.backward()\n"


def asked(capsys: pytest.CaptureFixture[str], *args: str) -> str:
    """What the command prints."""
    cli.main(["why", "--on", "gradcli", *args])
    return capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "removed", "added", "tried"),
    [
        (
            DETACHED,
            "-loss = ((w * 3).detach() * v).sum()",
            "+loss = ((w * 3) * v).sum()",
            "tried: w.grad is no longer None: norm 4.243",
        ),
        (
            STEP,
            "-y = torch.round(w * 2) * 3",
            "+y = ((w * 2) + (torch.round(w * 2) - (w * 2)).detach()) * 3",
            "tried: w.grad is no longer zero: norm 8.485",
        ),
        (STOPS, "-y += 1", "+y = y + 1", "tried: the file runs to its end"),
        (USELESS, "-h = torch.log(w * x)", "+h = torch.log((w * x).clamp(min=1e-8))", "tried: it does not help: "),
    ],
)
def test_a_patch_is_shown_and_tried(
    text: str, removed: str, added: str, tried: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "file.py"
    path.write_text(text)
    shown = asked(capsys, "--fix", str(path)).splitlines()
    assert removed in shown and added in shown
    assert any(tried in line for line in shown)
    assert path.read_text() == text


def test_json_has_the_patch_and_what_was_looked_at(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "file.py"
    path.write_text(DETACHED)
    answer = json.loads(asked(capsys, "--fix", "--tables", "--format", "json", str(path)))
    validator("why").validate(answer)
    (finding,) = answer["findings"]
    assert finding["helps"] is True and finding["patch"].count("\n") == 5
    assert answer["looked_at"] == {"operations": 3, "tensors": 3, "backwards": 1, "steps": 0, "optimizers": []}
    assert [row["loss"] for row in answer["steps"]] == [6.0]


@pytest.mark.parametrize(("said", "written"), [("y\n", True), ("yes\n", True), ("n\n", False), ("", False)])
def test_a_patch_is_written_after_a_yes(
    said: str, written: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file.py"
    path.write_bytes(DETACHED.replace("\n", "\r\n").encode())
    monkeypatch.setattr(sys, "stdin", io.StringIO(said))
    cli.main(["why", "--on", "gradcli", "--fix", "--write", str(path)])
    assert "[y/N]" in capsys.readouterr().err
    fixed = DETACHED.replace("(w * 3).detach()", "(w * 3)") if written else DETACHED
    assert path.read_bytes() == fixed.replace("\n", "\r\n").encode()


def test_a_patch_of_an_imported_file_is_tried_without_writing_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", sys.path[:])
    helper = tmp_path / "layers_of_mine.py"
    helper.write_text("def squashed(h):\n    return h.tanh().detach()\n")
    path = tmp_path / "file.py"
    path.write_text(
        DETACHED.replace("(w * 3).detach()", "squashed(w)").replace(
            "import torch\n", "import torch\nfrom layers_of_mine import squashed\n"
        )
    )
    answer = json.loads(asked(capsys, "--fix", "--format", "json", str(path)))
    sys.modules.pop("layers_of_mine", None)
    (finding,) = answer["findings"]
    assert (finding["file"], finding["line"], finding["helps"]) == (str(helper), 2, True)
    assert helper.read_text().endswith("detach()\n")


def test_edits_keep_what_they_do_not_touch() -> None:
    patch = Patch("f", (Edit(2, 4, 2, 7, "é"), Edit(3, 0, 4, 0, ""), Edit(1, 0, 1, 0, "x\r\n")))
    assert patch.applied("ä\r\nabcdefg\r\nweg\nlast") == "x\r\nä\r\nabcdé\r\nlast"


def test_a_page_has_the_reasons_the_tables_and_the_graph(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, page = tmp_path / "file.py", tmp_path / "why.html"
    path.write_text(DETACHED)
    asked(capsys, "--html", str(page), str(path))
    text = page.read_text(encoding="utf-8")
    assert "<aside>" in text and "detach() was taken" in text and "<svg" in text and "Parameters" in text
    path.write_text("import torch\nprint(torch.ones(2))\n")
    asked(capsys, "--html", str(page), str(path))
    assert "nothing to explain" in page.read_text(encoding="utf-8")


TRAINING = """import torch
torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.Linear(4, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for i in range(40):
    loss = (net(torch.ones(5, 3) * i) - 1).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""


def test_steps_have_losses_norms_and_how_far_parameters_moved(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "file.py"
    path.write_text(TRAINING)
    answer = json.loads(asked(capsys, "--tables", "--format", "json", str(path)))
    rows = answer["steps"]
    assert [row["number"] for row in rows] == list(range(1, 41)) and {row["line"] for row in rows} == {9}
    assert all(0 <= row["dead"] <= 1 for row in rows) and rows[0]["ratio"] > 0
    names = [row["name"] for row in answer["parameters"]]
    assert names == ["net.0.weight", "net.0.bias", "net.2.weight", "net.2.bias"]
    shown = asked(capsys, "--tables", str(path)).splitlines()
    table = shown[shown.index("Steps") :]
    assert (
        len([line for line in table[: table.index("Parameters")] if line.split()[:1] and line.split()[0].isdigit()])
        == 12
    )
