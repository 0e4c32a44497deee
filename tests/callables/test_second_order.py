"""Rules of PyTorch and JAX that are right in first order, as functions that are differentiated again."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gradcli import check_callable

pytestmark = pytest.mark.peers
torch = pytest.importorskip("torch")
jax = pytest.importorskip("jax")
from tests.support.traced_torch_rules import back, saving  # noqa: E402

TWO = "two orders were judged"


def cube(backward: Any) -> Any:
    """x**3 with a backward of its own, which takes the cotangent and the saved argument."""
    methods = {"forward": saving(lambda x: x**3), "backward": back(backward)}
    return type("Cube", (torch.autograd.Function,), {name: staticmethod(one) for name, one in methods.items()})


def notes(f: Any, at: Any) -> list[str]:
    report = check_callable(f, at=at)
    assert [check.verdict for check in report.checks] == ["PROVED"]
    return [note.message for note in report.diagnostics]


@pytest.mark.parametrize("at", [(2.0,), (np.array([1.0, -2.0, 0.5]),)])
def test_a_backward_that_detaches_is_right_in_first_order_only(at: Any) -> None:
    (right,) = notes(cube(lambda ct, x: 3 * x**2 * ct), at)
    (wrong,) = notes(cube(lambda ct, x: 3 * x.detach() ** 2 * ct), at)
    assert right.startswith(TWO)
    assert wrong.startswith("differentiated again it is wrong: 0 along a direction")


def test_a_backward_that_refuses_to_be_differentiated_says_so() -> None:
    from torch.autograd.function import once_differentiable

    rule = cube(None)
    rule.backward = staticmethod(once_differentiable(lambda ctx, ct: 3 * ctx.saved_tensors[0] ** 2 * ct))
    (note,) = notes(rule, (2.0,))
    assert note.startswith("the first order was judged") and "once_differentiable" in note


def test_rules_of_jax_are_differentiated_again() -> None:
    for still, start in ((lambda x: x, TWO), (jax.lax.stop_gradient, "differentiated again it is wrong")):
        rule = jax.custom_vjp(lambda x: x**3)
        rule.defvjp(lambda x: (x**3, x), lambda x, ct, still=still: (3 * still(x) ** 2 * ct,))
        (note,) = notes(rule, (np.array(2.0),))
        assert note.startswith(start)


def test_plain_functions_are_no_rules() -> None:
    assert notes(lambda x: x**3 + 0 * torch.tensor(1.0), (torch.tensor(2.0, dtype=torch.float64),)) == []
