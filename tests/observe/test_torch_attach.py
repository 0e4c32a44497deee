"""`gradcli.watch` and `gradcli.draw`: reasons and pictures for PyTorch inside a script or a notebook."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import gradcli
from gradcli.base.diagnostics import GradcliError

torch: Any = None


@pytest.fixture
def model() -> Any:
    global torch
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)

    class Model(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.encoder = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU())
            self.head = torch.nn.Linear(8, 1)

        def forward(self, x: Any, cut: bool = False) -> Any:
            hidden = self.encoder(x)
            return self.head(hidden.detach() if cut else hidden)

    return Model()


@pytest.mark.peers
def test_a_block_is_explained_by_the_names_of_parameters(model: Any) -> None:
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with gradcli.watch(model) as w:
        loss = model(torch.randn(16, 4), cut=True).pow(2).mean()
        loss.backward()
        optimizer.step()
    assert w.notes == ()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(torch, "__version__", "2.14.0")
        assert gradcli.watch(model).notes == ("PyTorch 2.14.0 is untested; versions 2.4 to 2.13 are known to work",)
    (found,) = w.why("encoder.0.weight").findings
    assert found.reason == "detached" and found.subject == "encoder.0.weight"
    line = Path(__file__).read_text(encoding="utf-8").splitlines()[found.line - 1 if found.line else 0]
    assert "hidden.detach()" in line
    assert w.why("head.weight").findings == ()
    (both,) = w.why().findings
    assert both.tensors == ("encoder.0.weight", "encoder.0.bias")
    (named,) = w.why("loss").findings  # a variable around the block
    assert named.reason == "not-leaf"
    with pytest.raises(GradcliError, match=r"encoder\.0\.weigh") as caught:
        w.why("encoder.0.weigh")
    assert caught.value.diagnostics[0].help == "did you mean encoder.0.weight?"


@pytest.mark.peers
def test_reasons_print_and_show_in_a_notebook(model: Any) -> None:
    with gradcli.watch(model) as w:
        model(torch.ones(2, 4), cut=True).sum().backward()
    answer = w.why()
    assert str(answer) == repr(answer) and str(answer).startswith(f"on PyTorch {torch.__version__}\n")
    bundle = answer._repr_mimebundle_()
    assert bundle["text/plain"] == str(answer) and "detached" in bundle["text/markdown"]


@pytest.mark.peers
def test_several_modules_and_tensors_have_names_of_their_own(model: Any) -> None:
    decoder, scale = torch.nn.Linear(1, 1), torch.ones(1, requires_grad=True)
    with gradcli.watch(model, decoder, scale, third=torch.nn.Linear(2, 2)) as w:
        (decoder(model(torch.ones(2, 4))) * scale.detach()).sum().backward()
    assert [one.reason for one in w.why("scale").findings] == ["detached"]
    assert [one.reason for one in w.why("third.bias").findings] == ["no-path"]
    assert w.why("model.head.bias").findings == w.why("decoder.weight").findings == ()
    with gradcli.watch(net=model) as w:
        model(torch.ones(2, 4)).sum().backward()
    assert "net.head.bias" in w.why("net.head.bias").explanation.gradients


class Unconfigured:
    """Stands for settings that are read at their first use, and raises before they are configured."""

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError("settings are not configured")

    __class__ = property(lambda self: self.missing)  # type: ignore[assignment]


@pytest.mark.peers
def test_an_object_whose_attributes_raise_is_left_alone(model: Any) -> None:
    settings = Unconfigured()
    with gradcli.watch(model) as watched:
        loss = model(torch.ones(2, 4), cut=settings is None).sum()
        loss.backward()
    assert "head.bias" in str(watched.why("head.bias")) and "sum" in str(gradcli.draw(loss))


@pytest.mark.peers
def test_a_block_that_fails_is_explained_and_the_error_goes_on(model: Any) -> None:
    w = gradcli.watch(model)
    total = model(torch.randn(32, 4)).sum()
    with pytest.raises(RuntimeError, match="second time"), w:
        total.backward(), total.backward()
    assert [one.reason for one in w.why().findings] == ["freed"]
    assert torch._C._len_torch_function_stack() == 0
    with pytest.raises(RuntimeError, match="already used"), w:
        pass


@pytest.mark.peers
def test_an_unregistered_layer_is_found_in_a_block(model: Any) -> None:
    model.layers = [torch.nn.Linear(1, 1)]
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with gradcli.watch(model) as w:
        model.layers[0](model(torch.randn(32, 4))).sum().backward()
        optimizer.step()
    assert [(one.reason, one.subject) for one in w.why().findings] == [("unregistered", "model.layers")]


@pytest.mark.peers
def test_a_graph_is_drawn_with_names(model: Any, tmp_path: Path) -> None:
    loss = model(torch.randn(3, 4)).mean()
    drawn = gradcli.draw(loss, model=model)
    vertices = drawn.graph.vertices
    assert {one.name for one in vertices if one.role == "leaf"} == {name for name, _ in model.named_parameters()}
    nodes, pending = set(), [loss.grad_fn]
    while pending:  # the graph as PyTorch has it
        node = pending.pop()
        nodes.add(node)
        pending += [one for one, _ in node.next_functions if one is not None]
    assert sorted(one.torch for one in vertices) == sorted(type(node).__name__ for node in nodes)
    assert all(one.line is None for one in vertices)
    assert str(drawn).startswith(f"loss, on PyTorch {torch.__version__}\n") and "encoder.0.weight" in str(drawn)
    for ending, word in (("svg", "<svg"), ("html", "<html"), ("mmd", "flowchart")):
        drawn.save(tmp_path / f"loss.{ending}")
        assert word in (tmp_path / f"loss.{ending}").read_text(encoding="utf-8")
    assert drawn._repr_mimebundle_()["image/svg+xml"].startswith("<svg")
    for drawn in (gradcli.draw(loss), gradcli.graph(loss)):  # by the variables around the call
        names = {one.name for one in drawn.graph.vertices if one.role == "leaf"}
        assert names == {f"model.{name}" for name, _ in model.named_parameters()}
    named = gradcli.draw(loss, params={"w": model.head.weight})
    assert "w" in {one.name for one in named.graph.vertices}
    with pytest.raises(GradcliError, match=r"loss\.txt"):
        drawn.save(tmp_path / "loss.txt")


@pytest.mark.peers
def test_wrong_arguments_say_what_is_taken(model: Any) -> None:
    with pytest.raises(TypeError, match="modules and tensors of PyTorch, not int"):
        gradcli.watch(3)
    with pytest.raises(TypeError, match="a script or a tensor of PyTorch, not int"):
        gradcli.draw(3)
    with pytest.raises(GradcliError, match="built no graph"):
        gradcli.draw(torch.ones(2))


def test_without_pytorch_one_line_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    for call in (gradcli.watch, lambda: gradcli.draw(None)):
        with pytest.raises(GradcliError) as caught:
            call()
        assert caught.value.diagnostics[0].code == "GC713"
        assert re.search(r"gradcli\[peers\]", caught.value.diagnostics[0].help or "")


def test_importing_gradcli_does_not_import_pytorch() -> None:
    text = "import sys, gradcli; gradcli.watch; gradcli.draw; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", text], check=True, timeout=60)


def test_a_graph_is_that_of_its_tensor_alone(model: Any) -> None:
    other = model(torch.ones(1, 4)).exp()
    hidden = model(torch.ones(2, 4))
    drawn = str(gradcli.graph((hidden * 2).sum()))
    assert "hidden: " in drawn and "exp" not in drawn and other.requires_grad
    leaf = torch.ones(2)
    with pytest.raises(GradcliError, match="GC721"):
        gradcli.graph(leaf)


@pytest.mark.peers
def test_a_loss_from_before_the_block_is_not_explained(model: Any) -> None:
    """The cells of a notebook share their variables; what an earlier one computed was not recorded."""
    loss = model(torch.full((2, 4), float("nan"))).mean()
    with gradcli.watch(model) as w:
        torch.ones(2)
    assert not loss.isfinite()
    assert w.why().findings == ()


@pytest.mark.parametrize(
    ("operand", "reasons"), [("x", {"nan-branch"}), ("jnp.where(x > 0, x, 1.0)", set())], ids=["unsafe", "safe"]
)
def test_code_of_jax_is_watched_as_jax(operand: str, reasons: set[str], tmp_path: Path) -> None:
    pytest.importorskip("jax")
    path = tmp_path / "cell.py"
    path.write_text(
        "import jax, gradcli\nimport jax.numpy as jnp\nx = jnp.array([0.0, 1.0])\nwith gradcli.watch() as w:\n"
        f"    g = jax.grad(lambda x: jnp.where(x > 0, jnp.sqrt({operand}), 0.0).sum())(x)\nwhy = w.why()\n"
    )
    names: dict[str, Any] = {"__name__": "__main__"}
    exec(compile(path.read_text(), str(path), "exec"), names)
    assert {finding.reason for finding in names["why"].findings} == reasons
    assert str(names["why"]).startswith("on JAX ")
