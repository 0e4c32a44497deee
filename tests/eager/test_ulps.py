"""Single precision, operation by operation: values and gradients within 4 units in the last place of PyTorch's.

Where the two are further apart, ours has to be within 4 units of the exact value (PyTorch's in double precision); what
remains is named in `CANCELS`, with the size of the intermediate whose last place decides: 1 - tanh(x)**2 is as exact as
tanh(x), which no library rounds correctly.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import gradcli.eager
import gradcli.eager.nn.functional
from tests.support.rows import all_rows

ULPS = 4
COUNT = 5_000
DOMAINS = {
    (-4.0, 4.0): "exp exp2 expm1 sin cos tan asinh atan sinh cosh tanh sigmoid erf erfc square relu abs sinc deg2rad "
    "rad2deg neg frac F.gelu F.silu F.softplus F.elu F.selu F.celu F.mish F.hardswish F.softsign F.logsigmoid "
    "F.leaky_relu F.tanhshrink F.hardtanh F.hardsigmoid F.relu6 F.softshrink F.hardshrink",
    (1e-3, 10.0): "log log2 log10 log1p sqrt rsqrt reciprocal lgamma digamma",
    (-0.99, 0.99): "asin acos atanh erfinv",
    (0.01, 0.99): "logit",
    (1.01, 9.0): "acosh",
}
CASES = [(name, domain) for domain, names in DOMAINS.items() for name in names.split()]
CANCELS = {  # (operation, what): the intermediate whose last place is lost, as a function of the argument
    ("tan", "gradient"): lambda x: 2 * (1 + np.tan(x) ** 2),  # twice the relative error of the tangent
    ("tanh", "gradient"): np.ones_like,  # 1 - tanh**2
    ("sigmoid", "gradient"): np.ones_like,  # 1 - sigmoid
    ("sinc", "gradient"): np.ones_like,  # (cos - sinc) / x
    ("erfinv", "gradient"): lambda x: 8 * np.exp(3 * np.abs(x)),  # exp(erfinv**2)
    ("F.gelu", "value"): np.abs,  # 1 + erf
    ("F.gelu", "gradient"): np.ones_like,
    ("F.silu", "gradient"): np.ones_like,
    ("F.mish", "gradient"): np.ones_like,
    ("F.hardswish", "gradient"): np.ones_like,
    ("F.tanhshrink", "value"): np.abs,  # x - tanh(x)
    ("F.tanhshrink", "gradient"): np.ones_like,
}


def of(torch: Any, name: str) -> Any:
    return getattr(torch.nn.functional, name[2:]) if name.startswith("F.") else getattr(torch, name)


def place(size: Any) -> Any:
    """The unit in the last place of single precision at a size."""
    small = float(np.finfo(np.float32).tiny)
    return np.spacing(np.maximum(np.abs(size), small).astype(np.float32)).astype(np.float64)


@pytest.fixture(scope="module")
def torch() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pytest.importorskip("torch")


@pytest.mark.peers
@all_rows(("name", "domain"), CASES, ids=[name for name, _ in CASES])
def test_functions_of_one_number(name: str, domain: tuple[float, float], torch: Any) -> None:
    x = np.random.default_rng(len(name)).uniform(*domain, COUNT).astype(np.float32)
    found: list[dict[str, Any]] = []
    for module, array in ((gradcli.eager, x), (torch, x), (torch, x.astype(np.float64))):
        leaf = module.tensor(array, requires_grad=True)
        value = of(module, name)(leaf)
        value.sum().backward()
        found.append({"value": value.detach().numpy(), "gradient": leaf.grad.numpy()})
    for what in ("value", "gradient"):
        ours, theirs, exact = (one[what].astype(np.float64) for one in found)
        scale = CANCELS.get((name, what))
        reach = np.abs(theirs) if scale is None else np.maximum(np.abs(theirs), scale(x.astype(np.float64)))
        allowed = ULPS * place(reach)
        wrong = (np.abs(ours - theirs) > allowed) & (np.abs(ours - exact) > allowed)
        assert not wrong.any(), (what, x[wrong][:3], ours[wrong][:3], theirs[wrong][:3], exact[wrong][:3])


# name: the function, and the sum of the sizes of what is added up, which bounds what rounding can do
REDUCED: dict[str, tuple[Any, Any]] = {
    "sum": (lambda m, x: x.sum(), lambda a: np.abs(a).sum()),
    "sum(1)": (lambda m, x: x.sum(1), lambda a: np.abs(a).sum(1)),
    "sum(0)": (lambda m, x: x.sum(0), lambda a: np.abs(a).sum(0)),
    "mean": (lambda m, x: x.mean(), lambda a: np.abs(a).mean()),
    "mean(0)": (lambda m, x: x.mean(0), lambda a: np.abs(a).mean(0)),
    "cumsum": (lambda m, x: x.cumsum(1), lambda a: np.abs(a).cumsum(1)),
    "var": (lambda m, x: x.var(1), lambda a: a.var(1) + a.mean(1) ** 2),
    "std": (lambda m, x: x.std(0), lambda a: a.std(0) + np.abs(a.mean(0))),
    "norm": (lambda m, x: x.norm(), lambda a: np.linalg.norm(a)),
    "norm(dim=1)": (lambda m, x: x.norm(dim=1), lambda a: np.linalg.norm(a, axis=1)),
    "logsumexp": (lambda m, x: x.logsumexp(1), lambda a: np.log(np.exp(a).sum(1))),
    # exp, sum and quotient, each rounded; both libraries are 6 to 7 units from the exact value
    "softmax": (lambda m, x: x.softmax(1), lambda a: 2 * np.exp(a) / np.exp(a).sum(1, keepdims=True)),
    "log_softmax": (lambda m, x: x.log_softmax(1), lambda a: np.abs(a) + np.log(np.exp(a).sum(1, keepdims=True))),
    "amax": (lambda m, x: x.amax(1), lambda a: a.max(1)),
    "matmul": (lambda m, x: x @ x.T, lambda a: np.abs(a) @ np.abs(a).T),
    "einsum": (lambda m, x: m.einsum("ij,kj->ik", x, x), lambda a: np.abs(a) @ np.abs(a).T),
    "mse_loss": (lambda m, x: m.nn.functional.mse_loss(x, x * 0.5), lambda a: (a * a / 4).mean()),
    "prod": (lambda m, x: (1 + x[:, :8] / 9).prod(1), lambda a: 2 * np.abs((1 + a[:, :8] / 9).prod(1))),
    "layer_norm": (lambda m, x: m.nn.functional.layer_norm(x, (60,)), lambda a: 1 + np.abs(a)),
    "cdist": (lambda m, x: m.cdist(x[:9], x[9:19]), lambda a: np.full((9, 10), np.sqrt((a * a).sum(1).max()))),
}


@pytest.mark.peers
@pytest.mark.parametrize("name", REDUCED)
def test_sums_of_many(name: str, torch: Any) -> None:
    """In units of the last place of the sum of the sizes of what is added up."""
    function, reach = REDUCED[name]
    x = np.random.default_rng(5).uniform(-3, 3, (200, 60)).astype(np.float32)
    ours = function(gradcli.eager, gradcli.eager.tensor(x)).numpy().astype(np.float64)
    theirs = function(torch, torch.tensor(x)).numpy().astype(np.float64)
    assert (np.abs(ours - theirs) <= ULPS * place(reach(x.astype(np.float64)))).all()


def test_sums_do_not_lose_digits_with_their_length() -> None:
    """A million equal numbers: adding one after the other in single precision would be off by a percent."""
    torch = gradcli.eager
    x = torch.full((1_000_000,), 0.1)
    assert x.sum().item() == pytest.approx(np.float32(0.1) * 1e6, rel=1e-6)
    assert x.mean().item() == pytest.approx(0.1, rel=1e-6)
    assert x.reshape(1000, 1000).sum(0)[0].item() == pytest.approx(100.0, rel=1e-5)
