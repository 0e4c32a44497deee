"""Rows 5 to 8: eager tensors beside PyTorch on one thread: chains of small tensors, a training step, long and deep work."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

from tests.benchmarks.driver import Row, raced, rows

Found = tuple[Callable[[], None], Any]
SHAPES: dict[str, tuple[int, ...]] = {"0-d": (), "4": (4,), "16": (16,)}
FUNCTIONS = ("exp", "sin", "log", "sigmoid", "tanh", "relu")


def library(peer: bool) -> Any:
    """PyTorch on one thread, or these tensors."""
    if not peer:
        import gradcli.eager as torch

        return torch
    import torch as real

    real.set_num_threads(1)
    return real


def chain(shape: tuple[int, ...], peer: bool, turns: int) -> Found:
    """50 operations forward, and back."""
    torch = library(peer)
    x = torch.tensor(np.full(shape, 0.5, np.float32)).requires_grad_()
    c = torch.tensor(np.full(shape, 0.3, np.float32))

    def once() -> None:
        x.grad = None
        y = x
        for _ in range(10):
            y = y * c
            y = y + x
            y = y.sin()
            y = y * 0.5
            y = y - c
        (y.sum() if shape else y).backward()

    def work() -> None:
        for _ in range(turns):
            once()

    once()
    return work, float(x.grad.sum())


def training(peer: bool, turns: int) -> Found:
    """A step of a network 64-128-128-10 on 256 points, with nn and SGD."""
    torch = library(peer)
    torch.manual_seed(0)
    nn = torch.nn
    net = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 10))
    optimiser = torch.optim.SGD(net.parameters(), lr=0.01)
    loss = nn.MSELoss()
    points, targets = torch.randn(256, 64), torch.randn(256, 10)

    def once() -> float:
        optimiser.zero_grad()
        found = loss(net(points), targets)
        found.backward()
        optimiser.step()
        return found.item()  # type: ignore[no-any-return]

    def work() -> None:
        for _ in range(turns):
            once()

    return work, once()


def long(name: str, peer: bool, turns: int) -> Found:
    """One function of a million numbers, forward and back."""
    torch = library(peer)
    x = torch.tensor(np.linspace(0.1, 2, 1_000_000 if turns > 1 else 1000).astype(np.float32)).requires_grad_()

    def work() -> None:
        x.grad = None
        getattr(x, name)().sum().backward()

    work()
    return work, float(x.grad[::100].double().sum())


def deep(peer: bool, nodes: int) -> Found:
    """So many nodes, one after the other, forward and back."""
    torch = library(peer)
    last = [0.0]

    def work() -> None:
        x = torch.tensor(1.0, requires_grad=True)
        y = x
        for _ in range(nodes):
            y = y * 1.00001
        y.backward()
        last[0] = x.grad.item()

    work()
    return work, last[0]


def against(name: str, place: str, rounds: int, size: int, per: int, limit: float, rtol: float = 1e-3) -> list[Row]:
    times = raced({"ours": f"{__name__}:{place}_ours", "torch": f"{__name__}:{place}_torch"}, rounds, size, rtol)
    return rows(name, {who: found / per for who, found in times.items()}, {"torch": limit})


for _who, _peer in (("ours", False), ("torch", True)):
    for _name, _shape in SHAPES.items():
        globals()[f"chain_{_name}_{_who}"] = partial(chain, _shape, _peer)
    for _name in FUNCTIONS:
        globals()[f"long_{_name}_{_who}"] = partial(long, _name, _peer)
    globals()[f"training_{_who}"] = partial(training, _peer)
    globals()[f"deep_{_who}"] = partial(deep, _peer)


def run(rounds: int, small: bool) -> list[Row]:
    """Chains at most 0.7, a training step 1.0, a million numbers 2.5 times PyTorch; 100,000 nodes under a second."""
    turns = 2 if small else 100
    found: list[Row] = []
    for name in SHAPES:
        found += against(f"5 eager chain {name}", f"chain_{name}", rounds, turns, turns, 0.7)
    turns = 2 if small else 50
    found += against("6 eager training step", "training", rounds, turns, turns, 1.0)
    for name in FUNCTIONS:
        found += against(f"7 eager {name} of 1e6", f"long_{name}", rounds, 1 if small else 2, 1, 2.5)
    nodes = 1000 if small else 100_000
    return found + against(f"8 eager {nodes} nodes", "deep", min(rounds, 5), nodes, 1, 1.0)
