"""The same snippets run under PyTorch and under gradcli.eager; values, flags, graphs, errors must agree."""

from __future__ import annotations

import warnings
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import gradcli.eager
from tests.eager_snippets import SNIPPETS

ULPS = 16  # of float32: a snippet is a few operations, and neither library rounds every function correctly


@pytest.fixture(scope="module")
def torch() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pytest.importorskip("torch")


def walk(node: Any) -> list[Any]:
    """Names in depth-first order, with the number of each edge."""
    found, stack = [], [(node, 0)]
    while stack and len(found) < 100:
        one, at = stack.pop()
        found.append((None if one is None else one.name(), at))
        if one is not None:
            stack.extend(one.next_functions)
    return found


def described(value: Any) -> Any:
    """What of a variable must be equal; numbers of tensors apart."""
    if hasattr(value, "requires_grad"):
        facts: list[Any] = [str(value.dtype), tuple(value.shape), value.requires_grad, value.is_leaf]
        facts.append(None if value.grad_fn is None else walk(value.grad_fn))
        grad = value.grad if value.is_leaf or value.retains_grad else None
        return ["tensor", facts, np.array(value.detach().numpy()), described(grad)]
    if isinstance(value, (list, tuple)):
        return [described(one) for one in value]
    return value if isinstance(value, (int, float, str, bool, type(None))) else type(value).__name__


def left_by(text: str, torch: Any) -> tuple[dict[str, Any], str | None, list[str]]:
    names: dict[str, Any] = {"torch": torch}
    raised = None
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        try:
            exec(compile(text, "snippet.py", "exec"), names)
        except Exception as error:
            raised = next(
                c.__name__ for c in type(error).__mro__ if c.__module__ == "builtins" or c.__name__ == "GradcheckError"
            )
        found = {
            name: described(value)
            for name, value in names.items()
            if name not in ("torch", "__builtins__", "__warningregistry__")
            and not isinstance(value, (ModuleType, type))
        }
    return found, raised, sorted({warning.category.__name__ for warning in heard})


def agree(ours: Any, theirs: Any, where: str) -> None:
    if isinstance(theirs, np.ndarray):
        if theirs.dtype.kind == "f":
            tolerance = float(np.finfo(theirs.dtype).eps) * ULPS
            np.testing.assert_allclose(ours, theirs, rtol=tolerance, atol=tolerance, err_msg=where)
        else:
            np.testing.assert_array_equal(ours, theirs, err_msg=where)
    elif isinstance(theirs, list):
        assert isinstance(ours, list) and len(ours) == len(theirs), (where, ours, theirs)
        for one, other in zip(ours, theirs, strict=True):
            agree(one, other, where)
    elif isinstance(theirs, float):
        assert ours == pytest.approx(theirs, rel=1e-6, nan_ok=True), where
    else:
        assert ours == theirs, where


@pytest.mark.peers
@pytest.mark.parametrize("name", SNIPPETS)
def test_snippet_leaves_what_pytorch_leaves(name: str, torch: Any) -> None:
    text = SNIPPETS[name]
    ours, our_error, our_warnings = left_by(text, gradcli.eager)
    theirs, their_error, their_warnings = left_by(text, torch)
    assert our_error == their_error
    assert our_warnings == their_warnings
    assert sorted(ours) == sorted(theirs)
    for variable in theirs:
        agree(ours[variable], theirs[variable], f"{name}: {variable}")
