"""`gradcli why` before people who try it on everything: silence on sound programs, the right cause on broken ones."""

from __future__ import annotations

import os
import warnings
from pathlib import Path

import pytest

from gradcli import why
from gradcli.base.results.findings import Explanation
from gradcli.eager.torch_alias import aliases
from gradcli.recording import runs
from gradcli.recording.libraries.eager_recorder import EagerWatch
from tests.support.healthy_snippets import HEALTHY

SEED = "import torch\ntorch.manual_seed(0)\n"


def explained(tmp_path: Path, text: str, tensor: str | None = None) -> Explanation:
    path = tmp_path / "file.py"
    path.write_text(text)
    watch = EagerWatch(str(tmp_path) + os.sep)
    with runs.silenced(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        outcome = runs.run_file(str(path), watch=watch, tell=False, inside=aliases())
    return why.explain(watch, str(path), outcome.error, tensor)


@pytest.mark.parametrize("name", [name for name in HEALTHY if name != "lbfgs_closure"])  # which PyTorch alone can run
def test_sound_programs_are_left_in_peace(name: str, tmp_path: Path) -> None:
    assert explained(tmp_path, HEALTHY[name]).findings == ()


@pytest.mark.parametrize(
    ("text", "reason", "subject", "line", "words"),
    [
        (  # the wrong optimizer is cleared
            "a = torch.nn.Linear(2, 1)\nb = torch.nn.Linear(2, 1)\noa = torch.optim.SGD(a.parameters(), lr=.1)\n"
            "ob = torch.optim.SGD(b.parameters(), lr=.1)\nfor i in range(5):\n    l = (a(torch.ones(1, 2)) + b(torch.ones(1, 2))).pow(2).mean()\n"
            "    oa.zero_grad()\n    l.backward()\n    oa.step(); ob.step()\n",
            "accumulated", "b.bias and b.weight", 10, "sum of 5 backwards",
        ),
        (  # a network whose middle is next to nothing
            "m = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Tanh(), torch.nn.Linear(4, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1))\n"
            "with torch.no_grad(): m[2].weight.mul_(1e-12)\nm(torch.randn(8, 4)).pow(2).mean().backward()\n",
            "vanishing", "m.0.bias", 5, "the matrix that it multiplies by is nearly zero",
        ),
        (
            "layers = [torch.nn.Linear(8, 8) for _ in range(25)]\nh = torch.randn(4, 8)\nfor one in layers:\n"
            "    h = torch.sigmoid(one(h))\nh.mean().backward()\n",
            "vanishing", "layers[0].bias", 6, "most of it in SigmoidBackward0 at line 6: 25 times, each by about 0.2",
        ),
        (
            "a = torch.nn.Linear(4, 8)\nwith torch.no_grad(): a.bias[:6] = -100\nb = torch.nn.Linear(8, 1)\n"
            "b(torch.relu(a(torch.randn(32, 4)))).sum().backward()\n",
            "dead-relu", None, 6, "6 of 8 units",
        ),
        (
            "X = torch.randn(5, 3)\nX[2, 1] = float('nan')\nm = torch.nn.Linear(3, 1)\nm(X).mean().backward()\n",
            "nan-data", "X", 4, "NaN or inf was written into X at line 4",
        ),
        (
            "w = torch.tensor(1., requires_grad=True)\nopt = torch.optim.SGD([w], lr=10.)\nfor i in range(60):\n    opt.zero_grad()\n"
            "    (w ** 4).backward()\n    opt.step()\n",
            "diverged", None, None, "",
        ),
        (
            "w = torch.tensor(1., requires_grad=True)\nfor i in range(12):\n    loss = torch.exp(w * w)\n    loss.backward()\n"
            "    with torch.no_grad(): w += 0.1 * w.grad.clamp(max=1e3)\n    w.grad = None\n",
            "diverged", None, 5, "the gradient of w had grown",
        ),
        (
            "w = torch.tensor(2, dtype=torch.int64)\nloss = (w * 2.0) ** 2\nloss.backward()\n",
            "integer-dtype", "loss", 3, "w is int64",
        ),
        (
            "with torch.inference_mode():\n    x = torch.ones(2)\nw = torch.ones(2, requires_grad=True)\n(w * x).sum().backward()\n",
            "inference", None, 6, "made in inference_mode",
        ),
        (
            "w = torch.tensor(1., requires_grad=True).to(torch.float64)\n(w * 2).backward()\nprint(w.grad)\n",
            "leaf-lost", "w", 3, "the leaf itself no longer has a name",
        ),
        (
            "W = torch.randn(3, 3, requires_grad=True)\nh = torch.ones(1, 3)\nopt = torch.optim.SGD([W], lr=.1)\nfor i in range(5):\n"
            "    h = torch.tanh(h @ W)\n    opt.zero_grad()\n    h.sum().backward(retain_graph=True)\n    opt.step()\n",
            "changed-carried", None, 10, "in an earlier step",
        ),
        (
            "w = torch.ones(2)\ny = (w * 3).sum()\nw.requires_grad_()\ny.backward()\n",
            "never-required", "y", 4, "w requires grad now, and did not when it was used",
        ),
        (
            "import numpy as np\nw = torch.ones(2, requires_grad=True)\na = np.exp(w.detach().numpy())\ny = torch.from_numpy(a).sum()\n"
            "y.backward()\n",
            "as-number", "y", 5, "numpy() made a plain number or array of it at line 5",
        ),
        (
            "w = torch.ones(2, requires_grad=True)\nh = w * 2\nh.register_hook(lambda g: g * 0)\nh.sum().backward()\nprint(w.grad)\n",
            "hook", "w", 5, "set it to zero, before MulBackward0 at line 4",
        ),
        (
            "w = torch.ones(2, requires_grad=True)\nh = w * 2\nh.register_hook(lambda g: g / 0)\nh.sum().backward()\n",
            "hook", "w", 5, "made it non-finite, before MulBackward0",
        ),
        (
            "w = torch.ones(2, requires_grad=True)\nw.register_hook(lambda g: g * float('nan'))\n(w * 2).sum().backward()\n",
            "hook", "w", 4, "before the leaf",
        ),
        (
            "w = torch.ones(2, requires_grad=True)\nopt = torch.optim.SGD([w], lr=.1)\npreds = []\nfor i in range(5):\n    p = w * i\n"
            "    opt.zero_grad()\n    (p ** 2).sum().backward()\n    opt.step()\n    preds.append(p)\n",
            "history", "preds", 7, "keeps the graphs of 5 backwards alive",
        ),
        (  # an optimizer has the parameter, and the loss does not
            "a = torch.nn.Linear(2, 2)\nb = torch.nn.Linear(2, 2)\nopt = torch.optim.SGD([*a.parameters(), *b.parameters()], lr=.1)\n"
            "a(torch.ones(1, 2)).sum().backward()\nopt.step()\n",
            "no-path", "b.weight and b.bias", 6, "nothing was computed from it",
        ),
    ],
)  # fmt: skip
def test_broken_programs_and_their_causes(
    text: str, reason: str, subject: str | None, line: int | None, words: str, tmp_path: Path
) -> None:
    found = explained(tmp_path, SEED + text).findings
    assert [one.reason for one in found] == [reason]
    assert subject is None or set(str(found[0].subject).split(" and ")) == set(subject.split(" and "))
    assert line is None or found[0].line == line
    assert words in found[0].message


def test_a_part_that_is_left_out_is_told_to_who_asks(tmp_path: Path) -> None:
    text = "import torch\nx = torch.tensor(3., requires_grad=True)\nloss = (x * x).detach() + x\nloss.backward()\n"
    assert explained(tmp_path, text).findings == ()
    (found,) = explained(tmp_path, text, "x").findings
    assert (found.reason, found.line) == ("partly", 3)
    whole = (
        "import torch\nx = torch.tensor(3., requires_grad=True)\nloss = x * x\nprint(loss.item())\nloss.backward()\n"
    )
    assert explained(tmp_path, whole, "x").findings == ()


def test_parts_that_no_optimizer_moves_may_stay_without_gradient(tmp_path: Path) -> None:
    """A target network is none of anybody's business, unless someone asks; without any optimizer it is missed."""
    text = (
        SEED
        + "q, t = torch.nn.Linear(2, 1), torch.nn.Linear(2, 1)\n{}with torch.no_grad():\n    goal = t(torch.ones(1, 2))\n"
        "(q(torch.ones(1, 2)) - goal).pow(2).mean().backward()\n"
    )
    assert explained(tmp_path, text.format("opt = torch.optim.SGD(q.parameters(), lr=.1)\n")).findings == ()
    asked = explained(tmp_path, text.format("opt = torch.optim.SGD(q.parameters(), lr=.1)\n"), "t.weight")
    assert [one.reason for one in asked.findings] == ["no-grad"]
    assert [one.reason for one in explained(tmp_path, text.format("")).findings] == ["no-grad"]


@pytest.mark.parametrize("options", [[], ["--trace"]])
def test_transforms_run_while_everything_is_recorded(
    options: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Stand-ins of `vmap` have no entries; the record does not look for any."""
    from gradcli.interfaces import cli

    text = "import torch\nfrom torch.func import grad, vmap\n\n\ndef f(w, x):\n    y = w * x\n    return y.sum()\n\n\n"
    text += "w = torch.ones(3, requires_grad=True)\nprint(vmap(grad(f), (None, 0))(w, torch.ones(2, 3)).shape)\n"
    path = tmp_path / "file.py"
    path.write_text(text)
    assert cli.main(["run", *options, str(path)]) == 0
    assert "torch.Size([2, 3])" in capsys.readouterr().out
    assert cli.main(["why", str(path)]) == 0
