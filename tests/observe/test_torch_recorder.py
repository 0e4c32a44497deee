"""`why`, `graph` and `run --trace` on the installed PyTorch: the same reasons and lines as on our tensors, and no trace of it left."""

from __future__ import annotations

import json
import os
import re
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest

from gradcli import why
from gradcli.base.results.findings import Explanation
from gradcli.eager.torch_alias import aliases
from gradcli.interfaces import cli
from gradcli.recording import runs
from gradcli.recording.libraries.eager_recorder import EagerWatch
from gradcli.why.story import walk
from tests.observe import test_why, test_why_users

# the tables of these tests, on PyTorch
from tests.observe.test_why import (  # noqa: F401
    test_a_parameter_that_the_optimizer_does_not_know_is_told_points_of_a_penalty_are_not,
    test_a_tensor_that_is_asked_for,
    test_a_tensor_that_the_file_does_not_have,
    test_an_infinite_mask_is_no_fault,
    test_errors_that_the_file_caught_do_not_blind_or_mislead,
    test_gradients_that_add_up,
    test_masked_rows_are_blamed_for_nan_only,
    test_missing_gradients,
    test_norms_are_shown_where_a_gradient_explodes,
    test_where_the_first_nan_comes_from,
    test_zero_gradients,
)
from tests.observe.test_why_users import (  # noqa: F401
    test_broken_programs_and_their_causes,
    test_parts_that_no_optimizer_moves_may_stay_without_gradient,
)
from tests.rendering.test_schema import validator

pytestmark = pytest.mark.peers
torch: Any = pytest.importorskip("torch")
from gradcli.recording.libraries import torch_recorder  # noqa: E402
from gradcli.recording.libraries.torch_recorder import Recorder, TorchWatch  # noqa: E402

ROOT = Path(__file__).parents[2]
EAGER = ROOT / "samples" / "eager"
TENSOR = {"partly": "x"}  # samples that are asked about one tensor


def recorded(path: Path, host: frozenset[str] | None = None, every: int = 1) -> tuple[TorchWatch, runs.RunOutcome]:
    """The record of a file that runs on PyTorch."""
    watch = TorchWatch(torch, str(path.parent) + os.sep, extents=True, every=every)
    if host is not None:
        watch.tensors.host = host
    with runs.silenced(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        outcome = runs.run_file(str(path), watch=watch, tell=False)
    return watch, outcome


def explained(tmp_path: Path, text: str, tensor: str | None = None, host: frozenset[str] | None = None) -> Explanation:
    """What `why` finds in a file of this text; it must have been recorded without a gap."""
    path = tmp_path / "file.py"
    path.write_text(text)
    watch, outcome = recorded(path, host)
    assert all(note.endswith(" nothing is recorded") for note in watch.notes)
    return why.explain(watch, str(path), outcome.error, tensor)


@pytest.fixture(autouse=True)
def on_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tables that are imported from other tests run on PyTorch here."""
    torch.manual_seed(0)
    monkeypatch.setattr(
        test_why, "explained", lambda path, text, tensor=None: explained(path, test_why.IMPORT + text, tensor)
    )
    monkeypatch.setattr(test_why_users, "explained", explained)


@pytest.mark.parametrize("name", test_why.SAMPLES)
def test_a_sample_has_the_reasons_and_lines_of_our_tensors(name: str) -> None:
    path = EAGER / "why" / f"{name}.py"
    watch, outcome = recorded(path)
    assert watch.notes == []
    golden = path.with_suffix(".why").read_text(encoding="utf-8")
    wanted = re.findall(r"^(.*)\nreason  (\S+)\n(?:line    (\d+))?", golden, re.MULTILINE)
    found = why.explain(watch, str(path), outcome.error, TENSOR.get(name)).findings
    assert [(one.reason, str(one.line or "")) for one in found] == [(reason, line) for _, reason, line in wanted]
    told = [one.message[:60].lower() for one in found]
    assert told == [message[:60].lower() for message, _, _ in wanted] or name == "stopped"


@pytest.mark.parametrize("host", [frozenset(("cpu",)), frozenset[str]()], ids=["host", "device"])
@pytest.mark.parametrize(
    "name",
    ["accumulated", "dead_relu", "diverged", "exploding", "nan_forward", "vanishing", "unregistered", "zeroed_after"],
)
def test_numbers_that_are_fetched_from_a_device_give_the_same_answer(name: str, host: frozenset[str]) -> None:
    path = EAGER / "why" / f"{name}.py"
    watch, outcome = recorded(path, host)
    found = why.explain(watch, str(path), outcome.error)
    golden = path.with_suffix(".why").read_text(encoding="utf-8")
    assert [one.reason for one in found.findings] == re.findall(r"^reason  (\S+)", golden, re.MULTILINE)
    assert not watch.tensors.waiting or host == frozenset()


# --- graphs -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    ["accumulation_over_paths", "broadcasting", "control_flow", "function_square", "hooks_that_change", "micro_batches",
     "cross_entropy_by_hand", "train_with_zero_grad", "two_heads_one_encoder", "changed_after_saving"],
)  # fmt: skip
def test_the_graphs_are_those_of_our_tensors(name: str) -> None:
    path = EAGER / f"{name}.py"
    ours = EagerWatch(str(path.parent) + os.sep, extents=True)
    with runs.silenced():
        runs.run_file(str(path), watch=ours, tell=False, inside=aliases())
    watch, _ = recorded(path)
    assert watch.notes == []
    wanted, found = runs.graphs_of(ours, str(path)), runs.graphs_of(watch, str(path))
    rows = [sorted((x.torch, x.line or 0, x.type, x.name) for x in graphs.forward) for graphs in (found, wanted)]
    assert rows[0] == rows[1]
    for mine, theirs in zip(wanted.backwards, found.backwards, strict=True):
        assert (mine.line, mine.retain, mine.create) == (theirs.line, theirs.retain, theirs.create)
        assert [(x.name, x.times, pytest.approx(x.norm, rel=1e-5)) for x in mine.added] == [
            (x.name, x.times, x.norm) for x in theirs.added
        ]
        assert sorted((x.node, x.line, len(x.sent)) for x in mine.ran) == sorted(
            (x.node, x.line, len(x.sent)) for x in theirs.ran
        )


def test_nodes_of_a_composite_are_in_the_graph(tmp_path: Path) -> None:
    path = tmp_path / "file.py"
    path.write_text("import torch\nlayer = torch.nn.Linear(3, 2)\nlayer(torch.ones(1, 3)).sum().backward()\n")
    watch, _ = recorded(path)
    rows = runs.graphs_of(watch, str(path)).forward
    assert {one.torch for one in rows} == {"AccumulateGrad", "TBackward0", "AddmmBackward0", "SumBackward0"}
    (transposed,) = [one for one in rows if one.torch == "TBackward0"]
    assert transposed.type == "float32[3, 2]" and transposed.line == 3
    (product,) = [one for one in rows if one.torch == "AddmmBackward0"]
    assert transposed.index in product.inputs


def test_commands_say_on_which_pytorch_they_ran(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "file.py"
    path.write_text("import torch\nx = torch.ones(2, requires_grad=True)\n(x * 3).sum().backward()\nprint('own')\n")
    on = f"on PyTorch {torch.__version__}"
    for argv, place in ((["why"], 0), (["graph"], 0), (["run", "--trace", "--on", "torch"], 1)):
        assert cli.main([*argv, str(path)]) == 0
        assert on in capsys.readouterr().out.splitlines()[place]
        assert cli.main([*argv, "--on", "gradcli", str(path)]) == 0
        assert "PyTorch" not in capsys.readouterr().out
    for command in ("why", "graph"):
        assert cli.main([command, str(path), "--format", "json"]) == 0
        validator(command).validate(json.loads(capsys.readouterr().out))
    path.write_text("import gradcli.eager as torch\nx = torch.ones(2, requires_grad=True)\n(x * 3).sum().backward()\n")
    assert cli.main(["graph", str(path)]) == 0
    assert "PyTorch" not in capsys.readouterr().out


def test_a_file_that_fails_shows_its_own_frames_and_what_was_seen(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "file.py"
    path.write_text("import torch\nx = torch.ones(2, requires_grad=True)\ny = (x * 3).sum()\ny.backward()\n1 / 0\n")
    assert cli.main(["run", "--on", "torch", "--trace", str(path)]) == 1
    out, err = capsys.readouterr()
    assert "ZeroDivisionError" in err and "line 5" in err and err.count("  File ") == 1
    assert "MulBackward0" in out
    assert cli.main(["why", str(path)]) == 1
    assert "stopped" in capsys.readouterr().out


# --- programs that people have ------------------------------------------------------------------------------

NET = """import torch
from torch import nn
from dataclasses import dataclass
torch.manual_seed(0)
@dataclass
class Output:
    loss: torch.Tensor
    logits: torch.Tensor
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder, self.frozen, self.head = nn.Linear(4, 16), nn.Linear(16, 16), nn.Linear(16, 2)
        self.norm = nn.LayerNorm(16)
    def forward(self, x, y):
        h = torch.relu(self.encoder(x))
        with torch.no_grad():
            k = self.frozen(h)
        z = self.head(self.norm(h + k))
        return Output(nn.functional.cross_entropy(z, y), z)
model = Model()
optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
x, y = torch.randn(16, 4), torch.randint(0, 2, (16,))
for _ in range(3):
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = model(x, y)
    found.loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
"""
FUNC = """import torch
from torch.func import functional_call, grad, hessian, vmap
w = torch.randn(3, requires_grad=True)
f = lambda v: (v**2).sum()
print(vmap(grad(f))(torch.ones(2, 3)), hessian(f)(torch.ones(2)))
(w * grad(f)(torch.ones(3))).sum().backward()
torch.autograd.grad(w**2, w, grad_outputs=torch.eye(3), is_grads_batched=True)
"""
LOADER = """import torch
from torch.utils.data import DataLoader, TensorDataset
net = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
optimizer = torch.optim.SGD(net.parameters(), .01, momentum=.9)
for x, y in DataLoader(TensorDataset(torch.randn(16, 4), torch.randn(16, 1)), 8, num_workers=1):
    optimizer.zero_grad(set_to_none=False)
    ((net(x) - y) ** 2).mean().backward()
    optimizer.step()
"""
CHECKPOINT = """import torch
from torch.utils.checkpoint import checkpoint
w = torch.tensor([1., 0.], requires_grad=True)
def block(x):
    return torch.sqrt(x * 3) * 2
checkpoint(block, w, use_reentrant={reentrant}).sum().backward()
"""
CLOSURE = """import torch, copy
w = torch.nn.Parameter(torch.ones(2))
optimizer = torch.optim.LBFGS([w])
def closure():
    optimizer.zero_grad()
    loss = (w**2).sum()
    loss.backward()
    return loss
optimizer.step(closure)
copy.deepcopy(torch.nn.Linear(2, 2))
class Logged(torch.Tensor):
    pass
v = torch.ones(3).as_subclass(Logged).requires_grad_()
torch.nn.functional.relu(v * 2).sum().backward()
embedding = torch.nn.Embedding(10, 8, sparse=True)
embedding(torch.tensor([1, 2])).sum().backward()
c = torch.randn(3, dtype=torch.complex64, requires_grad=True)
(c.abs()**2).sum().backward()
lstm = torch.nn.LSTM(8, 8)
lstm(torch.randn(2, 5, 8))[0].sum().backward()
"""


SCALER = """import torch
net = torch.nn.Sequential(torch.nn.Linear(16, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1))
optimizer = torch.optim.SGD(net.parameters(), 1e-3)
scaler = torch.amp.GradScaler("cpu", init_scale=2.0**24)
x, y = torch.randn(32, 16), torch.randn(32, 1)
for _ in range({steps}):
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype=torch.float16):
        out = net(x)
    loss = torch.nn.functional.mse_loss(out.float(), y)
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
"""


@pytest.mark.parametrize(("steps", "reasons"), [(20, set()), (2, {("overflow", 10)})])
def test_steps_that_a_grad_scaler_leaves_out_are_no_fault(steps: int, reasons: set[Any], tmp_path: Path) -> None:
    found = explained(tmp_path, SCALER.format(steps=steps)).findings
    assert {(one.reason, one.line) for one in found} == reasons


def test_an_overflow_of_half_precision_on_the_way_forward(tmp_path: Path) -> None:
    text = "import torch\nx = torch.tensor([1., 300.], requires_grad=True).half()\n(x * x).float().mean().backward()\n"
    (found,) = explained(tmp_path, text).findings
    assert (found.reason, found.line) == ("overflow", 3)


def test_a_division_by_zero_in_half_precision_is_no_overflow(tmp_path: Path) -> None:
    text = (
        "import torch\ny = torch.tensor([1., 0.], requires_grad=True).half()\n((y + 1) / y).float().sum().backward()\n"
    )
    (found, *_) = explained(tmp_path, text).findings
    assert (found.reason, found.line) == ("nan-forward", 3)


def test_autocast_clipping_and_a_dataclass_of_results(tmp_path: Path) -> None:
    (found,) = explained(tmp_path, NET).findings
    assert (found.reason, found.line) == ("no-grad", 17)
    assert found.tensors == ("model.frozen.weight", "model.frozen.bias")


@pytest.mark.parametrize("text", [FUNC, LOADER, CLOSURE], ids=["func", "loader", "closure"])
def test_programs_in_which_nothing_is_wrong(text: str, tmp_path: Path) -> None:
    assert explained(tmp_path, text).findings == ()


@pytest.mark.parametrize("reentrant", [True, False])
def test_a_checkpoint_is_recorded(reentrant: bool, tmp_path: Path) -> None:
    (found,) = explained(tmp_path, CHECKPOINT.format(reentrant=reentrant)).findings
    assert (found.reason, found.line) == ("nan-backward", 6 if reentrant else 5)


def test_what_would_be_compiled_is_recorded_as_it_is_written(tmp_path: Path) -> None:
    path = tmp_path / "file.py"
    path.write_text("import torch\n@torch.compile\ndef f(x):\n    return x.detach() * x\n"
                    "w = torch.ones(2, requires_grad=True)\nv = torch.ones(2, requires_grad=True)\n"
                    "(f(w).detach() * v).sum().backward()\nprint(w.grad)\n")  # fmt: skip
    watch, outcome = recorded(path)
    assert [note.partition(" is ")[0] for note in watch.notes] == ["torch.compile"]
    (found,) = why.explain(watch, str(path), outcome.error).findings
    assert (found.reason, found.line) == ("detached", 7)


def test_every_second_step_is_recorded(tmp_path: Path) -> None:
    path = tmp_path / "file.py"
    path.write_text(LOADER.replace("16, ", "48, "))
    whole, _ = recorded(path)
    half, outcome = recorded(path, every=2)
    assert (len(whole.sweeps), len(half.sweeps)) == (6, 3)
    assert why.explain(half, str(path), outcome.error).findings == ()


# --- nothing is left ----------------------------------------------------------------------------------------


def attributes() -> list[Any]:
    """What a run replaces, and the hooks that it hangs up, as they are now."""
    optimizer = sys.modules["torch.optim.optimizer"]
    watch = TorchWatch(torch, "/")
    return [vars(owner)[name] for owner, name, _ in Recorder(watch).replaced()] + [
        dict(optimizer._global_optimizer_pre_hooks),
        dict(optimizer._global_optimizer_post_hooks),
        torch._C._len_torch_function_stack(),
        torch.get_default_dtype(),
    ]


@pytest.mark.parametrize("end", ["", "1 / 0", "raise SystemExit(3)", "torch.ones(2).backward()"])
def test_nothing_stays_replaced_after_a_run(end: str, tmp_path: Path) -> None:
    path = tmp_path / "file.py"
    path.write_text(NET + end + "\n")
    before = attributes()
    during: list[Any] = []
    watch = TorchWatch(torch, str(tmp_path) + os.sep)
    with runs.silenced():
        with Recorder(watch).attached():
            during = attributes()
        runs.run_file(str(path), watch=watch, tell=False)
    assert attributes() == before
    replaced = len(Recorder(watch).replaced())
    assert all(one is not other for one, other in zip(during[:replaced], before[:replaced], strict=True))


def test_a_hook_of_the_record_is_taken_off_every_node() -> None:
    w = torch.ones(2, requires_grad=True)
    watch = TorchWatch(torch, "/")
    with watch.watching({}):
        y = (w * 2).sum()
        y.backward(retain_graph=True)
    count = len(watch.sweeps[0].steps)
    y.backward()
    assert len(watch.sweeps[0].steps) == count == 2


def test_versions_outside_the_tested_ones_are_noted() -> None:
    def said(version: str) -> list[str]:
        return torch_recorder.untested("torch", version)

    assert said("2.4.0") == said("2.13.0+cpu") == said("2.9.1") == []
    assert said("2.14.0+cu130") == ["PyTorch 2.14.0+cu130 is untested; versions 2.4 to 2.13 are known to work"]
    assert said("1.13.1") and said("2.3.1")


def test_a_module_that_is_converted_has_its_new_format(tmp_path: Path) -> None:
    path = tmp_path / "file.py"
    path.write_text(
        "import torch\nnet = torch.nn.Linear(2, 2).to(torch.bfloat16)\n"
        "loss = net(torch.ones(1, 2, dtype=torch.bfloat16)).sum()\nloss.backward()\n"
    )
    watch, _ = recorded(path)
    assert {entry.dtype for entry in watch.entries.values() if entry.requires} == {"bfloat16"}


def test_a_tensor_that_cannot_be_read_costs_a_note(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file.py"
    path.write_text(
        "import torch\nw = torch.ones(2, requires_grad=True)\ny = w * 2\ny.sum().backward()\nprint(w.grad)\n"
    )
    usual = torch_recorder.TorchTensors.far

    def far(self: Any, value: Any) -> Any:
        if value.dim():
            raise RuntimeError("no entries\nto read")
        return usual(self, value)

    monkeypatch.setattr(torch_recorder.TorchTensors, "far", far)
    watch, outcome = recorded(path)
    assert outcome.code == 0 and outcome.names["w"].grad.tolist() == [2.0, 2.0]
    assert "MulBackward0 is missing from the record: RuntimeError: no entries" in watch.notes
    assert "the entries of a Tensor were not read: no entries" in watch.notes
    assert "w was not read: no entries" in watch.notes


def test_a_parameter_begins_with_the_values_that_it_was_filled_with(tmp_path: Path) -> None:
    """Not with the memory that `torch.empty` found, whose NaN would be blamed."""
    path = tmp_path / "file.py"
    path.write_text(
        "import torch\n"
        "norm = torch.nn.LayerNorm(2)\n"
        "w = torch.nn.Parameter(torch.full((2, 2), float('nan')))\n"
        "v = torch.nn.Parameter(torch.full((2, 2), float('nan')))\n"
        "with torch.no_grad():\n    w.fill_(2.0)\n"
        "v.data.zero_().add_(3.0)\n"
        "norm(torch.ones(1, 2) @ w @ v).sum().backward()\n"
    )
    watch, outcome = recorded(path)
    leaves = {watch.subjects[one.mark].name: one for one in watch.entries.values() if one.mark in watch.subjects}
    assert leaves["norm.weight"].value.tolist() == [1.0, 1.0] and leaves["norm.bias"].value.tolist() == [0.0, 0.0]
    assert leaves["w"].value.tolist() == [[2.0, 2.0]] * 2 and leaves["v"].value.tolist() == [[3.0, 3.0]] * 2
    assert leaves["w"].finite and outcome.code == 0


def test_a_traceback_has_no_frames_of_the_record(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "file.py"
    path.write_text("import torch\ny = torch.ones(2, requires_grad=True).exp()\ny += 1\ny.sum().backward()\n")
    assert cli.main(["run", str(path), "--on", "torch", "--trace"]) == 1
    told = capsys.readouterr().err
    assert 'file.py", line 4, in <module>\n    y.sum().backward()\n' in told and "_engine_run_backward" in told
    assert "handle_torch_function" not in told and "overrides.py" not in told and "gradcli" not in told


def test_what_runs_in_other_processes_is_said_to_be_outside(tmp_path: Path) -> None:
    path = tmp_path / "file.py"
    path.write_text(
        "import torch\n"
        "class DistributedDataParallel(torch.nn.Linear):\n    pass\n"
        "net = DistributedDataParallel(2, 1)\nnet(torch.ones(2)).sum().backward()\n"
    )
    assert recorded(path)[0].notes == [
        "DistributedDataParallel: the communication between its processes is not recorded"
    ]


def test_transforms_of_functions_are_said_to_be_outside(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "file.py"
    path.write_text(FUNC)
    watch, outcome = recorded(path)
    assert outcome.error is None
    assert watch.notes == [
        "inside a transform of torch.func nothing is recorded", "in a batched backward nothing is recorded"
    ]  # fmt: skip
    path.write_text("import torch\nprint(torch.func.grad(lambda x: x.sin())(torch.ones(())))\n")
    assert cli.main(["graph", str(path), "--on", "torch"]) == 2
    assert "inside a transform of torch.func nothing is recorded" in capsys.readouterr().err


def test_after_a_step_that_raises_operations_are_recorded_again(tmp_path: Path) -> None:
    path = tmp_path / "file.py"
    path.write_text(
        "import torch\n"
        "w = torch.ones(2, requires_grad=True)\nopt = torch.optim.SGD([w], lr=0.1)\n"
        "w.sum().backward()\nopt.param_groups[0]['lr'] = 'fast'\n"
        "try:\n    opt.step()\nexcept TypeError:\n    pass\n"
        "opt.zero_grad()\nloss = (w * 3).sum()\nloss.backward()\ny = (w * 5).sum()\ny.backward()\n"
    )
    watch, outcome = recorded(path)
    assert outcome.code == 0 and watch.notes == []
    assert [len(one.steps) for one in watch.sweeps] == [1, 2, 2]
    assert [one.name for one in watch.entries.values() if one.name == "MulBackward0"] == ["MulBackward0"] * 2


SAMPLES = """import torch
from torch.utils.data import DataLoader, Dataset, TensorDataset, default_collate
x, y = torch.randn(12, 3), torch.randn(12, 1)
class Rows(Dataset):
    def __len__(self):
        return 12
    def __getitem__(self, at):
        return {}
net = torch.nn.Linear(3, 1)
for a, b in DataLoader({}, 4, collate_fn={}):
    torch.nn.functional.mse_loss(net(a), b).backward()
"""


@pytest.mark.parametrize(
    ("item", "data", "collate", "entries"),
    [
        ("x[at], y[at]", "TensorDataset(x, y)", "None", 2),
        ("x[at], y[at]", "Rows()", "None", 2),
        (
            "x.select(0, at), y[at]",
            "Rows()",
            "lambda samples: default_collate(samples)",
            2 + 8,
        ),  # `samples` is a name of the file
        ("x[at] * 2, y[at]", "Rows()", "None", 2 + 4 + 4),  # what the file computes of a sample is an operation
        ("x[at], y[at]", "Rows()", "lambda s: tuple(map(torch.stack, zip(*s)))", 2 + 8),  # the file's own batches
    ],
    ids=["tensors", "rows", "named", "computed", "own-collate"],
)
def test_a_sample_that_only_a_batch_uses_has_no_entry(
    item: str, data: str, collate: str, entries: int, tmp_path: Path
) -> None:
    """A batch is made of the data, however many samples there are, and through however many frames."""
    path = tmp_path / "file.py"
    path.write_text(SAMPLES.format(item, data, collate))
    watch = TorchWatch(torch, str(tmp_path) + os.sep)
    with runs.silenced():
        outcome = runs.run_file(str(path), watch=watch, tell=False)
    assert outcome.error is None
    loss = watch.entries[watch.sweeps[-1].roots[0][0]]
    before = watch.sweeps[-2].time
    loaded = [e for e in watch.entries.values() if before < e.mark < loss.mark and not e.requires and e.role != "leaf"]
    assert len(loaded) == entries
    data_marks = {mark for mark, subject in watch.subjects.items() if subject.name in ("x", "y")}
    assert data_marks <= set(walk([loss.mark], lambda mark: watch.entries[mark].inputs))


def test_modes_set_by_calls_do_not_pile_up(tmp_path: Path) -> None:
    """A step of an optimizer sets the mode by calls; the call that the file made is still the one that is named."""
    path = tmp_path / "modes.py"
    path.write_text(
        "import torch\n"
        "for _ in range(50):\n"
        "    torch.set_grad_enabled(True)\n"
        "torch.set_grad_enabled(False)\n"
        "with torch.set_grad_enabled(True):\n"
        "    torch.ones(2, requires_grad=True).sum()\n"
        "x = torch.ones(2, requires_grad=True)\n"
        "y = x.sum()\n"
    )
    try:
        watch, _ = recorded(path)
    finally:
        torch.set_grad_enabled(True)
    last = list(watch.entries.values())[-1]
    assert len(watch.switches) <= 2
    assert (last.mode, last.switch and last.switch.line and last.switch.line.number) == ("no_grad", 4)
