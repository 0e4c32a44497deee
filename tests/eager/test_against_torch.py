"""The same snippets run under PyTorch and under gradcli.eager; values, flags, graphs, texts, warnings, errors must agree.

`tests/eager_snippets*.py` hold the programs. What they leave in variables is compared: format, shape, flags, the names
and edges of the graph, numbers, and the printed text. `KEPT` lists the differences that we keep, with the reason.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import gradcli.eager
import gradcli.eager.nn.functional
import gradcli.eager.optim
from gradcli.eager.torch_alias import aliases
from tests.support.eager_snippets import SNIPPETS
from tests.support.eager_snippets_more import MORE
from tests.support.eager_usage_snippets import USAGE
from tests.support.rows import all_rows

ULPS = 4  # of float32, for each operation of a program, on its way forward and back
DOUBLE = 1e-12
PROGRAMS = {**SNIPPETS, **MORE, **USAGE}
KEPT = {
    "complex z.conj().real": "PyTorch conjugates lazily, and undoes it with a second ConjBackward0",
    "in place y.logit_()": "outside of (0, 1) the derivative of the formula goes on, PyTorch gives NaN",
}


@pytest.fixture(scope="module")
def torch() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch = pytest.importorskip("torch")
        torch.set_num_threads(1)
        with torch.autograd.forward_ad.dual_level():  # its first use warns about PyTorch's own insides
            torch.autograd.forward_ad.make_dual(torch.ones(1), torch.ones(1)).sin()
    return torch


@contextmanager
def standing_for(module: ModuleType) -> Iterator[None]:
    """`import torch` and `import torch.nn` give this implementation."""
    with aliases() if module is gradcli.eager else nullcontext():
        yield


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
        return ["tensor", facts, np.array(value.detach().numpy()), described(grad), Text(repr(value))]
    if isinstance(value, (list, tuple)):
        return [described(one) for one in value]
    return value if isinstance(value, (int, float, str, bool, type(None))) else type(value).__name__


class Text(str):
    """The printed text of a tensor: its numbers may differ in the last digit, nothing else may."""

    __slots__ = ()
    number = re.compile(r"[-+]?(?:\d+\.?\d*(?:e[-+]\d+)?|inf|nan)")

    def agrees(self, other: str) -> bool:
        if self == other:
            return True
        ours, theirs = self.number.findall(self), self.number.findall(other)
        words, right = ("".join(self.number.split(text)).split() for text in (self, other))
        if words != right and (ours == theirs or "".join(words) != "".join(right)):
            return False  # another rounding error in place of a 0 prints all numbers with exponents, and moves them
        return len(ours) == len(theirs) and bool(
            np.allclose([float(n) for n in ours], [float(n) for n in theirs], rtol=2e-4, atol=2e-4, equal_nan=True)
        )


def left_by(text: str, torch: Any) -> tuple[dict[str, Any], str | None, list[str]]:
    """The variables that a snippet leaves, the class of its error, the categories of its warnings."""
    names: dict[str, Any] = {"torch": torch}
    raised = None
    with warnings.catch_warnings(record=True) as heard, standing_for(torch):
        warnings.simplefilter("always")
        torch.set_warn_always(True)
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


def operations(left: dict[str, Any]) -> int:
    """How many operations a program made, forward and back, as far as its variables show them; 2 at least."""
    longest = 1
    stack = list(left.values())
    while stack:
        one = stack.pop()
        if isinstance(one, list):
            if len(one) == 5 and one[0] == "tensor":
                longest = max(longest, len({at for at in one[1][4] or () if at[0]}), len(one[1][4] or ()) // 3)
            else:
                stack.extend(one)
    return 2 * longest


def agree(ours: Any, theirs: Any, where: str, count: int = 2) -> None:
    """Raise AssertionError where two descriptions differ; `count` operations may each have rounded."""
    if isinstance(theirs, np.ndarray):
        if theirs.dtype.kind in "fc":
            single = theirs.dtype in (np.float32, np.complex64, np.float16)
            tolerance = float(np.finfo(theirs.dtype).eps) * ULPS * count if single else DOUBLE
            finite = np.abs(theirs[np.isfinite(theirs)])
            scale = max(float(finite.max()) if finite.size else 0.0, 1.0)  # of the operands: sums may cancel
            np.testing.assert_allclose(ours, theirs, rtol=tolerance, atol=tolerance * scale, err_msg=where)
        else:
            np.testing.assert_array_equal(ours, theirs, err_msg=where)
    elif isinstance(theirs, list):
        assert isinstance(ours, list) and len(ours) == len(theirs), (where, ours, theirs)
        for one, other in zip(ours, theirs, strict=True):
            agree(one, other, where, count)
    elif isinstance(theirs, Text):
        assert isinstance(ours, Text) and ours.agrees(theirs), (where, ours, theirs)
    elif isinstance(theirs, float):
        assert ours == pytest.approx(theirs, rel=1e-6, nan_ok=True), where
    else:
        assert ours == theirs, where


@pytest.mark.peers
@all_rows("name", PROGRAMS)
def test_snippet_leaves_what_pytorch_leaves(name: str, torch: Any) -> None:
    if name in KEPT:
        pytest.skip(KEPT[name])
    text = PROGRAMS[name]
    ours, our_error, our_warnings = left_by(text, gradcli.eager)
    theirs, their_error, their_warnings = left_by(text, torch)
    assert our_error == their_error
    assert our_warnings == their_warnings
    assert sorted(ours) == sorted(theirs)
    for variable in theirs:
        agree(ours[variable], theirs[variable], f"{name}: {variable}", operations(theirs))


def test_there_are_as_many_snippets_as_promised() -> None:
    assert len(PROGRAMS) - len(KEPT) >= 300


REFUSED = (  # of truth values m, and whole numbers n
    *("relu(m)", "argmax(m)", "argmin(m, 0)", "median(m)", "median(m, 0)", "topk(m, 1)", "trace(m)"),
    *("cross(m[:, 0], m[:, 1], dim=0)", "nn.functional.relu(m)", "Tensor.relu_(m)", "lerp(n, n, 1)"),
)
TAKEN = (
    *("relu(n)", "argmax(n)", "median(n)", "topk(n, 2)", "trace(n)", "cross(n[:, 0], n[:, 1], dim=0)", "max(m, 0)"),
    *("sort(m)", "bincount(n[0], n[1])", "bincount(n[0], n[1].float())", "bincount(n[0], n[1].double())"),
)


@pytest.mark.peers
@pytest.mark.parametrize("call", REFUSED + TAKEN)
def test_operations_take_the_kinds_of_numbers_that_pytorch_takes(call: str, torch: Any) -> None:
    def outcome(library: Any) -> Any:
        n = library.tensor([[3, 0, 1], [2, 2, 5], [1, 4, 0]])
        try:
            found = eval(f"library.{call}", {"library": library, "n": n, "m": n > 1})
        except RuntimeError as refused:
            return type(refused)
        return [(str(x.dtype), x.tolist()) for x in (found if isinstance(found, tuple) else (found,))]

    ours, theirs = outcome(gradcli.eager), outcome(torch)
    if call in TAKEN:
        assert ours == theirs
    else:  # NotImplementedError is a RuntimeError
        assert issubclass(ours, RuntimeError) and issubclass(theirs, RuntimeError)
