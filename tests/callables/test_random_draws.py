"""Functions and gradients that draw random numbers: what was right at every call may be wrong at the next one."""

from __future__ import annotations

import random
import secrets
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


HELD, PLAIN = np.random.default_rng(1), random.Random(2)


@pytest.mark.parametrize(
    "drawn",
    [
        lambda: np.random.randint(1000) < 2,
        lambda: np.random.default_rng().integers(1000) < 2,
        lambda: random.random() < 2e-3,
        lambda: secrets.randbelow(1000) < 2,
        lambda: HELD.integers(1000) < 2,
        lambda: PLAIN.random() < 2e-3,
    ],
)
def test_a_gradient_that_is_wrong_by_chance_never_passes(drawn: Any) -> None:
    """What is drawn may be right at every call that was made."""
    found = only(total, lambda x: 2 * x + 1.0 * drawn())
    assert found.verdict == "INCONCLUSIVE" and "random" in found.message


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
