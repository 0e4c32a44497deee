"""Layers of encoders against PyTorch's: text, state, values, gradients, masks, dropout and errors."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import gradcli.eager as ours

torch = pytest.importorskip("torch")

LAYERS = [
    "nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0)",
    "nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True, activation='gelu')",
    "nn.TransformerEncoderLayer(8, 4, 16, dropout=0.0, norm_first=True, layer_norm_eps=1e-3)",
    "nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, bias=False, batch_first=True)",
    "nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, activation=torch.tanh, batch_first=True)",
    "nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True), 3)",
    "nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0), 2, norm=nn.LayerNorm(8))",
    "nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 1, 16, dropout=0.0, batch_first=True), 1)",
    "nn.TransformerEncoderLayer(8, 3)",
    "nn.TransformerEncoderLayer(8, 2, activation='tanh')",
]
MASKS = {
    "none": "{}",
    "square": "{'MASK': torch.triu(torch.full((5, 5), float('-inf')), 1)}",
    "truth": "{'MASK': torch.ones(5, 5, dtype=torch.bool).triu(1)}",
    "causal": "{'MASK': torch.triu(torch.full((5, 5), float('-inf')), 1), 'is_causal': True}",
    "padding": "{'src_key_padding_mask': torch.tensor([[False] * 5, [False] * 3 + [True] * 2, [False] * 4 + [True]])}",
}


def outcome(lib: Any, text: str, mask: str) -> Any:
    names = {"nn": lib.nn, "torch": lib}
    lib.manual_seed(0)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # PyTorch's about nested tensors, which are not here
            layer = eval(text, names)
    except (RuntimeError, ValueError, AssertionError, TypeError) as error:
        return type(error).__name__
    first = "batch_first=True" in text
    x = lib.randn(*((3, 5, 8) if first else (5, 3, 8))).requires_grad_()
    word = "mask" if "Encoder(" in text else "src_mask"
    y = layer(x, **eval(MASKS[mask].replace("MASK", word), names))
    weights = np.linspace(-1, 1, 120).reshape(y.shape).tolist()
    (y * lib.tensor(weights)).sum().backward()
    state = {name: value.detach().numpy().copy() for name, value in layer.state_dict().items()}
    grads = [parameter.grad.numpy() for parameter in layer.parameters()]
    return repr(layer), list(state), [y.detach().numpy(), x.grad.numpy(), *grads, *state.values()]


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("text", LAYERS)
def test_encoders(text: str, mask: str) -> None:
    one, other = (outcome(lib, text, mask) for lib in (ours, torch))
    if isinstance(one, str) or isinstance(other, str):
        assert one == other
        return
    assert one[:2] == other[:2]
    for mine, theirs in zip(one[2], other[2], strict=True):
        assert mine.shape == theirs.shape and np.allclose(mine, theirs, rtol=1e-4, atol=2e-5)


def test_dropout_draws_the_same_numbers() -> None:
    found = []
    for lib in (ours, torch):
        lib.manual_seed(3)
        layer = lib.nn.TransformerEncoderLayer(8, 2, 16, dropout=0.4, batch_first=True)
        x = lib.randn(2, 4, 8)
        found.append((layer(x).detach().numpy(), layer.eval()(x).detach().numpy()))
    assert all(np.allclose(one, other, rtol=1e-4, atol=1e-5) for one, other in zip(*found, strict=True))
