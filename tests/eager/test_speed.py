"""What makes eager tensors fast must not show: short ways against long ways, memory, versions, lines."""

from __future__ import annotations

import random
import threading
import warnings
from typing import Any

import numpy as np
import pytest

import gradcli.eager as torch
from gradcli.eager._core.modes import line_of, state
from gradcli.eager._engine import numpy_kernels
from gradcli.eager._engine.codegen import FunctionSource, straight
from gradcli.graph.node import Builder
from gradcli.graph.types import Type
from gradcli.primitives import catalogue
from tests.support.rows import all_rows

nn, F = torch.nn, torch.nn.functional
USES = 5  # from the third use on an operation follows its recipe


# --- the short ways give what the long way gives -----------------------------------------------------------------------

OPERATIONS: dict[str, Any] = {
    "mul": lambda a, b: a * b, "add": lambda a, b: a + b, "div": lambda a, b: a / (b * b + 1), "sub": lambda a, b: a - b,
    "row": lambda a, b: a + b[0], "column": lambda a, b: a * b[:, :1], "number": lambda a, b: 3 * a - b / 2,
    "matmul": lambda a, b: a @ b.T, "turned": lambda a, b: a.T @ b, "addmm": lambda a, b: torch.addmm(b[:, 0], a, b.T),
    "outer": lambda a, b: a[:, :1] @ b[:1], "linear": lambda a, b: F.linear(a, b, b[:, 0]),
    "relu": lambda a, b: (a * b).relu(), "exp": lambda a, b: (a.exp() * b).tanh(), "sigmoid": lambda a, b: torch.sigmoid(a - b),
    "log_softmax": lambda a, b: torch.log_softmax(a * b, 1), "softmax": lambda a, b: torch.softmax(a, 0) * b,
    "nll": lambda a, b: F.cross_entropy(a * b, torch.arange(len(a)) % a.shape[1]), "mse": lambda a, b: F.mse_loss(a, b.detach()),
    "reduce": lambda a, b: a.sum(0) * b.mean(1).max() + a.amax(1).sum(), "gather": lambda a, b: a.gather(1, torch.ones(len(a), 1, dtype=torch.int64)) * b,
    "views": lambda a, b: a.reshape(-1)[1:] * b.t().reshape(-1)[1:], "shared": lambda a, b: a * a + a * b + a + a,
}  # fmt: skip


@all_rows("shape", [(3, 3), (64, 96)])
@all_rows("name", OPERATIONS)
def test_short_ways_give_what_the_long_way_gives(name: str, shape: tuple[int, int]) -> None:
    """The long way, which every operation takes while somebody watches, on the first use of all shapes."""
    torch.manual_seed(1)
    shape = (shape[0], shape[0]) if name in ("addmm", "linear") else shape
    values = [torch.randn(*shape), torch.randn(*shape)]

    def run() -> list[Any]:
        a, b = (value.clone().requires_grad_() for value in values)
        out = OPERATIONS[name](a, b)
        out.sin().sum().backward()
        return [out, *[torch.zeros(1) if x.grad is None else x.grad for x in (a, b)]]

    state.watched += 1
    try:
        long = run()
    finally:
        state.watched -= 1
    for _ in range(USES):
        short = run()
    for one, other in zip(short, long, strict=True):
        assert one.shape == other.shape and one.dtype is other.dtype
        assert torch.allclose(one, other, rtol=2e-5, atol=2e-5)


STEPS: dict[str, Any] = {
    "+": lambda x, y: [x + y],
    "*": lambda x, y: [x * y.tanh()],
    "m": lambda x, y: [torch.maximum(x, y)],
    "-": lambda x, y: [x - 0.5],
    "s": lambda x, y: list(torch.stack([x.sin(), y]).unbind()),
}


def through(steps: list[tuple[int, int, str]], watched: bool) -> list[Any]:
    leaves = [torch.tensor([0.3 * i + 0.1, -0.2 * i], requires_grad=True) for i in range(3)]
    known: list[Any] = list(leaves)
    for one, other, sign in steps:
        known += STEPS[sign](known[one % len(known)], known[other % len(known)])
    out = sum((one.sum() for one in known[3:]), torch.tensor(0.0))
    state.watched += watched
    try:
        out.backward()
    finally:
        state.watched -= watched
    return [None if x.grad is None else x.grad.tolist() for x in leaves]


def test_both_sweeps_agree_on_random_graphs() -> None:
    """The short sweep counts nothing; the full one, which a watcher asks for, counts every edge."""
    for seed in range(200):
        draw = random.Random(seed)
        steps = [
            (draw.randrange(10**6), draw.randrange(10**6), draw.choice("+*m-s")) for _ in range(draw.randint(1, 25))
        ]
        for one, other in zip(through(steps, False), through(steps, True), strict=True):
            assert (one is None) == (other is None)
            assert one is None or np.allclose(one, other, rtol=1e-5, atol=1e-6), seed


# --- memory ------------------------------------------------------------------------------------------------------------


def test_leaves_that_share_a_sum_keep_their_own() -> None:
    x, z = torch.ones(3, requires_grad=True), torch.ones(3, requires_grad=True)
    y = x + z
    (y + y + y + x).sum().backward()
    x.grad.zero_()
    assert z.grad.tolist() == [3.0] * 3


def test_gradient_of_a_layer_is_laid_out_like_its_weight_on_memory_of_its_own() -> None:
    layer, x = nn.Linear(48, 64), torch.randn(80, 48)
    for _ in range(USES):
        layer.weight.grad = None
        layer(x).square().sum().backward()
    grad = layer.weight.grad._raw
    assert grad.flags.c_contiguous and grad.flags.writeable
    assert grad.base is None or grad.base.size == grad.size
    expected = 2 * (layer(x).detach()._raw.T @ x._raw)
    assert np.allclose(grad, expected, rtol=1e-4, atol=1e-4)


def test_saved_output_of_a_hook_stays_when_grad_is_zeroed() -> None:
    """A gradient that somebody else holds is copied before it becomes a .grad."""
    x = torch.ones(2000, requires_grad=True)
    y = x * 2
    y.retain_grad()
    (y * 1).sum().backward()
    x.grad.zero_()
    assert y.grad.sum().item() == 2000


@pytest.mark.parametrize("shape", [(1,), ()])
def test_expanded_tensors_are_views_at_every_use(shape: tuple[int, ...]) -> None:
    for _ in range(USES):
        x = torch.ones(shape)
        y = x.expand(4)
        with pytest.raises(RuntimeError, match="memory"):
            y.add_(1)
        x.fill_(5.0)
        assert y.tolist() == [5.0] * 4


def test_numbers_without_axes_share_memory_where_it_shows() -> None:
    x = torch.tensor(1.5, requires_grad=True)
    same = x.detach()
    with torch.no_grad():
        x += 1
    assert same.item() == 2.5 and x._version == same._version == 1
    x.data.fill_(7.0)
    assert x.item() == 7.0
    array = np.array(3.0, np.float32)
    shared = torch.from_numpy(array)
    shared.mul_(2)
    assert array == 6.0


@pytest.mark.parametrize("how", ["no_grad", "SGD", "Adam"])
def test_a_trained_number_stays_a_number_and_what_shares_its_memory_sees_it(how: str) -> None:
    w = torch.tensor(3.0, requires_grad=True)
    steps = None if how == "no_grad" else getattr(torch.optim, how)([w], lr=0.1)

    def step() -> None:
        w.grad = None
        (w * w).backward()
        if steps is not None:
            steps.step()
        else:
            with torch.no_grad():
                w.sub_(0.1 * w.grad)

    step()
    assert isinstance(w._raw, np.generic) and w._version == 1 and w.is_leaf and w.requires_grad
    first = w.item()
    assert first == pytest.approx({"no_grad": 2.4, "SGD": 2.4, "Adam": 2.9}[how], rel=1e-5)
    y = w * w
    same = w.detach()
    step()
    assert same.item() == w.item() < first and same._version == 2
    with pytest.raises(RuntimeError, match="version"):
        y.backward()


# --- versions ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["relu", "exp", "tanh", "sigmoid"])
def test_a_changed_result_is_noticed_by_the_node_that_saved_it(name: str) -> None:
    for _ in range(USES):
        x = torch.ones(3, requires_grad=True)
        y = getattr(x * 1, name)()
        y.add_(1)
        with pytest.raises(RuntimeError, match="version"):
            y.sum().backward()


def test_a_changed_result_is_noticed_in_the_graph_of_a_derivative() -> None:
    x = torch.ones(3, requires_grad=True)
    y = x.exp()
    (slope,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    with torch.no_grad():
        y.mul_(3)
    with pytest.raises(RuntimeError, match="version"):
        torch.autograd.grad(slope.sum(), x)


def test_a_parameter_that_was_changed_before_is_no_error() -> None:
    w = torch.ones(3, 3, requires_grad=True)
    for _ in range(USES):
        w.grad = None
        ((torch.ones(2, 3) @ w) * 2).exp().sum().backward()
        with torch.no_grad():
            w -= 0.01 * w.grad
    y = (torch.ones(2, 3) @ w) @ w
    with torch.no_grad():
        w.zero_()
    with pytest.raises(RuntimeError, match="version"):
        y.sum().backward()


# --- lines and threads -------------------------------------------------------------------------------------------------


def test_generated_functions_never_name_a_line_of_their_own() -> None:
    x = torch.ones(3, 3, requires_grad=True)
    made = []
    for _ in range(USES):
        made = [x * x, x + 1, x.sin(), x @ x, x.sum(0), x.t(), torch.softmax(x, 0), F.linear(x, x)]
    here = {line_of(y.grad_fn.place) for y in made}
    assert {name for name, _ in here} == {__file__} and len(here) == 1
    noticed: list[Any] = []

    def hook(grad: Any) -> None:
        noticed.append((grad * 2).requires_grad)
        warnings.warn("from a hook", UserWarning, stacklevel=1)

    y = x.exp()
    y.register_hook(hook)
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        y.sum().backward()
    assert [one.filename for one in heard] == [__file__] and noticed == [False]


def test_generated_functions_say_whose_they_are() -> None:
    x = torch.ones(2, requires_grad=True)
    functions = [type(x).__mul__, torch.sin, (x * x).grad_fn.vjp.back, x.sin().grad_fn.vjp.back]
    assert {function.__globals__["__name__"] for function in functions} == {"gradcli.eager.generated"}


def test_threads_do_not_hear_numpys_warnings_on_the_short_way() -> None:
    heard: list[Any] = []

    def work() -> None:
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            x = torch.tensor([1e38], requires_grad=True)
            ((x * 1e38).exp() / 0).sum().backward()
            heard.append(len(found))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert heard == [0]


# --- the printed functions ---------------------------------------------------------------------------------------------


def test_every_part_of_a_formula_is_computed_once() -> None:
    """log_softmax reads its largest entry three times; it is searched once."""
    builder = Builder(catalogue())
    x = builder.fresh_leaf(Type("float", (4, 3)))
    found = catalogue()["log_softmax"](x, axis=(-1,))
    script = FunctionSource(np.dtype(np.float32))
    (result,) = straight(script, {x: "v0"}, [found], [found])
    text = "\n".join([*script.lines, result])
    name = next(name for name, value in script.names.items() if getattr(value, "__name__", "") == "largest")
    assert text.count(f"{name}(") == 1 and ":=" in text


# --- kernels -----------------------------------------------------------------------------------------------------------

RNG = np.random.default_rng(5)
ODD = np.array([[0.0, -0.0, np.nan], [np.inf, -np.inf, 1e-45], [3.0, -2.0, 1e38]], np.float32)


@pytest.mark.parametrize("rows", [3, 2000])
def test_passed(rows: int) -> None:
    x = np.resize(ODD, (rows, 3))
    ct = np.full_like(x, 2.0)
    assert np.array_equal(numpy_kernels.passed(ct, x > 0), np.where(x > 0, ct, 0))


@pytest.mark.parametrize("shape", [(3, 4), (500, 20), (1, 5000)])
def test_column_sums(shape: tuple[int, int]) -> None:
    x = RNG.standard_normal(shape)
    assert np.allclose(numpy_kernels.column_sums(x), x.sum(0), rtol=1e-12, atol=1e-12)


def test_products_of_one_column_and_one_row_have_no_negative_zeros() -> None:
    """A product is a sum that starts from zero."""
    for _ in range(USES):
        x, y = torch.tensor([[-1.0], [2.0]], requires_grad=True), torch.zeros(1, 2, requires_grad=True)
        turned = torch.zeros(2, 1, requires_grad=True)
        F.linear(-x.detach(), turned).sum().backward()
        (x @ y).sum().backward()
        zeros = [x @ y, F.linear(x, turned), x.grad, torch.outer(x[:, 0], y[0]) * 0 + x @ y]
    for one in zeros:
        assert not np.signbit(one.detach().numpy()).any()


def test_positions_in_rows() -> None:
    x, index = RNG.standard_normal((6, 4)), RNG.integers(0, 4, (6, 1))

    def refused(*_: Any, **__: Any) -> Any:
        raise AssertionError("plain positions need no general way")

    assert np.array_equal(numpy_kernels.taken_along(refused, x, index, -1), np.take_along_axis(x, index, -1))
    put = np.zeros((6, 4))
    np.put_along_axis(put, index, x[:, :1], -1)
    assert np.array_equal(numpy_kernels.put_along(refused, x[:, :1], index, -1, 4), put)
    for wrong in (np.array([[4]] * 6), np.array([[-1]] * 6), index.astype(np.int32)):
        with pytest.raises(AssertionError):
            numpy_kernels.taken_along(refused, x, wrong, -1)
    twice = np.zeros((6, 2), np.int64)  # two positions in one row may be one position
    with pytest.raises(AssertionError):
        numpy_kernels.put_along(refused, x[:, :2], twice, -1, 4)
    assert numpy_kernels.in_range(np.zeros(0, np.int64), 3) and not numpy_kernels.in_range(np.array([3]), 3)
