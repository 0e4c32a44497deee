"""Functions and gradients that draw random numbers: what was right at every call may be wrong at the next one."""

from __future__ import annotations

import os
import random
import secrets
import tempfile
from functools import cache
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from gradcli import check_callable

if TYPE_CHECKING:
    from gradcli.checks import Check

X2 = np.array([1.0, 2.0])


def total(x: Any) -> Any:
    return np.sum(x**2)


def only(f: Any, df: Any) -> Check:
    (found,) = check_callable(f, df, at=X2).checks
    return found


class Holder:
    """An object that draws from what it, its class or what it holds has."""

    rng = random.Random(3)

    def __init__(self) -> None:
        self.own = np.random.default_rng(4)
        self.inner = {"states": [np.random.RandomState(5)]}
        self.late: Any = None

    def __call__(self, x: Any) -> Any:
        return 2 * x + 1.0 * (self.own.integers(1000) < 2)

    def of_class(self, x: Any) -> Any:
        return 2 * x + 1.0 * (self.rng.random() < 2e-3)

    def of_container(self, x: Any) -> Any:
        return 2 * x + 1.0 * (self.inner["states"][0].rand() < 2e-3)

    def lately(self, x: Any) -> Any:
        self.late = self.late or np.random.default_rng(6)
        return 2 * x + 1.0 * (self.late.random() < 2e-3)

    def seeded(self, x: Any) -> Any:
        self.late = np.random.default_rng(7)
        return 2 * x * (1.0 + 0 * self.late.random())

    def counted(self, x: Any) -> Any:
        self.late = (self.late or 0) + 1
        return 2 * x


def stream() -> Any:
    own = random.Random(8)
    while True:
        yield own.random()


HELD, PLAIN, HOLDER, STREAM = np.random.default_rng(1), random.Random(2), Holder(), stream()
MODULE = ModuleType("noise")
vars(MODULE)["source"] = np.random.default_rng(9)


@cache
def generator() -> Any:
    return np.random.default_rng(10)


@pytest.mark.parametrize(
    "drawn",
    [
        lambda: np.random.randint(1000) < 2,
        lambda: np.random.default_rng().integers(1000) < 2,
        lambda: random.random() < 2e-3,
        lambda: secrets.randbelow(1000) < 2,
        lambda: HELD.integers(1000) < 2,
        lambda: PLAIN.random() < 2e-3,
        lambda: (lambda: HELD.random())() < 2e-3,
        lambda: next(STREAM) < 2e-3,
        lambda: MODULE.source.random() < 2e-3,
        lambda: generator().random() < 2e-3,
        lambda own=HELD: own.random() < 2e-3,
        lambda: random.Random().random() < 2e-3,
        lambda: os.urandom(2) == b"no",
    ],
)
def test_a_gradient_that_is_wrong_by_chance_never_passes(drawn: Any) -> None:
    """What is drawn may be right at every call that was made."""
    found = only(total, lambda x: 2 * x + 1.0 * drawn())
    assert found.verdict == "INCONCLUSIVE" and "random" in found.message


@pytest.mark.parametrize("df", [HOLDER, HOLDER.of_class, HOLDER.of_container, HOLDER.lately])
def test_generators_of_objects_are_found(df: Any) -> None:
    found = only(total, df)
    assert found.verdict == "INCONCLUSIVE" and "random" in found.message


def test_objects_that_draw_nothing_new_are_judged() -> None:
    assert only(total, Holder().seeded).passed and only(total, Holder().counted).passed


def test_temporary_files_have_names_and_draw_nothing() -> None:
    def df(x: Any) -> Any:
        with tempfile.NamedTemporaryFile() as file:
            np.save(file, 2 * x)
            file.seek(0)
            return np.load(file)

    assert only(total, df).passed


def test_generators_of_pytorch_are_found() -> None:
    torch = pytest.importorskip("torch")
    held = {"generator": torch.Generator().manual_seed(3)}
    found = only(total, lambda x: 2 * x + 1.0 * float(torch.rand((), **held) < 2e-3))
    assert found.verdict == "INCONCLUSIVE" and "random" in found.message


def test_generators_of_a_function_in_a_notebook_are_found() -> None:
    torch = pytest.importorskip("torch")
    scope: dict[str, Any] = {"__name__": "notebook", "torch": torch, "G": torch.Generator().manual_seed(3)}
    text = """
class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**2

    @staticmethod
    def backward(ctx, ct):
        (x,) = ctx.saved_tensors
        return 2 * x * ct * (1.0 + float(torch.rand((), generator=G) < 2e-3))
"""
    exec(text, scope)
    (found,) = check_callable(scope["Square"], at=torch.tensor([1.0, 2.0], dtype=torch.float64)).checks
    assert found.verdict == "INCONCLUSIVE" and "random" in found.message


def test_a_key_of_jax_that_is_traced_is_no_crash() -> None:
    jax = pytest.importorskip("jax")
    keys = [jax.random.PRNGKey(0)]

    def backward(x: Any, ct: Any) -> Any:
        keys[0], _ = jax.random.split(keys[0])
        return (2 * x * ct,)

    f = jax.custom_vjp(total)
    f.defvjp(lambda x: (total(x), x), backward)
    assert not check_callable(f, at=X2).checks[0].passed


def test_keys_of_jax_that_are_split_are_found() -> None:
    jax = pytest.importorskip("jax")
    keys = [jax.random.PRNGKey(0)]

    def df(x: Any, *, split: bool = True) -> Any:
        first, other = jax.random.split(keys[0])
        keys[0] = first if split else keys[0]
        return 2 * x + 1.0 * float(jax.random.uniform(other) < 2e-3)

    found = only(total, df)
    assert found.verdict == "INCONCLUSIVE" and "random" in found.message
    assert only(total, lambda x: df(x, split=False)).passed


def test_what_is_seeded_inside_is_a_function() -> None:
    def weights() -> Any:
        np.random.seed(3)
        return np.random.default_rng(5).normal(size=2) + np.random.normal(size=2) + random.Random(1).random()

    assert only(lambda x: np.sum(weights() * x**2), lambda x: 2 * weights() * x).passed


def test_a_rule_of_jax_that_draws() -> None:
    jax = pytest.importorskip("jax")
    f = jax.custom_vjp(total)
    f.defvjp(lambda x: (total(x), x), lambda x, ct: (ct * (2 * x + 1.0 * (np.random.randint(1000) < 2)),))
    (found,) = check_callable(f, at=X2).checks
    assert found.verdict == "INCONCLUSIVE" and "random" in found.message
