"""Learning rates in cycles, step by step, against PyTorch's: rates, momenta, and the class of each error."""

from __future__ import annotations

import math
import warnings
from typing import Any

import pytest

import gradcli.eager as ours

torch = pytest.importorskip("torch")

OPTIMIZERS: dict[str, tuple[str, dict[str, Any]]] = {
    "momentum": ("SGD", {"lr": 0.1, "momentum": 0.9}),
    "betas": ("Adam", {"lr": 0.1}),
    "no momentum": ("Adagrad", {"lr": 0.1}),
}
CYCLES: list[dict[str, Any]] = [
    {"max_lr": 0.5, "total_steps": 20},
    {"max_lr": [0.5, 0.1], "epochs": 4, "steps_per_epoch": 5, "pct_start": 0.25},
    {"max_lr": 0.5, "total_steps": 20, "three_phase": True},
    {"max_lr": 0.5, "total_steps": 20, "anneal_strategy": "linear", "div_factor": 10, "final_div_factor": 100},
    {"max_lr": 0.5, "total_steps": 20, "cycle_momentum": False},
    {"max_lr": 0.5, "total_steps": 20, "pct_start": 0.0},
    {"max_lr": 0.5, "total_steps": 20, "pct_start": 1.0},
    {"max_lr": 0.5, "total_steps": 1},
    {"max_lr": 0.5},
    {"max_lr": 0.5, "epochs": 3},
    {"max_lr": 0.5, "total_steps": 0},
    {"max_lr": 0.5, "total_steps": 20, "pct_start": 2.0},
    {"max_lr": 0.5, "total_steps": 20, "pct_start": 1},
    {"max_lr": 0.5, "total_steps": 20, "anneal_strategy": "round"},
    {"max_lr": [0.5], "total_steps": 20},
]


def rates(lib: Any, schedule: str, optimizer: str, options: dict[str, Any], epochs: list[Any]) -> list[Any]:
    kind, more = OPTIMIZERS[optimizer]
    groups = [{"params": [lib.ones(1, requires_grad=True)]}, {"params": [lib.ones(1, requires_grad=True)], "lr": 0.3}]
    steps = getattr(lib.optim, kind)(groups, **more)
    found: list[Any] = []
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            rule = getattr(lib.optim.lr_scheduler, schedule)(steps, **options)
            for epoch in epochs:
                steps.step()
                rule.step(*([] if epoch is None else [epoch]))
                momenta = [group.get("momentum", group.get("betas", 0)) for group in steps.param_groups]
                found.append((list(rule.get_last_lr()), momenta, [group["lr"] for group in steps.param_groups]))
    except (ValueError, TypeError, ZeroDivisionError) as error:
        found.append(type(error).__name__)
    return found


def same(one: Any, other: Any) -> bool:
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(same(x, y) for x, y in zip(one, other, strict=True))
    return one == other if isinstance(one, str) else math.isclose(one, other, rel_tol=1e-12, abs_tol=1e-15)


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("options", CYCLES, ids=str)
def test_one_cycle(optimizer: str, options: dict[str, Any]) -> None:
    """22 steps: two more than the cycle of 20 has."""
    found = [rates(lib, "OneCycleLR", optimizer, options, [None] * 22) for lib in (ours, torch)]
    assert same(*found), found
