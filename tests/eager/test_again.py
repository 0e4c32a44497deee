"""What is done again faster must be the same: layers, convolutions in one step, kernels, steps block by block."""

from __future__ import annotations

from typing import Any

import pytest

import gradcli.eager as torch
from gradcli.eager._core.modes import line_of, state
from tests.support.rows import all_rows

nn, F = torch.nn, torch.nn.functional
USES = 5


def layer_of(rows: int = 4, inner: int = 3, out: int = 5) -> tuple[Any, Any, Any]:
    """A layer that was used before, so that its recipe is known."""
    torch.manual_seed(0)
    weight, bias = torch.randn(out, inner).requires_grad_(), torch.randn(out).requires_grad_()
    x = torch.randn(rows, inner).requires_grad_()
    for _ in range(USES):
        F.linear(x, weight, bias)
    return x, weight, bias


def longest(call: Any) -> Any:
    """The result of the long way, which every operation takes while somebody watches."""
    state.watched += 1
    try:
        return call()
    finally:
        state.watched -= 1


@all_rows("needs", range(8))
@all_rows("kind", ["plain", "view", "turned", "computed"])
def test_layer_done_again(needs: int, kind: str) -> None:
    """Values, edges, flags and gradients, whichever operands need a gradient, and however they came about."""
    x, weight, bias = (one.detach() for one in layer_of())
    operands = {
        "plain": (x, weight, bias),
        "view": (torch.stack([x, x])[1], weight, bias),
        "turned": (x.t().contiguous().t(), weight.t().contiguous().t(), bias),
        "computed": (x, weight, bias),
    }[kind]
    leaves = [one.requires_grad_() if needs >> i & 1 else one for i, one in enumerate(operands)]
    given = [one * 1.5 if kind == "computed" else one for one in leaves]
    results = []
    for call in (lambda: F.linear(*given), lambda: longest(lambda: F.linear(*given))):
        for one in leaves:
            one.grad = None
        y = call()
        edges = [] if y.grad_fn is None else [type(node).__name__ for node, _ in y.grad_fn.next_functions]
        if y.requires_grad:
            (y * y).sum().backward(retain_graph=True)
        grads = [None if one.grad is None else one.grad.clone() for one in leaves]
        results.append((y.detach(), edges, [one.is_leaf for one in given], y.is_leaf, grads))
    (mine, *flags, grads), (theirs, *others, expected) = results
    assert flags == others and torch.allclose(mine, theirs)
    for one, other in zip(grads, expected, strict=True):
        assert (one is None) == (other is None) and (one is None or torch.allclose(one, other))


def test_layer_done_again_saves_a_view_of_its_weight() -> None:
    x, weight, bias = layer_of()
    node = F.linear(x, weight, bias).grad_fn
    saved = node._saved_mat2
    assert saved._base is weight and saved.grad_fn is node.next_functions[2][0] and node._saved_mat1 is x
    assert saved.data_ptr() == weight.data_ptr() and saved._version == weight._version


@pytest.mark.parametrize("which", [0, 1])
def test_layer_done_again_sees_changes_of_what_it_saved(which: int) -> None:
    operands = layer_of()
    y = F.linear(*operands).sum()
    with torch.no_grad():
        operands[which].add_(1)
    with pytest.raises(RuntimeError, match="version"):
        y.backward()
    F.linear(*operands).sum().backward()  # made after the change
    with torch.no_grad():
        operands[which].add_(1)
    F.linear(*operands).sum().backward()


def test_layer_done_again_knows_its_line_and_the_modes() -> None:
    x, weight, bias = layer_of()
    y = F.linear(x, weight, bias)
    here = line_of(y.grad_fn.place)
    assert here[0] == __file__ and line_of(y.grad_fn.next_functions[2][0].place) == here
    with torch.no_grad():
        assert not F.linear(x, weight, bias).requires_grad
    with torch.inference_mode():
        assert F.linear(x, weight, bias).is_inference()
        held = torch.randn(4, 3)
    with pytest.raises(RuntimeError, match="inference"):
        F.linear(held, weight, bias)


def test_layer_with_other_tensors_in_place_of_parameters() -> None:
    layer, x = nn.Linear(3, 2), torch.randn(4, 3)
    for _ in range(USES):
        layer(x)
    weight = layer.weight.detach() * 2
    del layer.weight
    layer.weight = weight
    assert torch.equal(layer(x), F.linear(x, weight, layer.bias))


def test_cross_entropy_done_again_still_looks_at_the_classes() -> None:
    x, y = torch.randn(6, 3).requires_grad_(), torch.tensor([0, 1, 2, 0, 1, 2])
    for _ in range(USES):
        F.cross_entropy(x, y)
    with pytest.raises(IndexError):
        F.cross_entropy(x, torch.tensor([0, 1, 3, 0, 1, 2]))
    one, other = F.cross_entropy(x, y), longest(lambda: F.cross_entropy(x, y))
    assert torch.allclose(one, other) and type(one.grad_fn) is type(other.grad_fn)
    ignored = torch.tensor([0, -100, 2, 0, 1, 2])
    assert torch.allclose(F.cross_entropy(x, ignored), longest(lambda: F.cross_entropy(x, ignored)))


# --- convolutions --------------------------------------------------------------------------------------------------------

CONVOLUTIONS: dict[str, Any] = {
    "3x3": lambda x, w: F.conv2d(x, w, padding=1),
    "stride": lambda x, w: F.conv2d(x, w, stride=2, padding=(1, 0)),
    "dilated": lambda x, w: F.conv2d(x, w, dilation=(1, 2), padding=2),
    "groups": lambda x, w: F.conv2d(x, w[:, :2], groups=2),
    "pooled": lambda x, w: F.max_pool2d(x, 2) * w.sum(),
}  # fmt: skip


@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_windows_in_one_step_give_what_slices_give(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first uses go step by step, the later ones through written functions."""
    torch.manual_seed(3)
    x, w = torch.randn(2, 4, 5, 6, dtype=torch.float64), torch.randn(4, 4, 3, 3, dtype=torch.float64)

    def run() -> list[Any]:
        leaves = [x.clone().requires_grad_(), w.clone().requires_grad_()]
        y = CONVOLUTIONS[name](*leaves)
        (y * y.detach().cos()).sum().backward()
        return [y.detach(), *[one.grad for one in leaves]]

    expected = longest(run)
    for _ in range(USES):
        found = run()
    for one, other in zip(found, expected, strict=True):
        assert one.is_contiguous() and torch.allclose(one, other, rtol=1e-12, atol=1e-12)


# --- kernels -----------------------------------------------------------------------------------------------------------


# --- steps of optimizers -----------------------------------------------------------------------------------------------

RULES: dict[str, dict[str, Any]] = {
    "SGD": {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.01, "nesterov": True},
    "Adam": {"lr": 0.1, "weight_decay": 0.01, "amsgrad": True},
    "AdamW": {"lr": 0.1},
    "RMSprop": {"lr": 0.1, "momentum": 0.5, "centered": True},
    "Adagrad": {"lr": 0.1, "lr_decay": 0.1},
    "Adadelta": {"lr": 0.5},
}


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("shape", [(7, 11), ()])
def test_steps_block_by_block_give_the_same_bits(
    rule: str, shape: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = []
    for block in (10**6, 8):
        monkeypatch.setattr("gradcli.eager.optim.optimizer._BLOCK", block)
        torch.manual_seed(1)
        x = torch.randn(shape).requires_grad_()
        steps = getattr(torch.optim, rule)([x], **RULES[rule])
        for _ in range(4):
            steps.zero_grad()
            (x.sin() * x).sum().backward()
            steps.step()
        found.append([x.detach(), *steps.state[x].values()])
    assert all(torch.equal(one, other) for one, other in zip(*found, strict=True))
