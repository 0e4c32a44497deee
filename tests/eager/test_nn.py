"""Layers and losses by themselves: every function against finite differences twice, modules as trees, training."""

from __future__ import annotations

import copy
import gc
import weakref
from typing import Any

import numpy as np
import pytest

import gradcli
import gradcli.eager as torch
from gradcli.eager import nn
from tests.support.rows import all_rows

F = nn.functional
DOUBLE = torch.float64


def tensor(values: Any, grad: bool = True) -> Any:
    return torch.tensor(values, dtype=DOUBLE, requires_grad=grad)


X = [[0.3, -1.2, 2.1, 0.7], [-0.4, 1.5, -2.6, 0.9]]
P = [[0.3, 0.2, 0.6, 0.7], [0.4, 0.5, 0.25, 0.9]]
T = tensor([[0.1, 0.9, 0.4, 0.2], [0.6, 0.3, 0.8, 0.5]], False)
C = torch.tensor([3, 1])
W = tensor([0.5, 1.5, 2.0, 0.25], False)
SMOOTH: dict[str, Any] = {
    **{name: getattr(F, name) for name in ("leaky_relu", "gelu", "silu", "softplus", "elu", "selu", "celu", "mish")},
    **{name: getattr(F, name) for name in ("logsigmoid", "softsign", "tanhshrink", "glu", "normalize")},
    "gelu with tanh": lambda x: F.gelu(x, approximate="tanh"),
    "softplus with a threshold": lambda x: F.softplus(x, 2.0, 1.0),
    "softmax": lambda x: F.softmax(x, 1),
    "log_softmax": lambda x: F.log_softmax(x, 0),
    "layer_norm": lambda x: F.layer_norm(x, (4,), W, T[0]),
    "batch_norm": lambda x: F.batch_norm(x.T, None, None, training=True),
    "linear": lambda x: F.linear(x, T, T[0, :2]),
    "mse_loss": lambda x: F.mse_loss(x, T),
    "smooth_l1_loss": lambda x: F.smooth_l1_loss(x, T, beta=0.3),
    "huber_loss": lambda x: F.huber_loss(x, T, delta=0.45),
    "kl_div": lambda x: F.kl_div(x, T, reduction="batchmean"),
    "bce_with_logits": lambda x: F.binary_cross_entropy_with_logits(x, T, W, pos_weight=W * 2),
    "nll_loss": lambda x: F.nll_loss(x, C, W),
    "cross_entropy": lambda x: F.cross_entropy(x, C, W, label_smoothing=0.1),
    "cross_entropy, ignoring": lambda x: F.cross_entropy(x, torch.tensor([3, -100])),
    "cross_entropy of probabilities": lambda x: F.cross_entropy(x, T, W),
    "cosine_similarity": lambda x: F.cosine_similarity(x, T),
    "prelu": lambda x: F.prelu(x, W),
}


@all_rows("name", SMOOTH)
def test_first_and_second_derivatives(name: str) -> None:
    x = tensor(X)
    assert torch.autograd.gradcheck(SMOOTH[name], x)
    assert torch.autograd.gradgradcheck(SMOOTH[name], x)


def test_derivatives_by_parameters_and_targets() -> None:
    assert torch.autograd.gradcheck(F.linear, (tensor(X), tensor(P), tensor([0.1, 0.2])))
    assert torch.autograd.gradcheck(F.mse_loss, (tensor(X), tensor(P)))
    assert torch.autograd.gradcheck(F.binary_cross_entropy, (tensor(P), tensor(X, False).sigmoid().requires_grad_()))
    assert torch.autograd.gradcheck(lambda w: F.embedding(torch.tensor([1, 0, 1]), w), tensor(X))
    assert torch.autograd.gradcheck(lambda w, b: F.layer_norm(T, (4,), w, b), (tensor(X[0]), tensor(X[1])))


@pytest.mark.parametrize(
    "script", ["gelu(x)", "silu(x)", "softplus(x)", "selu(x)", "mish(x)", "log_softmax(x)", "hardsigmoid(x)"]
)
def test_losses_and_activations_have_the_gradients_of_the_script(script: str) -> None:
    x = tensor(X[0])
    function = getattr(F, script.removesuffix("(x)"))
    y = function(x, 0) if "softmax" in script else function(x)
    (y * y).sum().backward()
    expected = gradcli.grad(f"sum({script}**2)", at={"x": np.array(X[0])}).gradient["x"]
    np.testing.assert_allclose(x.grad.numpy(), expected, rtol=1e-12)


def test_padding_gets_no_gradient() -> None:
    layer = nn.Embedding(3, 2, padding_idx=1)
    layer(torch.tensor([0, 1, 1])).sum().backward()
    assert layer.weight.grad.tolist() == [[1, 1], [0, 0], [0, 0]]
    assert layer.weight[1].tolist() == [0, 0]


def test_linear_starts_from_the_numbers_of_the_seed() -> None:
    torch.manual_seed(0)
    layer = nn.Linear(2, 2)
    assert repr(layer.weight) == (
        "Parameter containing:\ntensor([[-0.0053,  0.3793],\n        [-0.5820, -0.5204]], requires_grad=True)"
    )
    assert repr(layer.bias) == "Parameter containing:\ntensor([-0.2723,  0.1896], requires_grad=True)"


def model() -> Any:
    torch.manual_seed(4)
    return nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 2))


def test_training_separates_two_moons() -> None:
    net = model()
    angles = torch.rand(64) * 3.1416
    upper = torch.stack([angles.cos(), angles.sin()], 1)
    lower = torch.stack([1 - angles.cos(), 0.4 - angles.sin()], 1)
    x, labels = torch.cat([upper, lower]), torch.tensor([0] * 64 + [1] * 64)
    optimizer = torch.optim.Adam(net.parameters(), lr=0.05)
    first = None
    for _ in range(150):
        optimizer.zero_grad()
        loss = F.cross_entropy(net(x), labels)
        first = loss.item() if first is None else first
        loss.backward()
        optimizer.step()
    assert first > 0.5 > 0.1 > loss.item()
    assert (net(x).argmax(1) == labels).float().mean().item() > 0.97


def test_micro_batches_equal_one_batch() -> None:
    net = model().double()
    x = torch.randn(6, 2, dtype=DOUBLE)
    net(x).pow(2).mean().backward()
    whole = [p.grad.clone() for p in net.parameters()]
    net.zero_grad()
    for part in x.chunk(3):
        (net(part).pow(2).mean() / 3).backward()
    for one, p in zip(whole, net.parameters(), strict=True):
        np.testing.assert_allclose(p.grad.numpy(), one.numpy(), rtol=1e-12)


def test_tree_of_modules() -> None:
    net = model()
    assert [name for name, _ in net.named_parameters()] == ["0.weight", "0.bias", "2.weight", "2.bias"]
    assert [name for name, _ in net.named_modules()] == ["", "0", "1", "2"]
    assert repr(net[:1]) == "Sequential(\n  (0): Linear(in_features=2, out_features=8, bias=True)\n)"
    other = copy.deepcopy(net)
    assert other[0].weight is not net[0].weight
    assert str(net.load_state_dict(other.state_dict())) == "<All keys matched successfully>"
    with pytest.raises(AttributeError, match="wrong"):
        net.wrong  # noqa: B018
    with pytest.raises(RuntimeError, match=r"Missing key\(s\).*0.weight"):
        net.load_state_dict({})


def test_hooks_of_modules_see_what_passes() -> None:
    net, seen = model(), []
    handles = [
        net[1].register_forward_hook(lambda m, args, out: seen.append(("out", tuple(out.shape)))),
        net[1].register_full_backward_hook(lambda m, gi, go: seen.append(("back", tuple(gi[0].shape)))),
    ]
    net(torch.ones(3, 2)).sum().backward()
    assert seen == [("out", (3, 8)), ("back", (3, 8))]
    for handle in handles:
        handle.remove()
    net(torch.ones(3, 2)).sum().backward()
    assert len(seen) == 2


def test_clipping_keeps_directions() -> None:
    net = model()
    net(torch.ones(3, 2)).sum().backward()
    before = torch.cat([p.grad.view(-1) for p in net.parameters()])
    norm = nn.utils.clip_grad_norm_(net.parameters(), 0.5)
    after = torch.cat([p.grad.view(-1) for p in net.parameters()])
    np.testing.assert_allclose(norm.item(), np.linalg.norm(before.numpy()), rtol=1e-6)
    np.testing.assert_allclose(after.numpy(), before.numpy() * 0.5 / norm.item(), rtol=1e-5)


def test_a_model_is_released_without_the_collector() -> None:
    gc.disable()
    try:
        net = model()
        held = weakref.ref(net[0].weight)
        net(torch.ones(3, 2)).sum().backward()
        del net
        assert held() is None
    finally:
        gc.enable()


def test_batches_cover_the_data_in_the_order_of_the_seed() -> None:
    from gradcli.eager.utils.data import DataLoader, TensorDataset

    whole = TensorDataset(torch.arange(5), torch.arange(5) * 10)
    loader = DataLoader(whole, batch_size=2, shuffle=True)
    torch.manual_seed(0)
    first, second = ([(x.tolist(), y.tolist()) for x, y in loader] for _ in range(2))
    assert first == [([1, 4], [10, 40]), ([2, 3], [20, 30]), ([0], [0])]
    assert second != first
    assert sorted(n for x, _ in second for n in x) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    ("run", "error", "word"),
    [
        (lambda: nn.Linear(2, 3)(torch.ones(4)), RuntimeError, "1x4 and 2x3"),
        (lambda: nn.Parameter(torch.tensor([1])), RuntimeError, "floating"),
        (lambda: F.cross_entropy(torch.ones(2, 3), torch.tensor([0, 5])), IndexError, "Target 5"),
        (lambda: F.dropout(torch.ones(2), 1.5), ValueError, "between 0 and 1"),
        (lambda: nn.Transformer, AttributeError, "no 'Transformer'.*--on torch"),
        (lambda: F.softmx, AttributeError, "did you mean softmax"),
        (lambda: nn.Module()(1), NotImplementedError, "forward"),
        (lambda: F.binary_cross_entropy(torch.ones(2) * 2, torch.ones(2)), RuntimeError, "between 0 and 1"),
    ],
)
def test_errors_name_the_cause(run: Any, error: Any, word: str) -> None:
    with pytest.raises(error, match=word):
        run()
