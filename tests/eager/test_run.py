"""`gradcli run`: a Python file behaves as under `python FILE`, with these tensors for torch, and leaves no trace."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import warnings
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from jsonschema import Draft202012Validator

import gradcli.eager
from gradcli.base.diagnostics import GradcliError
from gradcli.eager._core.unsupported import INSTEAD, missing
from gradcli.eager.torch_alias import TorchFinder, aliases
from gradcli.interfaces import cli
from gradcli.interfaces.options.direct_reader import ParsedCommand, direct
from gradcli.interfaces.options.typer_reader import full
from tests.rendering.test_schema import validator

ROOT = Path(__file__).parents[2]
CUBE = "import torch\nx = torch.tensor(2.0, requires_grad=True)\ny = x**3\ny.backward()\nprint(x.grad)\n"


def run(tmp_path: Path, text: str | bytes, *args: str, options: tuple[str, ...] = (), name: str = "file.py") -> int:
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return cli.main(["run", *options, str(path), *args])


def both(tmp_path: Path, text: str, *args: str) -> tuple[tuple[str, str, int], tuple[str, str, int]]:
    """What Python and `gradcli run` make of a file: output, errors, exit code."""
    path = tmp_path / "file.py"
    path.write_text(text)
    found = []
    for command in ([sys.executable, str(path)], [sys.executable, "-m", "gradcli", "run", str(path)]):
        done = subprocess.run(
            [*command, *args],
            capture_output=True,
            text=True,
            input="typed\n",
            timeout=60,
            cwd=ROOT,
        )
        found.append((done.stdout, done.stderr, done.returncode))
    return found[0], found[1]


# --- like python --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "import sys, os\nprint(sys.argv[1:], __name__, os.path.isabs(__file__), sys.path[0] == os.path.dirname(__file__))",
        "import sys\nprint(sys.modules['__main__'].__dict__ is globals(), __spec__, __builtins__ is not None)",
        "print(input(), end='')",
        "import sys\nprint('to stderr', file=sys.stderr)",
        "import sys\nsys.exit()",
        "import sys\nsys.exit(7)",
        "import sys\nsys.exit(300)",
        "import sys\nsys.exit('a last word')",
        "raise SystemExit",
        "def f():\n    return 1 / 0\n\n\nf()\n",
        "try:\n    1 / 0\nexcept ZeroDivisionError as e:\n    raise ValueError('second') from e\n",
        "class Own(BaseException):\n    pass\n\n\nraise Own('x')\n",
        "x = = 3\n",
        "def f(:\n",
        "raise ExceptionGroup('several', [ValueError(1), TypeError(2)])\n",
        "import sys\nsys.excepthook = lambda *told: print('hooked', told[0].__name__)\n1 / 0\n",
        "from dataclasses import dataclass\n\n\n@dataclass\nclass P:\n    x: int = 1\n\n\nprint(P())\n",
        "import pickle\n\n\nclass P:\n    pass\n\n\nprint(type(pickle.loads(pickle.dumps(P()))) is P)\n",
        "import warnings\nwarnings.warn('careful')\n",
        "import numpy as np\nprint(np.arange(3).sum())\n",
        "print(__doc__, __annotations__)\nx: int = 3\n",
        "print('é', '\\u2603')\n",
        "assert 1 == 2, 'no'\n",
        "import nowhere_to_be_found\n",
        "",
    ],
)
def test_a_file_runs_as_python_runs_it(tmp_path: Path, text: str) -> None:
    theirs, ours = both(tmp_path, text, "a", "--b", "-c", "--trace")
    assert ours == theirs


@pytest.mark.parametrize("command", [("why",), ("graph",), ("run", "--trace")])
def test_a_file_that_fails_shows_its_own_traceback_and_what_was_seen(
    command: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "file.py"
    file.write_text(
        "import torch\nw = torch.ones(2, requires_grad=True)\n(w * w).sum().backward()\nw @ torch.ones(3)\n"
    )
    assert cli.main([*command, str(file), "--on", "gradcli"]) == 1
    told = capsys.readouterr()
    assert told.err.startswith("Traceback") and told.err.count("File ") == 1 and f'"{file}", line 4' in told.err
    assert "RuntimeError: cannot multiply" in told.err and "w" in told.out.split()


def test_an_interrupt_is_130(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(tmp_path, "raise KeyboardInterrupt") == 130
    assert "KeyboardInterrupt" in capsys.readouterr().err


def test_modules_beside_the_file_are_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "beside_run.py").write_text("import torch\n\n\ndef f():\n    raise ValueError(torch.zeros(1))\n")
    assert run(tmp_path, "import beside_run\nbeside_run.f()\n") == 1
    told = capsys.readouterr().err
    assert "beside_run.py" in told and "tensor([0.])" in told
    assert "importlib" not in told and "gradcli" not in told.replace(str(tmp_path), "")
    sys.modules.pop("beside_run")


@pytest.mark.parametrize("text", [b"\xff\xfe\x00", b"print('\xff')\n", b"x = 1\x00\n"])
def test_bytes_that_are_no_text(tmp_path: Path, text: bytes, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(tmp_path, text) == 1
    told = capsys.readouterr().err
    assert "SyntaxError" in told or "null bytes" in told  # a ValueError before Python 3.11.4


def test_an_encoding_cookie_counts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(tmp_path, "# coding: latin-1\nprint(len('\xe9'))\n".encode("latin-1")) == 0
    assert capsys.readouterr().out == "1\n"


def test_a_snippet_is_read_from_standard_input() -> None:
    text = (
        CUBE
        + "import sys\nprint(sys.argv, '__file__' in globals(), repr(sys.path[0]))\n\n\ndef f():\n    y.backward()\n\n\nf()\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "gradcli", "run", "-", "a"],
        capture_output=True,
        text=True,
        input=text,
        timeout=60,
        cwd=ROOT,
    )
    assert (done.stdout, done.returncode) == ("tensor(12.)\n['-', 'a'] False ''\n", 1)
    assert "y.backward()" in done.stderr and "<stdin>" in done.stderr and "gradcli/" not in done.stderr
    done = subprocess.run(
        [sys.executable, "-m", "gradcli", "run", "--trace", "-"],
        capture_output=True,
        text=True,
        input=CUBE,
        timeout=60,
        cwd=ROOT,
    )
    assert "PowBackward0" in done.stdout and "x**3" in done.stdout


# --- torch is these tensors ---------------------------------------------------------------------------------


def test_torch_means_these_tensors_while_the_file_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    modules, path, argv = dict(sys.modules), sys.path[:], sys.argv[:]
    text = """
import importlib, sys
import torch, torch.autograd.functional
import torch.autograd as again
from torch import Tensor, autograd
from torch.autograd import Function
import gradcli.eager
print(torch is gradcli.eager, again is torch.autograd is autograd, torch.autograd.functional is gradcli.eager.autograd.functional)
print(importlib.import_module("torch") is torch, torch.__spec__.name, torch.autograd.__spec__.name)
print(Tensor, Function.__module__)
"""
    assert run(tmp_path, text) == 0
    assert capsys.readouterr().out.splitlines() == [
        "True True True",
        "True gradcli.eager gradcli.eager.autograd",
        "<class 'torch.Tensor'> torch.autograd.function",
    ]
    assert not any(isinstance(one, TorchFinder) for one in sys.meta_path)
    assert sys.path == path and sys.argv == argv
    assert sys.modules["__main__"] is modules["__main__"]
    assert {name for name in sys.modules if name.partition(".")[0] == "torch"} == {
        name for name in modules if name.partition(".")[0] == "torch"
    }


def test_an_imported_pytorch_is_put_back() -> None:
    marker = type(sys)("torch")
    before = {name: module for name, module in sys.modules.items() if name.partition(".")[0] == "torch"}
    for name in before:
        del sys.modules[name]
    sys.modules["torch"] = marker
    try:
        with aliases():
            import torch

            assert torch is gradcli.eager
        assert sys.modules["torch"] is marker
    finally:
        del sys.modules["torch"]
        sys.modules.update(before)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("import torch\ntorch.zeross(3)", "did you mean zeros"),
        ("import torch\ntorch.zeros(3).reshap(1, 3)", "did you mean reshape"),
        ("from torch import tenser", "cannot import name 'tenser' from 'torch'; did you mean tensor"),
        ("from torch.autograd import functoinal", "from 'torch.autograd'; did you mean functional"),
        ("import torch.autograd.functionall", "did you mean torch.autograd.functional"),
        ("import torch.autogradd", "did you mean torch.autograd"),
        ("import torch.dispatch", "No module named 'torch.dispatch'"),
        ("import torch.autograd.nowhere.deeper", "No module named 'torch.autograd.nowhere'"),
        ("import torch._C", "No module named 'torch._C'"),
        ("import torchvision", "No module named 'torchvision' in gradcli; it is built on PyTorch itself"),
        ("import torchviz", "`gradcli graph FILE.py` draws the graph"),
        ("import torch.utils.tensorboard", "loss.item() in a list"),
        ("from torch.cuda.amp import autocast", "No module named 'torch.cuda.amp' in gradcli; run it on PyTorch: --on"),
        ("import torch.amp", "No module named 'torch.amp' in gradcli; run it on PyTorch: --on torch [GC749]"),
        (
            "from torch.distributions import Normal",
            "'torch.distributions' in gradcli; run it on PyTorch: --on torch [GC7",
        ),
        (
            "import torch\ntorch.save({}, 'x.pt')",
            "torch has no 'save' in gradcli; run it on PyTorch: --on torch [GC749]",
        ),
        (
            "import torch\ntorch.backends.cudnn.benchmark = True",
            "torch has no 'backends' in gradcli; run it on PyTorch",
        ),
        ("from torch import compile", "cannot import name 'compile' from 'torch'; leave it out, the function itself"),
        (
            "from torch.nn import LSTM",
            "cannot import name 'LSTM' from 'torch.nn'; run it on PyTorch: --on torch [GC749]",
        ),
        (
            "import torch.nn as nn\nnn.TransformerEncoderLayer(8, 2)",
            "no 'TransformerEncoderLayer' in gradcli; run it on",
        ),
        ("from torch.nn.utils.rnn import pad_sequence", "No module named 'torch.nn.utils.rnn' in gradcli; run it on"),
        (
            "import torch\ntorch.distributed.init_process_group()",
            "torch has no 'distributed' in gradcli; gradcli runs in",
        ),
        (
            "import torch\ntorch.cuda.is_availabl()",
            "torch.cuda has no 'is_availabl' in gradcli; did you mean",
        ),
        ("import torch.backends.cudnn", "No module named 'torch.backends' in gradcli; run it on PyTorch"),
        (
            "import torch\ntorch.nn.Linaer(2, 3)",
            "torch.nn has no 'Linaer' in gradcli; did you mean Linear",
        ),
        ("import torch\ntorch.nn.functional.rulu(2)", "torch.nn.functional has no 'rulu' in gradcli; "),
    ],
)
def test_what_is_missing_is_named(tmp_path: Path, text: str, told: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(tmp_path, text) == 1
    error = capsys.readouterr().err
    assert told in error
    assert error.startswith("Traceback") and "gradcli/" not in error


def reached(torch: object, dotted: str) -> object:
    """What a dotted name below a module stands for; None where there is none."""
    for part in dotted.split("."):
        torch = getattr(torch, part, None)
    return torch


def test_names_that_are_left_out_do_not_exist_and_the_samples_list_them() -> None:
    import gradcli.eager as torch

    text = (Path(__file__).parents[2] / "samples" / "eager" / "README.md").read_text()
    listed = set(
        re.findall(r"`(?:torch\.)?([\w.]+)", text.partition("## What is left out")[2].partition("## The snippets")[0])
    )
    assert not [dotted for dotted in INSTEAD if reached(torch, dotted) is not None]
    assert not [dotted for dotted in INSTEAD if not {dotted, dotted.rpartition(".")[2]} & listed]


@pytest.mark.peers
def test_names_that_are_left_out_are_names_of_pytorch() -> None:
    torch = pytest.importorskip("torch")
    assert not [dotted for dotted in INSTEAD if reached(torch, dotted) is None and not importable(f"torch.{dotted}")]


def importable(name: str) -> bool:
    return find_spec(name.rpartition(".")[0]) is not None and find_spec(name) is not None


def test_a_missing_name_says_what_to_use() -> None:
    import gradcli.eager as torch

    assert "--on torch" in str(missing("", "block_diag", ["relu"]))
    with pytest.raises(AttributeError, match=r"no 'addmv'.*--on torch"):
        torch.ones(2).addmv  # noqa: B018
    assert str(missing("", "__wrapped__", ["x"])) == "torch has no '__wrapped__' in gradcli"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("import torch\nx = torch.ones(2, requires_grad=True)\n(x * 2).grad\n", 3),
        ("from torch import nn, ones\nf = nn.MSELoss()\nf(ones(3),\n  ones(3, 1))\n", 3),
        ("import torch\nx = torch.ones((), requires_grad=True)\n(x * x).backward(create_graph=True)\n", 3),
        ("import torch\n\ntorch.tensor(torch.ones(2))\n", 3),
        ("import torch\nwith torch.autograd.detect_anomaly():\n    pass\n", 2),
        ("import torch\nx = torch.zeros(1, requires_grad=True)\ny = torch.sqrt(x) * 0\nwith torch.autograd.detect_anomaly():\n"
         "    try:\n        y.sum().backward()\n    except RuntimeError:\n        pass\n", 6),
        ("import torch\ntorch.ones(1).var()\n", 2),
    ],
)  # fmt: skip
def test_warnings_name_the_line_of_the_file(tmp_path: Path, text: str, line: int) -> None:
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        assert run(tmp_path, text) == 0
    assert (Path(told[-1].filename).name, told[-1].lineno) == ("file.py", line)
    assert all(Path(one.filename).name == "file.py" for one in told)


def test_nodes_print_as_in_pytorch(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = (
        "import torch\nclass F(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, x):\n        return x * 1\n"
        "    @staticmethod\n    def backward(ctx, g):\n        return g\n"
        "y = F.apply(torch.ones(1, requires_grad=True)) * 2\nprint(y.grad_fn, y.grad_fn.next_functions[0][0])\n"
    )
    assert run(tmp_path, text) == 0
    assert re.fullmatch(
        r"<MulBackward0 object at 0x\w+> <torch.autograd.function.FBackward object at 0x\w+>\n", capsys.readouterr().out
    )


def test_hasattr_and_except_work_on_what_is_missing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = "import torch\nprint(hasattr(torch, 'nowhere'))\ntry:\n    import torch.nowhere\nexcept ImportError:\n    print('no')\n"
    assert run(tmp_path, text) == 0
    assert capsys.readouterr().out == "False\nno\n"


def test_errors_of_tensors_show_the_line_of_the_file_only(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(tmp_path, CUBE + "\n\ndef again():\n    y.backward()\n\n\nagain()\n") == 1
    told = capsys.readouterr().err
    assert told.count("  File ") == 2 and "retain_graph=True" in told and "line 3" in told


def test_debug_shows_all_frames(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GRADCLI_DEBUG", "1")
    assert run(tmp_path, CUBE + "y.backward()\n") == 1
    assert capsys.readouterr().err.count("  File ") > 3


# --- options ------------------------------------------------------------------------------------------------


def test_dtype_is_the_default_format(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = "import torch\nprint(torch.tensor(1.5).dtype, torch.tensor(0.1))\n"
    assert run(tmp_path, text, options=("--dtype", "float64")) == 0
    assert run(tmp_path, text) == 0
    assert capsys.readouterr().out == "torch.float64 tensor(0.1000)\ntorch.float32 tensor(0.1000)\n"


READ = [
    (["run", "f.py"], {"file": "f.py"}),
    (["run", "f.py", "a", "-b", "--c=1"], {"file": "f.py", "args": ("a", "-b", "--c=1")}),
    (["run", "--trace", "f.py", "--lr", "1"], {"file": "f.py", "trace": True, "args": ("--lr", "1")}),
    (
        ["run", "f.py", "--trace", "--dtype", "float64", "x"],
        {"file": "f.py", "trace": True, "dtype": "float64", "args": ("x",)},
    ),
    (["run", "f.py", "x", "--trace"], {"file": "f.py", "args": ("x", "--trace")}),
    (["run", "f.py", "--", "--trace"], {"file": "f.py", "args": ("--trace",)}),
    (["run", "f.py", "--"], {"file": "f.py"}),
    (["run", "f.py", "-o", "x"], {"file": "f.py", "args": ("-o", "x")}),
    (["run", "f.py", "--help"], {"file": "f.py", "args": ("--help",)}),
    (["run", "f.py", "", "-"], {"file": "f.py", "args": ("", "-")}),
    (["why", "f.py", "--tensor", "w", "--epochs", "3"], {"file": "f.py", "tensor": "w", "args": ("--epochs", "3")}),
]


@pytest.mark.parametrize(("argv", "given"), READ, ids=lambda one: " ".join(one))
def test_what_follows_the_file_is_the_files(argv: list[str], given: dict[str, object]) -> None:
    wanted = ParsedCommand(argv[0], given)
    assert full(argv) == wanted
    assert direct(argv) in (None, wanted)


def test_options_before_the_file_are_read_strictly() -> None:
    for argv in (["run", "--trac", "f.py"], ["run"], ["run", "--dtype", "int", "f.py"], ["run", "--trace"]):
        assert direct(argv) is None
        with pytest.raises(GradcliError):
            full(argv)


@pytest.mark.parametrize(
    ("argv", "code"),
    [
        (["run", "nowhere.py"], "GC601"),
        (["run", "samples"], "GC601"),
        (["run", "README.md"], "GC721"),
        (["run", "samples/physics/lennard_jones.grad"], "GC721"),
        (["run", "--trace", "--on=torch", "nowhere.py"], "GC601"),
        (["run", "--on", "torch", "nowhere.py"], "GC601"),
        (["run", "--graph", "picture.txt", "samples/eager/hooks_in_order.py"], "GC721"),
        (["run", "--trace", "--every", "2", "samples/eager/hooks_in_order.py"], "GC721"),
        (["why", "--every", "2", "--on", "gradcli", "samples/eager/hooks_in_order.py"], "GC721"),
        (["why", "--on", "torch", "x**2"], "GC721"),
        (["graph", "--every", "2", "x**2"], "GC721"),
        (["why", "nowhere.py"], "GC601"),
        (["why", "x**2", "more"], "GC721"),
    ],
)
def test_what_cannot_be_run(argv: list[str], code: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(argv) == 2
    assert f"error[{code}]" in capsys.readouterr().err


def test_unreadable_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "loop.py").symlink_to("loop.py")
    assert cli.main(["run", str(tmp_path / "loop.py")]) == 2
    assert "GC601" in capsys.readouterr().err


@pytest.mark.peers
def test_real_torch_is_the_installed_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("torch")
    text = "import torch\nprint(torch.__file__.split('/')[-2], torch.tensor(0.5).dtype)\n"
    assert run(tmp_path, text, options=("--on=torch",)) == 0
    assert capsys.readouterr().out == "torch torch.float32\n"


@pytest.mark.parametrize(
    "argv",
    [
        ["run", "--on=torch"],
        ["run", "--trace", "--on", "torch"],
        ["why", "--on", "torch"],
        ["graph", "--on", "torch"],
    ],
)
def test_real_torch_that_is_not_installed(
    argv: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    (tmp_path / "cube.py").write_text(CUBE)
    assert cli.main([*argv, str(tmp_path / "cube.py")]) == 2
    told = capsys.readouterr().err
    assert "GC713" in told and "gradcli[peers]" in told and "Traceback" not in told


def test_without_pytorch_a_file_runs_on_our_tensors(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    (tmp_path / "cube.py").write_text(CUBE)
    assert cli.main(["why", str(tmp_path / "cube.py")]) == 0
    assert "PyTorch" not in capsys.readouterr().out


def test_the_graph_of_a_run_is_drawn_into_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "cube.py").write_text(CUBE)
    for ending, word in (("svg", "<svg"), ("html", "<html"), ("dot", "digraph"), ("mmd", "flowchart")):
        assert cli.main(["run", "--graph", str(tmp_path / f"cube.{ending}"), str(tmp_path / "cube.py")]) == 0
        assert word in (tmp_path / f"cube.{ending}").read_text(encoding="utf-8")


# --- --trace ------------------------------------------------------------------------------------------------

TRACED = """import torch
x = torch.tensor(3.0, requires_grad=True)
y = 2 * x + 5
loss = y + x
loss.backward()
print(x.grad)
with torch.no_grad():
    x *= 2
"""


def traced(tmp_path: Path, text: str, capsys: pytest.CaptureFixture[str]) -> dict[str, object]:
    assert run(tmp_path, text, options=("--trace", "--format", "json")) in (0, 1)
    payload: dict[str, object] = json.loads(capsys.readouterr().out.splitlines()[-1])
    checked: Draft202012Validator = validator("run")
    checked.validate(payload)
    return payload


def test_trace_tells_both_orders_and_what_adds_up(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = traced(tmp_path, TRACED, capsys)
    assert [(one["node"], one["reads"], one["line"], one["value"]) for one in found["forward"]] == [  # type: ignore[attr-defined]
        ("leaf", [], None, 3.0),
        ("MulBackward0", [0], 3, 6.0),
        ("AddBackward0", [1], 3, 11.0),
        ("AddBackward0", [2, 0], 4, 14.0),
    ]
    (one,) = found["backwards"]  # type: ignore[misc]
    assert [(step["node"], step["index"]) for step in one["steps"]] == [
        ("AddBackward0", 3),
        ("AddBackward0", 2),
        ("MulBackward0", 1),
    ]
    assert [[(sent["to"], sent["value"]) for sent in step["contributions"]] for step in one["steps"]] == [
        [(2, 1.0), (0, 1.0)],
        [(1, 1.0)],
        [(0, 2.0)],
    ]
    assert one["added"] == [
        {"index": 0, "name": "x", "value": 3.0, "norm": 3.0, "count": 1, "grad": 3.0, "grad_norm": 3.0}
    ]
    assert one["line"] == 5


ACCUMULATING = """import torch
w = torch.tensor([1.0, 2.0], requires_grad=True)
for x in (1.0, 2.0, 3.0, 4.0, 5.0, 6.0):
    if x == 4.0:
        w.grad = None
    ((w * x) ** 2).sum().backward()
"""


@pytest.mark.parametrize("on", ["gradcli", pytest.param("torch", marks=pytest.mark.peers)])
def test_trace_tells_what_grad_is_after_each_accumulation(
    on: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if on == "torch":
        pytest.importorskip("torch")
    options = ("--trace", "--on", on)
    assert run(tmp_path, ACCUMULATING, options=(*options, "--format", "json")) == 0
    every = json.loads(capsys.readouterr().out)
    validator("run").validate(every)
    held = np.zeros(2)
    for number, one in enumerate(every["backwards"], 1):
        (added,) = one["added"]
        held = np.array(added["value"]) + (0 if number == 4 else held)
        assert one["number"] == number and added["grad"] == held.tolist()
        assert added["grad_norm"] == pytest.approx(np.linalg.norm(held), rel=1e-6)
    for chosen, number in ((("--backward", "5"), 5), (("--last",), 6)):
        assert run(tmp_path, ACCUMULATING, options=(*options, *chosen, "--format", "json")) == 0
        found = json.loads(capsys.readouterr().out)
        assert found["backwards"] == [every["backwards"][number - 1]]
        assert [one["node"] for one in found["forward"]] == ["leaf", "MulBackward0", "PowBackward0", "SumBackward0"]
        assert all(one in every["forward"] for one in found["forward"])
        assert run(tmp_path, ACCUMULATING, options=(*options, *chosen)) == 0
        out = capsys.readouterr().out
        assert f"Backward {number} of 6, line 6" in out and ".grad after" in out and out.count("Backward ") == 1


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--trace", "--backward", "7"), "backward 7 does not exist: 6 backwards ran"),
        (("--trace", "--backward", "2", "--last"), "--backward does not go with --last"),
        (("--last",), "what --trace shows"),
        (("--backward", "2"), "what --trace shows"),
    ],
)
def test_a_backward_that_cannot_be_shown(
    options: tuple[str, ...], told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(tmp_path, ACCUMULATING, options=options) == 2
    err = capsys.readouterr().err
    assert "GC721" in err and told in err


def test_trace_stands_behind_what_the_file_prints(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(tmp_path, TRACED, options=("--trace",)) == 0
    out = capsys.readouterr().out
    assert out.startswith("tensor(3.)\nForward")
    for text in ("MulBackward0", "Backward, line 5: loss.backward()", "Added into .grad", "y + x"):
        assert text in out


def test_trace_of_a_file_that_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(tmp_path, TRACED + "1 / 0\n", options=("--trace",)) == 1
    told = capsys.readouterr()
    assert "MulBackward0" in told.out and "ZeroDivisionError" in told.err


def test_trace_of_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(tmp_path, "print('hello')", options=("--trace",)) == 0
    assert "no graph was built" in capsys.readouterr().out


def test_trace_of_loops_shows_the_first_and_the_last(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = "import torch\nx = torch.ones(2, requires_grad=True)\nfor _ in range(50):\n    (x * x).sum().backward()\n"
    assert run(tmp_path, text, options=("--trace",)) == 0
    out = capsys.readouterr().out
    assert "Backward 1 of 50" in out and "Backward 50 of 50" in out and "more backwards" in out
    assert len(out.splitlines()) < 150


def test_trace_numbers_of_the_second_derivative(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = (
        "import torch\nx = torch.tensor(2.0, requires_grad=True)\n"
        "(g,) = torch.autograd.grad(x**3, x, create_graph=True)\ng.backward()\n"
    )
    found = traced(tmp_path, text, capsys)
    first, second = found["backwards"]  # type: ignore[misc]
    assert first["create_graph"] and not second["create_graph"]
    assert second["added"][0]["value"] == 12.0


@pytest.mark.parametrize("style", ["plain", "table", "json", "jsonl", "csv", "markdown", "latex"])
def test_trace_in_every_format(tmp_path: Path, style: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(tmp_path, TRACED, options=("--trace", "--format", style)) == 0
    assert "MulBackward0" in capsys.readouterr().out.replace("\\", "")


def test_a_run_leaves_no_recorder_and_no_tracer(tmp_path: Path) -> None:
    before = sys.gettrace()
    run(tmp_path, TRACED + "1 / 0\n", options=("--trace",))
    assert gradcli.eager._core.events.own.current is None
    assert sys.gettrace() is before


def test_a_run_writes_nothing_beside_the_file(tmp_path: Path) -> None:
    run(tmp_path, CUBE)
    assert os.listdir(tmp_path) == ["file.py"]


def test_a_run_loads_neither_torch_nor_what_it_does_not_need(tmp_path: Path) -> None:
    text = "import sys\nimport torch\ntorch.ones(2, requires_grad=True).sum().backward()\n"
    text += "print([name for name in ('typer', 'rich', 'scipy', 'sympy', 'flint', 'jax') if name in sys.modules])\n"
    text += "print(torch.__file__.endswith('gradcli/eager/__init__.py'), '+gradcli' in torch.__version__)\n"
    (tmp_path / "file.py").write_text(text)
    command = [sys.executable, "-m", "gradcli", "run", str(tmp_path / "file.py")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, cwd=ROOT)
    assert done.stdout == "[]\nTrue True\n"


LARGE = """import torch
w = torch.arange(12.).reshape(3, 4).requires_grad_()
s = torch.tensor([1.25, 2.5, 3.125, 4.0625], requires_grad=True)
loss = (w * 2 + s).sum()
loss.backward()
"""


def test_large_arrays_are_told_by_their_entries_at_the_ends(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """In the listing; programs get null. A leaf that was computed before requires_grad_() is a leaf."""
    assert run(tmp_path, LARGE, options=("--trace",)) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["0", "leaf", "float32[3,", "4]", "0", "to", "11", "w"] in lines
    assert ["2", "leaf", "float32[4]", "[1.25,", "2.5,", "3.12,", "4.06]", "s"] in lines
    assert any(line[:2] == ["1", "MulBackward0"] and line[5:8] == ["0", "to", "22"] for line in lines)
    target = tmp_path / "t.json"
    assert run(tmp_path, LARGE, options=("--trace", "-o", str(target))) == 0
    found = json.loads(target.read_text())
    validator("run").validate(found)
    assert found["forward"][0]["value"] is None and found["forward"][2]["value"] == [1.25, 2.5, 3.125, 4.0625]
    assert found["forward"][0]["node"] == "leaf"
