"""Long training in float32 beside PyTorch: where results differ, training has amplified last digits, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import gradcli.eager
from gradcli.eager._engine import numpy_kernels

LAYERS, WIDTH, ROWS = 8, 32, 64
NOISE = 6e-7  # of float32 numbers of size 1 after a few operations


@pytest.fixture(scope="module")
def torch() -> Iterator[Any]:
    library = pytest.importorskip("torch")
    threads = library.get_num_threads()
    library.set_num_threads(1)
    yield library
    library.set_num_threads(threads)


def network(library: Any, dtype: str, moved: bool = False) -> tuple[Any, Any, Any]:
    """Eight times linear, batch normalisation and tanh; `moved`: the first weights are larger by one last digit."""
    library.manual_seed(0)
    layers: list[Any] = []
    for _ in range(LAYERS):
        layers += [library.nn.Linear(WIDTH, WIDTH), library.nn.BatchNorm1d(WIDTH), library.nn.Tanh()]
    net = library.nn.Sequential(*layers, library.nn.Linear(WIDTH, 1))
    x, y = library.randn(ROWS, WIDTH), library.randn(ROWS, 1)
    if dtype == "float64":
        net, x, y = net.double(), x.double(), y.double()
    if moved:
        weight = net[0].weight.detach().numpy()
        weight[...] = np.nextafter(weight, weight.dtype.type(np.inf))
    return net, x, y


def trained(library: Any, dtype: str, steps: int, moved: bool = False) -> np.ndarray[Any, Any]:
    """The sums of the absolute gradients after each step."""
    net, x, y = network(library, dtype, moved)
    optimizer = library.optim.SGD(net.parameters(), lr=0.1)
    sums = []
    for _ in range(steps):
        optimizer.zero_grad()
        ((net(x) - y) ** 2).mean().backward()
        sums.append(sum(float(p.grad.abs().sum()) for p in net.parameters()))
        optimizer.step()
    return np.array(sums)


def one_step(library: Any, dtype: str) -> dict[str, Any]:
    """Values and gradients of every layer, gradients of the parameters, and the running statistics, in one step."""
    net, x, y = network(library, "float32")
    if dtype == "float64":
        net, x, y = net.double(), x.double(), y.double()
    found: dict[str, Any] = {}
    h = x
    for i, layer in enumerate(net):
        h = layer(h)
        h.retain_grad()
        found[f"value {i}"] = h
    ((h - y) ** 2).mean().backward()
    found.update({f"gradient {name[6:]}": h.grad for name, h in found.items()})
    found.update({f"gradient of {name}": p.grad for name, p in net.named_parameters()})
    found.update(net.named_buffers())
    return {name: x.detach().numpy() for name, x in found.items()}


@pytest.mark.peers
def test_every_layer_is_as_accurate_as_pytorchs(torch: Any) -> None:
    exact = one_step(torch, "float64")
    theirs, ours = one_step(torch, "float32"), one_step(gradcli.eager, "float32")
    assert set(ours) == set(theirs) == set(exact)
    before_norm = {f"gradient of {3 * k}.bias" for k in range(LAYERS)}
    for name, right in exact.items():
        size = np.abs(right).max()
        if name in before_norm:  # 0 but for rounding errors
            assert size < 1e-15 and np.abs(ours[name]).max() < NOISE
            continue
        here, there = (float(np.abs(one[name] - right).max() / size) for one in (ours, theirs))
        assert here <= 3 * there + NOISE, name


@pytest.mark.peers
def test_drift_is_that_of_a_last_digit(torch: Any) -> None:
    steps = 200
    drifts = {}
    for dtype in ("float32", "float64"):
        theirs = trained(torch, dtype, steps)
        ours, moved = trained(gradcli.eager, dtype, steps), trained(torch, dtype, steps, moved=True)
        drifts[dtype] = np.abs(ours / theirs - 1).max()
        assert drifts[dtype] <= 30 * np.abs(moved / theirs - 1).max()
    assert drifts["float64"] < 1e-8
    assert drifts["float32"] < 1e3 * drifts["float64"] * 2**29  # one unit in the last place is 2**29 times as large


@pytest.mark.parametrize("rows", [1, 511, 512, 1000, 4096, 20_000])
def test_sums_of_many_rows(rows: int) -> None:
    """Errors grow with the length of a block of rows, not with the number of rows."""
    x = np.random.default_rng(0).standard_normal((rows, 7)).astype(np.float32)
    found = numpy_kernels.column_sums(x)
    exact = x.sum(0, dtype=np.float64)
    assert found.dtype == np.float32 and found.shape == (7,)
    assert (np.abs(found - exact) <= 2e-7 * np.sqrt(rows) * 8).all()
    if rows >= 4096:
        plain = np.add.reduce(x, 0)
        assert np.abs(found - exact).mean() < 0.5 * np.abs(plain - exact).mean()


def test_the_gradient_of_a_weight_of_many_rows_is_summed_in_blocks() -> None:
    xp, layer_norm = gradcli.eager, gradcli.eager.nn.functional.layer_norm
    rows = np.random.default_rng(0).standard_normal((20_000, 7))
    found = []
    for dtype in (xp.float32, xp.float64):
        x, weight = xp.tensor(rows, dtype=dtype), xp.ones(7, dtype=dtype, requires_grad=True)
        for _ in range(5):  # the first ones take the rule step by step
            weight.grad = None
            layer_norm(x, (7,), weight).sum().backward()
        found.append(weight.grad.numpy())
    plain = np.add.reduce(layer_norm(xp.tensor(rows, dtype=xp.float32), (7,)).numpy(), 0)
    assert np.abs(found[0] - found[1]).mean() < 0.5 * np.abs(plain - found[1]).mean()
