"""Row 7: the gradient check of PyTorch at 4,000 coordinates, every one of them, on functions of three structures.

Both sides run the same Python function on their own tensors and compare every entry with central differences. A turn is
three checks: the first one after a rest measures how a sleeping processor wakes up too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.benchmarks.driver import Row, raced, rows

CHECKS = 3  # in a turn
Found = tuple[Callable[[], Any], Any]


def separable(xp: Any, x: Any) -> Any:
    return (xp.exp(-x) * xp.sin(x)).sum()


def banded(xp: Any, x: Any) -> Any:
    return (xp.sin(x[1:] * x[:-1]) + (x[1:] - x[:-1] ** 2) ** 2).sum()


def coupled(xp: Any, x: Any) -> Any:
    return xp.log(xp.exp(x).sum()) * xp.sin(x).sum()


def checked(xp: Any, gradcheck: Callable[..., bool], f: Callable[[Any, Any], Any], size: int) -> Found:
    x = xp.tensor(np.random.default_rng(1).uniform(0.3, 1.5, size), requires_grad=True)

    def work() -> bool:
        return all(gradcheck(lambda t: f(xp, t), (x,)) for _ in range(CHECKS))

    return work, [float(work()), float(f(xp, x).detach())]


def ours(f: Callable[[Any, Any], Any], size: int) -> Found:
    import gradcli.eager as xp
    from gradcli.eager.autograd import gradcheck

    return checked(xp, gradcheck, f, size)


def torch(f: Callable[[Any, Any], Any], size: int) -> Found:
    import torch as xp

    xp.set_num_threads(1)
    return checked(xp, xp.autograd.gradcheck, f, size)


def ours_separable(size: int) -> Found:
    return ours(separable, size)


def ours_banded(size: int) -> Found:
    return ours(banded, size)


def ours_coupled(size: int) -> Found:
    return ours(coupled, size)


def torch_separable(size: int) -> Found:
    return torch(separable, size)


def torch_banded(size: int) -> Found:
    return torch(banded, size)


def torch_coupled(size: int) -> Found:
    return torch(coupled, size)


def run(rounds: int, small: bool) -> list[Row]:
    """A hundredth of PyTorch's time where the function has structure, two thirds where it has none."""
    size = 60 if small else 4_000
    found: list[Row] = []
    for kind, limit in (("separable", 0.01), ("banded", 0.01), ("coupled", 1 / 1.5)):
        names = {"ours": f"ours_{kind}", "torch": f"torch_{kind}"}
        turns = raced({name: f"{__name__}:{place}" for name, place in names.items()}, rounds, size)
        times = {name: seconds / CHECKS for name, seconds in turns.items()}
        found += rows(f"7 gradcheck, {kind}", times, {"torch": limit})
    return found
