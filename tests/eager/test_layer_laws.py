"""Laws over `nn.functional`, `linalg` and `special`: every function has a row here or a reason why it has none.

A row is (name, function of tensors, shapes of the operands or arrays); gradcheck, gradgradcheck and forward mode hold.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gradcli
import gradcli.eager as torch
from gradcli.eager.autograd import grad, gradcheck, gradgradcheck
from gradcli.eager.nn import functional as F  # noqa: N812 - the name that everybody gives it
from gradcli.primitives import catalogue
from tests.eager.test_laws import OPERATIONS, WITHOUT, assert_same_gradient, transposed_law
from tests.support.rows import all_rows

linalg, special = torch.linalg, torch.special
IMAGE, LINE, KERNEL, BIAS = (1, 2, 4, 4), (1, 2, 5), (2, 2, 3, 3), (2,)
SPD = np.array([[4.0, 1.0, 0.5], [1.0, 3.0, -0.5], [0.5, -0.5, 2.0]])
PROBABILITIES = np.array([[0.3, 0.6, 0.2], [0.7, 0.4, 0.9]])
CLASSES = torch.tensor([0, 2])
SIGNS = torch.tensor([[1.0, -1.0, 1.0], [-1.0, 1.0, -1.0]], dtype=torch.float64)
ROWS: list[tuple[str, Any, tuple[Any, ...]]] = [
    (f"F.{name}", getattr(F, name), ((2, 3),))
    for name in (
        "celu elu gelu hardshrink hardsigmoid hardswish hardtanh leaky_relu logsigmoid mish relu relu6 selu "
        "sigmoid silu softplus softshrink softsign tanh tanhshrink"
    ).split()
]
ROWS += [
    ("F.glu", F.glu, ((2, 4),)), ("F.softmax", lambda x: F.softmax(x, 1), ((2, 3),)), ("F.softmin", lambda x: F.softmin(x, 1), ((2, 3),)),
    ("F.log_softmax", lambda x: F.log_softmax(x, 0), ((2, 3),)), ("F.threshold", lambda x: F.threshold(x, 0.1, 7.0), ((2, 3),)),
    ("F.prelu", F.prelu, ((2, 3), (3,))), ("F.normalize", F.normalize, ((2, 3),)), ("F.cosine_similarity", F.cosine_similarity, ((2, 3), (2, 3))),
    ("F.pairwise_distance", F.pairwise_distance, ((2, 3), (2, 3))), ("F.linear", F.linear, ((2, 3), (4, 3), (4,))),
    ("F.embedding", lambda w: F.embedding(CLASSES, w) ** 2, ((4, 3),)),
    ("F.pad", lambda x: F.pad(x, (1, 2), value=3.0) ** 2, ((2, 3),)), ("F.layer_norm", lambda x, w, b: F.layer_norm(x, (3,), w, b), ((2, 3), (3,), (3,))),
    ("F.batch_norm", lambda x, w, b: F.batch_norm(x, None, None, w, b, True), ((3, 2), BIAS, BIAS)), ("F.rms_norm", lambda x, w: F.rms_norm(x, (3,), w), ((2, 3), (3,))),
    ("F.group_norm", lambda x, w, b: F.group_norm(x, 1, w, b), ((2, 2, 2), BIAS, BIAS)), ("F.instance_norm", lambda x, w: F.instance_norm(x, weight=w), ((2, 2, 3), BIAS)),
    ("F.conv1d", lambda x, w, b: F.conv1d(x, w, b, padding=1, dilation=2), (LINE, (3, 2, 2), (3,))), ("F.conv2d", lambda x, w, b: F.conv2d(x, w, b, (2, 1), 1), (IMAGE, KERNEL, BIAS)),
    ("F.conv2d", lambda x, w: F.conv2d(x, w, groups=2), (IMAGE, (2, 1, 2, 2))), ("F.conv3d", F.conv3d, ((1, 1, 2, 3, 2), (1, 1, 2, 2, 1), (1,))),
    ("F.max_pool1d", lambda x: F.max_pool1d(x, 2), (LINE,)), ("F.max_pool2d", lambda x: F.max_pool2d(x, 2, 1, 1), (IMAGE,)),
    ("F.avg_pool1d", lambda x: F.avg_pool1d(x, 2) ** 2, (LINE,)), ("F.avg_pool2d", lambda x: F.avg_pool2d(x, 2, 1, 1, count_include_pad=False) ** 2, (IMAGE,)),
    ("F.adaptive_avg_pool1d", lambda x: F.adaptive_avg_pool1d(x, 2) ** 2, (LINE,)), ("F.adaptive_avg_pool2d", lambda x: F.adaptive_avg_pool2d(x, (3, 2)) ** 2, (IMAGE,)),
    ("F.mse_loss", F.mse_loss, ((2, 3), (2, 3))), ("F.l1_loss", F.l1_loss, ((2, 3), (2, 3))), ("F.smooth_l1_loss", F.smooth_l1_loss, ((2, 3), (2, 3))), ("F.huber_loss", F.huber_loss, ((2, 3), (2, 3))),
    ("F.kl_div", lambda x, y: F.kl_div(x, y.exp(), reduction="sum"), ((2, 3), (2, 3))),
    ("F.binary_cross_entropy", lambda p: F.binary_cross_entropy(p, (SIGNS > 0).double()), (PROBABILITIES,)), ("F.binary_cross_entropy_with_logits", lambda x: F.binary_cross_entropy_with_logits(x, (SIGNS > 0).double()), ((2, 3),)),
    ("F.nll_loss", lambda x: F.nll_loss(x, CLASSES) * 2, ((2, 3),)), ("F.cross_entropy", lambda x: F.cross_entropy(x, CLASSES, label_smoothing=0.1), ((2, 3),)),
    ("F.cosine_embedding_loss", lambda x, y: F.cosine_embedding_loss(x, y, CLASSES - 1), ((2, 3), (2, 3))),
    ("F.triplet_margin_loss", F.triplet_margin_loss, ((2, 3), (2, 3), (2, 3))), ("F.margin_ranking_loss", lambda x, y: F.margin_ranking_loss(x, y, SIGNS, 0.1), ((2, 3), (2, 3))),
    ("linalg.inv", linalg.inv, (SPD,)), ("linalg.det", linalg.det, (SPD,)), ("linalg.slogdet", linalg.slogdet, (SPD,)), ("linalg.logdet", linalg.logdet, (SPD,)),
    ("linalg.solve_triangular", lambda a, b: linalg.solve_triangular(a, b, upper=True), (SPD, (3, 2))),
    ("linalg.solve_triangular", lambda a, b: linalg.solve_triangular(a, b, upper=False, left=False, unitriangular=True), (SPD, (2, 3))),
    ("linalg.solve", linalg.solve, (SPD, (3, 2))), ("linalg.solve", linalg.solve, (SPD, (3,))), ("linalg.cholesky", lambda a: linalg.cholesky(a + a.T), (SPD,)), ("linalg.eigvalsh", lambda a: linalg.eigvalsh(a + a.T), (SPD,)),
    ("linalg.eigh", lambda a: linalg.eigh(a + a.T)[0], (SPD,)), ("linalg.eigh", lambda a: linalg.eigh(a + a.T)[1].abs(), (SPD,)), ("linalg.qr", lambda a: linalg.qr(a), (SPD,)),
    ("linalg.svdvals", linalg.svdvals, (SPD,)), ("linalg.svd", lambda a: linalg.svd(a)[1], (SPD,)), ("linalg.svd", lambda a: linalg.svd(a)[0].abs(), (SPD,)), ("linalg.svd", lambda a: linalg.svd(a, False)[2].abs(), ((2, 3),)),
    ("linalg.matrix_power", lambda a: linalg.matrix_power(a, -2), (SPD,)), ("linalg.matrix_exp", lambda a: linalg.matrix_exp(a * 0.3), (SPD,)), ("linalg.matrix_norm", linalg.matrix_norm, ((2, 3),)),
    ("linalg.matrix_norm", lambda a: linalg.matrix_norm(a, 2), (SPD,)), ("linalg.matrix_norm", lambda a: linalg.matrix_norm(a, 1), ((2, 3),)), ("linalg.matmul", linalg.matmul, ((2, 3), (3, 2))), ("linalg.pinv", linalg.pinv, ((2, 3),)),
    ("linalg.cross", linalg.cross, ((2, 3), (2, 3))), ("linalg.norm", linalg.norm, ((2, 3),)), ("linalg.vector_norm", lambda a: linalg.vector_norm(a, 3), ((2, 3),)),
    *[(f"special.{name}", getattr(special, name), ((2, 3),)) for name in ("bessel_j0", "bessel_j1", "i0", "i1", "modified_bessel_i0", "modified_bessel_i1")],
]  # fmt: skip
# positions and random numbers have no derivative here
REASONS = {"F.one_hot", "F.dropout", "F.dropout2d", "F.gumbel_softmax"}
IDS = [f"{name}-{i}" for i, (name, _, _) in enumerate(ROWS)]


def leaves(points: tuple[Any, ...]) -> tuple[Any, ...]:
    generator = np.random.default_rng(11)
    arrays = [generator.standard_normal(p) if isinstance(p, tuple) else np.asarray(p) for p in points]
    return tuple([torch.tensor(array, dtype=torch.float64, requires_grad=True) for array in arrays])


def test_every_function_of_these_rooms_has_a_row_or_a_reason() -> None:
    rows = {name for name, _, _ in ROWS}
    names = {f"F.{name}" for name in F.__all__} | {f"linalg.{name}" for name in linalg.__all__}
    assert names - rows - REASONS == set()
    known = {name for name, _, _ in OPERATIONS} | WITHOUT
    plain = {name.removeprefix("special_") for name in known}
    theirs = {name for name in dir(special) if not name.startswith("_") and callable(getattr(special, name))} - {
        "Any",
        "missing",
    }
    aliases = {"expit": "sigmoid", "gammaln": "lgamma", "psi": "digamma", "xlogy": "xlogy", "logsumexp": "logsumexp"}
    declared = {address for primitive in catalogue().values() for address in primitive.addresses}
    lacking = {
        name for name in theirs if aliases.get(name, name) not in plain and f"torch.special.{name}" not in declared
    }
    assert not lacking


@all_rows(("name", "function", "points"), ROWS, ids=IDS)
def test_gradcheck_and_gradgradcheck(name: str, function: Any, points: tuple[Any, ...]) -> None:
    xs = leaves(points)
    if name == "linalg.slogdet":  # the sign is a step
        assert gradcheck(lambda a: function(a)[1], xs)
        assert grad(function(*xs)[0] * 1.0, xs, allow_unused=True) == (None,)
        return
    assert gradcheck(function, xs)
    assert gradgradcheck(function, xs)


@all_rows(("name", "function", "points"), ROWS, ids=IDS)
def test_forward_mode_is_the_transpose(name: str, function: Any, points: tuple[Any, ...]) -> None:
    arrays = tuple([x.detach().numpy().tolist() for x in leaves(points)])
    transposed_law(function, arrays)


def test_outputs_of_one_node() -> None:
    x = torch.tensor([[2.0, 0.3], [0.3, 1.0]], requires_grad=True)
    values, vectors = linalg.eigh(x)
    assert values.grad_fn is vectors.grad_fn and (values.output_nr, vectors.output_nr) == (0, 1)
    assert linalg.svdvals(x).output_nr == 1
    (values.sum() + vectors.abs().sum()).backward()
    assert x.grad is not None
    with pytest.raises(RuntimeError, match="retain_graph"):
        values.sum().backward()


def test_vectors_of_larger_matrices_have_gradients() -> None:
    """Beyond two rows the closed forms for exact readings end; gradients do not."""
    a = torch.tensor(np.random.default_rng(0).standard_normal((5, 5)), requires_grad=True)
    weights = torch.tensor(np.arange(25.0).reshape(5, 5))
    assert gradcheck(lambda x: (linalg.eigh(x + x.T)[1].abs() * weights).sum(), (a,))
    assert gradcheck(lambda x: ((lambda u, s, v: u @ v)(*linalg.svd(x)) * weights).sum(), (a,))


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda a: a.argmax(), [1, 2]), (lambda a: a.max(0).values, [3.0, 7.0]), (lambda a: a.max(0).indices, [1, 2]),
        (lambda a: a.min(0)[0], [-1.0, 0.5]), (lambda a: a.argmin(0, True), [[2], [1]]), (lambda a: a.topk(2)[0], [[3.0, 0.25], [7.0, 2.0]]),
        (lambda a: a.topk(1, largest=False)[1], [[2], [1]]), (lambda a: a.sort(descending=True)[1], [[1, 0, 2], [2, 0, 1]]),
        (lambda a: F.max_pool1d(a[None, None], 2)[0, 0], [[3.0], [2.0]]), (torch.func.grad(lambda a: a.max(0)[0] ** 2), [[0.0, 6.0, 0.0], [0.0, 0.0, 14.0]]),
    ],
)  # fmt: skip
def test_positions_inside_vmap(function: Any, expected: Any) -> None:
    x = torch.tensor([[0.25, 3.0, -1.0], [2.0, 0.5, 7.0]])
    assert torch.func.vmap(function)(x).tolist() == expected


def test_assert_close_and_old_constructors() -> None:
    close = torch.testing.assert_close
    close(torch.ones(2), torch.ones(2) + 1e-7)
    close([torch.ones(1)], (torch.ones(1),))
    for wrong in (
        (torch.ones(2), torch.ones(3)),
        (torch.ones(1), torch.ones(1).double()),
        (torch.ones(2), torch.zeros(2)),
    ):
        with pytest.raises(AssertionError):
            close(*wrong)
    close(torch.ones(1), torch.ones(1).double(), check_dtype=False)
    with pytest.raises(ValueError, match="both"):
        close(torch.ones(1), torch.ones(1), rtol=1e-3)
    x = torch.FloatTensor([1, 2])
    assert x.dtype is torch.float32 and isinstance(x, torch.FloatTensor) and not isinstance(x, torch.LongTensor)
    assert torch.LongTensor(2, 3).shape == (2, 3)


# --- the same bits as the script engine, for every declared operation -----------------------------------------------

# operations that scripts call in another form: with a condition, several results, a count, or fractions on tensors
APART = set(
    "where ste selu polygamma jn iv gammainc gammaincc betainc multigammaln zeta fresnel lambertw hyp2f1 boxcox boxcox1p inv_boxcox qr slogdet eigh svd".split()
)
DECLARED = [
    name
    for name, primitive in catalogue().items()
    if not primitive.internal and primitive.kind != "nondifferentiable" and primitive.sample and name not in APART
]


def sampled(primitive: Any) -> list[Any]:
    """Points inside the domain of an operation, in the shapes that its declaration names."""
    generator, found = np.random.default_rng(3), []
    for one in primitive.sample:
        interval, shape, *kind = one if isinstance(one, tuple) else (one, (7,))
        low, high = (float(max(min(bound, 5), -5)) for bound in (interval.low, interval.high))
        array = low + (high - low) * generator.uniform(0.05, 0.95, shape)
        if kind:
            array = (array + array.T) / 2 + (0 if kind == ["symmetric"] else 6 * np.eye(len(array)))
        found.append(array)
    return found


@all_rows("name", DECLARED)
def test_a_declared_operation_has_the_gradient_of_the_script_bit_for_bit(name: str) -> None:
    primitive = catalogue()[name]
    points = dict(zip("xyz", sampled(primitive), strict=False))
    script = gradcli.grad(f"sum({name}({', '.join(points)}))", at=points).gradient
    xs = [torch.tensor(array, requires_grad=True) for array in points.values()]
    function = primitive.call or (primitive.definition if primitive.kind == "composite" else None) or primitive
    found = function(*xs)
    total = found.sum() if isinstance(found, torch.Tensor) else sum(one.sum() for one in found)
    total.backward()
    for letter, x in zip(points, xs, strict=True):
        ours = np.zeros(x.shape) if x.grad is None else x.grad.numpy()
        assert_same_gradient(name, ours, script[letter])


def test_no_declared_operation_is_left_out() -> None:
    assert len(DECLARED) >= 105
