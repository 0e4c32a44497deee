"""Beside PyTorch 2.13: values, gradients and second derivatives at smooth points, gradients at kinks.

Where PyTorch is not installed its tests are skipped and say so. What it gets wrong, by mathematics, stands in a table with
the right answer.
"""

from __future__ import annotations

import warnings
from functools import cache
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from gradcli import calculator
from gradcli.primitives import catalogue
from tests.support import numpy_reading, peer_tables
from tests.support.cases import script_cases
from tests.support.rows import all_rows
from tests.support.study import close, study

if TYPE_CHECKING:
    from tests.support.study import Study

pytestmark = pytest.mark.peers
VALUE = 1e-12
SECOND = 1e-9

# Functions that PyTorch cannot be asked about, and why.
NO_TORCH = {
    "len": "a size is no tensor", "shape": "a size is no tensor", "zeros": "no operand", "ones": "no operand",
    "eye": "no operand", "arange": "no operand", "linspace": "no operand", "rand": "no operand", "randn": "no operand",
    "gammainc": "no derivative by a", "gammaincc": "no derivative by a", "zeta": "no derivative by x",
    "any": "a truth value", "all": "a truth value", "heaviside": "PyTorch does not differentiate it",
}  # fmt: skip

# Functions of PyTorch with fewer digits than float64 has: their accuracy, and why.
INEXACT = {
    "hardsigmoid": (1e-8, "its backward multiplies by 1/6 in single precision"),
    "digamma": (1e-9, "its trigamma has ten digits"),
    "polygamma": (1e-8, "its trigamma has ten digits"),
}


def names() -> list[str]:
    return [name for name, primitive in catalogue().items() if not primitive.internal and script_cases(name)]


@cache
def torch_and_table() -> tuple[Any, Any, Any]:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install gradcli[peers]")
    table, tensors = peer_tables.torch_tables()
    return torch, table, tensors


def torch_leaves(values: dict[str, Any]) -> dict[str, Any]:
    torch, _, _ = torch_and_table()
    return {n: torch.tensor(np.asarray(v), dtype=torch.float64, requires_grad=True) for n, v in values.items()}


def torch_value(text: str, leaves: dict[str, Any]) -> list[Any]:
    torch, table, tensors = torch_and_table()
    numbers = {"number": lambda x: torch.tensor(float(x), dtype=torch.float64), "arrays": tensors}
    found = numpy_reading.read(text, leaves, table, **numbers)
    return list(found) if isinstance(found, tuple) else [found]


def torch_loss(it: Study, leaves: dict[str, Any]) -> tuple[list[Any], Any]:
    torch, _, _ = torch_and_table()
    outputs = torch_value(it.case.text, leaves)
    total = torch.zeros((), dtype=torch.float64)
    for value, weight in zip(outputs, it.weights, strict=True):
        total = total + (value * torch.tensor(weight)).sum()
    return outputs, total


def plain(x: Any) -> np.ndarray:
    return x.detach().numpy(force=True)


@all_rows("name", names())
def test_torch(name: str) -> None:
    """Value and gradient to 1e-12, second derivatives by PyTorch's double backward, on every case of a function."""
    torch, table, _ = torch_and_table()
    if name in NO_TORCH:
        pytest.skip(NO_TORCH[name])
    if name not in table:  # it has the same arguments there
        address = (catalogue()[name].called("torch") or "").removeprefix("torch.")
        if not address:
            pytest.skip("PyTorch has no such function")
        table[name] = attrgetter(address)(torch)
    rough = INEXACT.get(name, (0.0, ""))[0]
    for case in script_cases(name):
        it = study(case)
        leaves = torch_leaves(it.point(0))
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of kl_div, whose mean is not what it will be
                outputs, loss = torch_loss(it, leaves)
        except NotImplementedError:
            continue
        for value, mine in zip(outputs, it.values, strict=True):
            close(mine[0], plain(value), max(VALUE, rough), f"value of {case}")
        if not it.differentiable or not loss.requires_grad:
            continue
        first = torch.autograd.grad(loss, list(leaves.values()), create_graph=True, allow_unused=True)
        for number, (gradient, leaf) in enumerate(zip(first, leaves.values(), strict=True)):
            right = np.zeros(leaf.shape) if gradient is None else plain(gradient)
            close(it.found["gradient"][number][0], right, max(10 * VALUE, rough), f"gradient of {case}")
        along = sum(
            (g * torch.tensor(it.directions[0][n])).sum() for g, n in zip(first, leaves, strict=True) if g is not None
        )
        if not getattr(along, "requires_grad", False):
            continue
        try:
            second = torch.autograd.grad(along, list(leaves.values()), allow_unused=True)
        except RuntimeError as reason:
            assert "not implemented" in str(reason) or "not differentiable" in str(reason), reason
            continue
        for number, (product, leaf) in enumerate(zip(second, leaves.values(), strict=True)):
            right = np.zeros(leaf.shape) if product is None else plain(product)
            close(
                it.found["·u reverse over reverse"][number][0],
                right,
                max(SECOND, 10 * rough),
                f"second derivative of {case}",
            )


# --- kinks: what PyTorch returns, we return ------------------------------------------------------------------------

KINKS: list[tuple[str, dict[str, Any]]] = [
    ("abs(x)", {"x": 0.0}),
    ("sign(x)", {"x": 0.0}),
    ("relu(x)", {"x": 0.0}),
    ("leaky_relu(x)", {"x": 0.0}),
    ("elu(x)", {"x": 0.0}),
    ("selu(x)", {"x": 0.0}),
    ("hardtanh(x)", {"x": 1.0}),
    ("hardtanh(x)", {"x": -1.0}),
    ("hardsigmoid(x)", {"x": 3.0}),
    ("hardsigmoid(x)", {"x": -3.0}),
    ("maximum(x, y)", {"x": 1.0, "y": 1.0}),
    ("minimum(x, y)", {"x": 1.0, "y": 1.0}),
    ("maximum(x, x)", {"x": 1.0}),
    ("maximum(x, 1)", {"x": 1.0}),
    ("minimum(x, 0)", {"x": 0.0}),
    ("max(x)", {"x": [1.0, 2.0, 2.0]}),
    ("min(x)", {"x": [1.0, 1.0, 2.0]}),
    ("amax(x)", {"x": [3.0, 3.0, 3.0]}),
    ("sum(amin(x, axis=0))", {"x": [[1.0, 2.0], [1.0, 3.0]]}),
    ("sum(max(x, axis=1))", {"x": [[2.0, 2.0], [1.0, 3.0]]}),
    ("clamp(x, 0, 1)", {"x": 0.0}),
    ("clamp(x, 0, 1)", {"x": 1.0}),
    ("clamp(x, 0, 1)", {"x": float("nan")}),
    ("norm(x)", {"x": [0.0, 0.0]}),
    ("norm(x, axis=0)[0]", {"x": [[0.0, 1.0], [0.0, 2.0]]}),
    ("std(x)", {"x": [2.0, 2.0, 2.0]}),
    ("atan2(y, x)", {"y": 0.0, "x": 0.0}),
    ("atan2(y, x)", {"y": 0.0, "x": -1.0}),
    ("hypot(x, y)", {"x": 0.0, "y": 0.0}),
    ("pow(x, y)", {"x": 0.0, "y": 2.0}),
    ("pow(x, y)", {"x": 0.0, "y": 1.0}),
    ("pow(x, y)", {"x": 0.0, "y": 0.0}),
    ("pow(x, y)", {"x": 0.0, "y": 0.5}),
    ("pow(x, y)", {"x": 0.0, "y": -1.0}),
    ("x**2", {"x": 0.0}),
    ("x**0", {"x": 0.0}),
    ("x**1", {"x": 0.0}),
    ("x**-1", {"x": 0.0}),
    ("sqrt(x)", {"x": 0.0}),
    ("log(x)", {"x": 0.0}),
    ("xlogy(x, y)", {"x": 0.0, "y": 0.0}),
    ("xlogy(x, y)", {"x": 0.0, "y": 2.0}),
    ("floor(x)", {"x": 2.0}),
    ("ceil(x)", {"x": 2.0}),
    ("round(x)", {"x": 2.5}),
    ("trunc(x)", {"x": 0.0}),
    ("mod(x, y)", {"x": 4.0, "y": 2.0}),
    ("sum(sort(x)*[1, 10, 100])", {"x": [2.0, 1.0, 2.0]}),
    ("prod(x)", {"x": [0.0, 2.0, 3.0]}),
    ("prod(x)", {"x": [0.0, 0.0, 3.0]}),
    ("sum(cumprod(x, axis=-1))", {"x": [2.0, 0.0, 3.0]}),
    ("l1_loss(x, y)", {"x": [1.0, 2.0], "y": [1.0, 0.0]}),
    ("huber_loss(x, y)", {"x": [1.0, 2.0], "y": [2.0, 0.0]}),
    ("logsumexp(x)", {"x": [1.0, 1.0]}),
    ("det(x)", {"x": [[1.0, 2.0], [2.0, 4.0]]}),
    ("det(x)", {"x": [[0.0, 0.0], [0.0, 0.0]]}),
    ("sinc(x)", {"x": 0.0}),
    ("acosh(x)", {"x": 1.0}),
    ("asin(x)", {"x": 1.0}),
    ("binary_cross_entropy(x, y)", {"x": [0.25, 0.5], "y": [0.0, 1.0]}),
]

# Where PyTorch's answer is not the derivative that mathematics gives (or none at all), and what is right.
DIFFERENT: dict[tuple[str, str], tuple[dict[str, Any], str]] = {
    ("det(x)", "{'x': [[1.0, 2.0], [2.0, 4.0]]}"): (
        {"x": [[4.0, -2.0], [-2.0, 1.0]]}, "the cofactors; PyTorch gives 0 for this singular matrix"),
    ("hypot(x, y)", "{'x': 0.0, 'y': 0.0}"): (
        {"x": 0.0, "y": 0.0}, "as the norm of [x, y], of which PyTorch gives 0 too; of hypot it gives NaN"),
    ("xlogy(x, y)", "{'x': 0.0, 'y': 0.0}"): (
        {"x": 0.0, "y": 0.0}, "in y it is the constant 0; PyTorch divides 0 by 0"),
}  # fmt: skip


def gradient_of(text: str, at: dict[str, Any]) -> dict[str, np.ndarray]:
    return {name: np.asarray(g) for name, g in calculator.grad(text, at=at).gradient.items()}


@all_rows(("text", "at"), KINKS, ids=[f"{text} at {at}" for text, at in KINKS])
def test_torch_at_kinks(text: str, at: dict[str, Any]) -> None:
    """The same gradient, to the last bit but rounding, at points where the derivative is a convention or an edge."""
    torch, _, _ = torch_and_table()
    leaves = torch_leaves(at)
    value = torch_value(text, leaves)[0]
    right = {name: np.zeros(leaf.shape) for name, leaf in leaves.items()}
    if value.requires_grad:
        value.backward()
        right = {n: right[n] if leaf.grad is None else leaf.grad.numpy() for n, leaf in leaves.items()}
    right = DIFFERENT.get((text, repr(at)), (right, ""))[0]
    for name, mine in gradient_of(text, at).items():
        assert np.allclose(mine, right[name], rtol=1e-12, atol=1e-12, equal_nan=True), f"{mine}, PyTorch {right[name]}"


# --- branches that are not taken ------------------------------------------------------------------------------------

NAN = float("nan")
# program of x, point, gradient, second derivative; then whether PyTorch agrees with the first
SAFETY = [
    ("where(x > 0, sqrt(x), 0)", -1.0, 0.0, 0.0, False),
    ("where(x > 0, log(x), 0)", 0.0, 0.0, 0.0, False),
    ("where(x > 0, exp(log(sqrt(x))), 0)", -1.0, 0.0, 0.0, False),
    ("where(x > 0, where(x > 1, log(x - 1), log(x)), x**2)", -1.0, -2.0, 2.0, True),
    ("where(x > 0, sqrt(x), 0) + sqrt(x + 2)", -1.0, 0.5, -0.25, False),
    ("where(x > 0, x**x, x**2)", -1.0, -2.0, 2.0, False),
    ("where(x > 0, 1/x, x)", 0.0, 1.0, 0.0, False),
    ("where(x > 0, logdet(x*[[1, 0], [0, 1]]), x**2)", -1.0, -2.0, 2.0, True),
    ("where(x > 0, sum(inv(x*[[1, 0], [0, 1]])), x**2)", 0.0, 0.0, 2.0, False),
    ("where(x > 0, prod([x, sqrt(x)]), x**2)", -1.0, -2.0, 2.0, False),
    ("where(x > 0, logsumexp([log(x), 1]), x**2)", -1.0, -2.0, 2.0, False),
    ("where(x > 0, [sqrt(x), 1] @ [log(x), 1], x**2)", -1.0, -2.0, 2.0, False),
    ("sum(where([x, 2] > 0, sqrt([x, 2]), 0))", -1.0, 0.0, 0.0, False),
    ("sqrt(x)**2", 0.0, NAN, NAN, True),
    ("exp(log(x))", 0.0, NAN, NAN, True),
    ("sqrt(x**2)", 0.0, NAN, NAN, True),
    ("x**2", 0.0, 0.0, 2.0, True),
    ("pow(x, 2.0)", 0.0, 0.0, 2.0, True),
    ("x*log(x)", 0.0, NAN, NAN, True),
    ("xlogy(x, x)", 0.0, 0.0, 0.0, False),  # a declared kink: each partial has its convention
    ("log(exp(x) + 1)", 800.0, NAN, NAN, True),
    ("softplus(x)", 800.0, 1.0, 0.0, True),
    ("sigmoid(x)", -800.0, 0.0, 0.0, True),
    ("logaddexp(x, 0)", 800.0, 1.0, 0.0, True),
    ("tanh(x)", 800.0, 0.0, 0.0, True),
]


@pytest.mark.parametrize(("text", "x", "first", "second", "agree"), SAFETY, ids=[row[0] for row in SAFETY])
def test_branches_not_taken(text: str, x: float, first: float, second: float, agree: bool) -> None:
    """First and second derivative; NaN only where an operation outside of any branch has none."""
    found = calculator.grad(text, at={"x": x}, order=2)
    once, twice = found.derivatives["x"]
    assert np.allclose([found.gradient["x"], once], first, rtol=1e-12, equal_nan=True), found.gradient
    assert np.allclose(twice, second, rtol=1e-12, equal_nan=True), twice
    assert np.allclose(calculator.hessian(text, at={"x": x}).hessian["x"]["x"], second, rtol=1e-12, equal_nan=True)


@pytest.mark.parametrize(("text", "x", "first", "second", "agree"), SAFETY, ids=[row[0] for row in SAFETY])
def test_torch_on_branches_not_taken(text: str, x: float, first: float, second: float, agree: bool) -> None:
    """PyTorch agrees where the table says so; else it gives NaN for a branch that is not taken."""
    leaves = torch_leaves({"x": x})
    torch, _, _ = torch_and_table()
    try:
        torch_value(text, leaves)[0].backward()
        theirs = float(leaves["x"].grad)
    except torch.linalg.LinAlgError:  # raised for a branch that is not taken
        theirs = NAN
    assert np.isclose(theirs, first, equal_nan=True) == agree, theirs
