"""Padding with copies and images of other sizes against PyTorch: values, gradients, nodes, errors."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import gradcli.eager as ours

torch = pytest.importorskip("torch")

PADS: list[tuple[tuple[int, ...], tuple[int, ...]]] = [
    ((2, 3, 5), (2, 1)), ((3, 5), (1, 1)), ((2, 3, 5, 6), (1, 2, 2, 1)), ((2, 3, 5), (1, 1, 1, 1)),
    ((2, 1, 4, 5, 6), (1, 1, 2, 1, 1, 0)), ((2, 3, 5), (5, 1)), ((2, 3, 5), (6, 1)), ((2, 3, 5), (-1, 1)),
    ((2, 3, 5), (-2, -1)), ((2, 3, 5), (-6, 1)), ((5,), (1, 1)), ((2, 3, 5, 6), (1, 1)), ((2, 3, 5), (1,)),
    ((2, 3, 5, 6), (0, 0, 1, 1)), ((2, 0, 5), (1, 1)), ((0, 2, 5), (1, 1)), ((2, 3, 0), (1, 1)), ((2, 3, 5), (0, 0)),
]  # fmt: skip
RESIZED: list[tuple[tuple[int, ...], dict[str, Any]]] = [
    ((1, 2, 4, 6), {"scale_factor": 2, "mode": "bilinear"}),
    ((1, 2, 4, 6), {"size": (5, 7), "mode": "bilinear", "align_corners": True}),
    ((1, 2, 4, 6), {"scale_factor": (1.5, 2.5), "mode": "bilinear", "align_corners": False}),
    ((1, 2, 4, 6), {"scale_factor": (1.3, 0.6), "mode": "bilinear"}),
    ((1, 2, 4, 6), {"size": 1, "mode": "bilinear", "align_corners": True}),
    ((2, 3, 1, 1), {"size": (3, 4), "mode": "bilinear"}),
    ((2, 3, 7), {"scale_factor": 2.2, "mode": "linear"}),
    ((2, 3, 7), {"size": 3, "mode": "linear", "align_corners": True}),
    ((1, 2, 4, 6), {"scale_factor": 2, "mode": "linear"}),
    ((1, 2, 4, 6), {"scale_factor": 2, "mode": "nearest", "align_corners": True}),
    ((1, 2, 4, 6), {"mode": "bilinear"}),
    ((1, 2, 4, 6), {"size": 3, "scale_factor": 2, "mode": "bilinear"}),
    ((1, 2, 4, 6), {"size": 0, "mode": "bilinear"}),
]
LAYERS = [
    "nn.ConvTranspose2d(2, 3, 3, padding_mode='reflect')",
    "nn.ReflectionPad1d((1, 2))", "nn.ReflectionPad2d(1)", "nn.ReplicationPad1d(3)", "nn.ReplicationPad2d((1, 2, 0, 1))",
    "nn.ConstantPad1d(1, 2.5)", "nn.ConstantPad2d((1, 0, 2, 1), -1.0)",
    "nn.ZeroPad1d(1)", "nn.ZeroPad2d((1, 2, 0, 1))", "nn.Upsample(scale_factor=2, mode='bilinear')",
    "nn.Upsample(size=(7, 3), mode='bilinear', align_corners=True)",
]  # fmt: skip


def names(node: Any) -> list[str]:
    found = []
    while node is not None:
        found.append(type(node).__name__)
        node = next((one for one, _ in getattr(node, "next_functions", ()) if one is not None), None)
    return found


def outcome(lib: Any, call: Any, shape: tuple[int, ...], kind: str) -> Any:
    values = np.random.default_rng(1).standard_normal(shape)
    x = lib.tensor(values.tolist(), dtype=getattr(lib, kind)).reshape(shape).requires_grad_()
    weights = np.random.default_rng(2).standard_normal(10_000)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            y = call(lib, x)
    except (RuntimeError, ValueError, NotImplementedError, TypeError) as error:
        return type(error).__name__
    flat = (y * y * 0.5).reshape(-1)
    (flat * lib.tensor(weights[: flat.numel()].tolist(), dtype=y.dtype)).sum().backward()
    return tuple(y.shape), names(y.grad_fn), y.detach().numpy(), x.grad.numpy()


def agree(call: Any, shape: tuple[int, ...], kind: str = "float64", chain: bool = True) -> None:
    one, other = (outcome(lib, call, shape, kind) for lib in (ours, torch))
    if isinstance(other, str) or isinstance(one, str):
        assert one == other
        return
    assert one[0] == other[0] and (not chain or one[1] == other[1])
    tolerance = 1e-12 if kind == "float64" else 2e-5
    for mine, theirs in zip(one[2:], other[2:], strict=True):
        assert np.allclose(mine, theirs, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("mode", ["reflect", "replicate"])
@pytest.mark.parametrize(("shape", "pad"), PADS, ids=str)
def test_frames_of_copies(shape: tuple[int, ...], pad: tuple[int, ...], mode: str) -> None:
    agree(lambda lib, x: lib.nn.functional.pad(x, pad, mode), shape)


def test_frame_of_copies_takes_no_value() -> None:
    agree(lambda lib, x: lib.nn.functional.pad(x, (1, 1), "reflect", 1.0), (1, 2, 3))
    agree(lambda lib, x: lib.nn.functional.pad(x, (1, 1), "mirror"), (1, 2, 3))


@pytest.mark.parametrize("kind", ["float64", "float32"])
@pytest.mark.parametrize(("shape", "options"), RESIZED, ids=str)
def test_images_of_other_sizes(shape: tuple[int, ...], options: dict[str, Any], kind: str) -> None:
    agree(lambda lib, x: lib.nn.functional.interpolate(x, **options), shape, kind)


def test_resizing_may_be_walked_back_twice() -> None:
    for lib in (ours, torch):
        x = lib.ones(1, 1, 2, 2, requires_grad=True)
        y = lib.nn.functional.interpolate(x, scale_factor=2, mode="bilinear").sum()
        y.backward()
        y.backward()
        assert x.grad.sum().item() == 32


@pytest.mark.parametrize("layer", LAYERS)
def test_layers(layer: str) -> None:
    """The same text in both libraries: printed, applied, and back to the input and the filters."""
    shape = (2, 2, 6) if "1d" in layer else (2, 2, 5, 6)

    def call(lib: Any, x: Any) -> Any:
        lib.manual_seed(0)
        made = eval(layer, {"nn": lib.nn})
        texts.append(repr(made))
        y = made(x)
        for parameter in made.parameters():
            y = y + lib.autograd.grad(y.sin().sum(), parameter, retain_graph=True)[0].sum() * 0.001
        return y

    texts: list[str] = []
    agree(call, shape, "float32", chain=False)
    assert len(set(texts)) <= 1
