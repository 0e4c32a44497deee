"""Laws over every operation of the eager tensors: gradcheck, gradgradcheck, forward mode, and the script's own bits.

`OPERATIONS` has a row for every differentiable function by its public name; a test fails where one has none. A row is
(name, function of tensors, shapes or arrays of the operands).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gradcli
import gradcli.eager as torch
from gradcli.eager.autograd import forward_ad, grad, gradcheck, gradgradcheck
from gradcli.primitives import catalogue
from tests.support.rows import all_rows

A = [[0.5, -1.2, 2.0], [1.5, 0.7, -0.3]]
P = [[0.5, 1.2, 2.0], [1.5, 0.7, 0.3]]
U = [[0.25, -0.5, 0.75], [0.1, 0.6, -0.2]]
H = [[0.25, 0.5, 0.75], [0.1, 0.6, 0.2]]
V, W = [0.5, -1.2, 2.0], [1.5, 0.7, -0.3]
S = [[4.0, 1.0, 0.5], [1.0, 3.0, -0.5], [0.5, -0.5, 2.0]]
G1 = [[1.3, 2.4, 3.1], [2.2, 1.7, 1.2]]
I0, I1 = torch.tensor([[0, 1, 0]]), torch.tensor([[0, 1, 0], [2, 2, 0]])
AT = torch.tensor([1, 0])
HIT = torch.tensor([[True, False, True], [False, True, True]])

_ONE = {
    "exp exp2 expm1 sin cos tan asinh atan sinh cosh tanh sigmoid erf erfc neg square relu abs sinc deg2rad "
    "rad2deg arctan arcsinh absolute negative special_expit nan_to_num positive angle": A,
    "log log2 log10 log1p sqrt rsqrt reciprocal lgamma digamma": P,
    "asin acos atanh arcsin arccos arctanh erfinv": U,
    "logit frac": H,
    "acosh arccosh": G1,
}
_TWO = """
add sub mul div atan2 hypot xlogy logaddexp maximum minimum max min remainder fmod pow multiply
subtract divide true_divide arctan2 cdist
"""
OPERATIONS: list[tuple[str, Any, tuple[Any, ...]]] = [
    (name, getattr(torch, name), (point,))
    for names, point in _ONE.items()
    for name in names.split()
    if hasattr(torch, name)
]
OPERATIONS += [(name, getattr(torch, name), (P, G1)) for name in _TWO.split()]
OPERATIONS += [
    ("rsub", lambda a: 3 - a, (A,)),
    ("sum", lambda a: a.sum(1), (A,)), ("mean", lambda a: a.mean(0), (A,)), ("var", lambda a: a.var(1), (A,)),
    ("std", lambda a: a.std(0), (A,)), ("prod", lambda a: a.prod(1), (A,)), ("amax", lambda a: a.amax(1), (A,)),
    ("amin", lambda a: a.amin(0), (A,)), ("sort", lambda a: a.sort(1)[0], (A,)), ("norm", lambda a: a.norm(dim=1), (A,)),
    ("norm", lambda a: a.norm(p=3), (A,)), ("norm", lambda a: a.norm(p=1), (A,)), ("norm", lambda a: a.norm(float("inf")), (A,)),
    ("logsumexp", lambda a: a.logsumexp(1), (A,)), ("softmax", lambda a: a.softmax(1), (A,)),
    ("log_softmax", lambda a: a.log_softmax(0), (A,)), ("cumsum", lambda a: a.cumsum(1), (A,)),
    ("cumprod", lambda a: a.cumprod(1), (A,)),
    ("median", lambda a: a.median(1).values, (A,)),
    ("topk", lambda a: a.topk(2).values, (A,)),
    ("mm", torch.mm, (A, S)), ("mv", torch.mv, (A, V)), ("dot", torch.dot, (V, W)), ("bmm", torch.bmm, ([A], [S])),
    ("matmul", torch.matmul, (A, S)), ("addmm", torch.addmm, (V, A, S)),
    ("baddbmm", torch.baddbmm, ([A], [A], [S])), ("addcmul", torch.addcmul, (A, P, G1)), ("addcdiv", torch.addcdiv, (A, P, G1)),
    ("lerp", lambda a, b: torch.lerp(a, b, 0.3), (A, P)), ("lerp", torch.lerp, (A, P, H)), ("outer", torch.outer, (V, W)),
    ("ger", torch.ger, (V, W)), ("inner", torch.inner, (V, W)), ("kron", torch.kron, (A, U)), ("cross", lambda a, b: torch.cross(a, b, dim=1), (A, P)),
    ("movedim", lambda a: a.movedim(0, 1) ** 2, (A,)), ("moveaxis", lambda a: torch.moveaxis(a, 0, 1) ** 2, (A,)),
    ("fliplr", lambda a: a.fliplr() ** 2, (A,)), ("flipud", lambda a: a.flipud() ** 2, (A,)),
    ("tensordot", lambda a, b: torch.tensordot(a, b, ([1], [1])), (A, P)),
    ("einsum", lambda a, b: torch.einsum("ij,kj->ik", a, b), (A, P)), ("einsum", lambda a, b: torch.einsum("ij,ij->", a, b), (A, P)),
    ("column_stack", lambda a, b: torch.column_stack([a, b]) ** 2, (V, W)),
    ("broadcast_tensors", lambda a, b: torch.broadcast_tensors(a, b)[1] * a, (A, V)),
    ("trace", torch.trace, (S,)), ("diff", torch.diff, (A,)),
    ("where", lambda a, b: torch.where(HIT, a, b), (A, P)), ("masked_fill", lambda a: a.masked_fill(HIT, 2.0), (A,)),
    ("clamp", lambda a: a.clamp(-1, 1), (A,)), ("clamp_min", lambda a: a.clamp_min(0.1), (A,)), ("clip", lambda a: a.clip(-1, 1), (A,)),
    ("pow", lambda a: a**3, (A,)), ("pow", lambda a: a**2.5, (P,)),
    ("pow", lambda a: 2**a, (A,)), ("div", lambda a: 2 / a, (A,)),
    ("reshape", lambda a: a.reshape(3, 2) ** 2, (A,)), ("flatten", lambda a: a.flatten() ** 2, (A,)), ("ravel", lambda a: a.ravel() ** 2, (A,)),
    ("squeeze", lambda a: a.squeeze(0) ** 2, ([A],)), ("unsqueeze", lambda a: a.unsqueeze(1) ** 2, (A,)), ("permute", lambda a: a.permute(1, 0) ** 2, (A,)),
    ("transpose", lambda a: a.transpose(0, 1) ** 2, (A,)), ("swapaxes", lambda a: a.swapaxes(0, 1) ** 2, (A,)), ("swapdims", lambda a: a.swapdims(0, 1) ** 2, (A,)),
    ("t", lambda a: a.t() ** 2, (A,)), ("unflatten", lambda a: a.unflatten(1, (3, 1)) ** 2, (A,)), ("broadcast_to", lambda a: torch.broadcast_to(a, (2, 2, 3)) ** 2, (A,)),
    ("clone", lambda a: a.clone() ** 2, (A,)),
    ("cat", lambda a, b: torch.cat([a, b]) ** 2, (A, P)), ("concat", lambda a, b: torch.concat([a, b]) ** 2, (A, P)), ("concatenate", lambda a, b: torch.concatenate([a, b]) ** 2, (A, P)),
    ("stack", lambda a, b: torch.stack([a, b], 1) ** 2, (A, P)), ("hstack", lambda a, b: torch.hstack([a, b]) ** 2, (A, P)), ("vstack", lambda a, b: torch.vstack([a, b]) ** 2, (A, P)),
    ("row_stack", lambda a, b: torch.row_stack([a, b]) ** 2, (A, P)),
    ("meshgrid", lambda a, b: [g**2 for g in torch.meshgrid(a, b, indexing="ij")], (V, W)), ("flip", lambda a: a.flip(0) ** 2, (A,)),
    ("roll", lambda a: a.roll(1, 1) ** 2, (A,)), ("tile", lambda a: a.tile(2) ** 2, (A,)), ("repeat_interleave", lambda a: a.repeat_interleave(2, 1) ** 2, (A,)),
    ("tril", lambda a: a.tril() ** 2, (A,)), ("triu", lambda a: a.triu() ** 2, (A,)), ("diag", lambda a: a.diag() ** 2, (S,)), ("diag", lambda a: a.diag() ** 2, (V,)), ("diagonal", lambda a: a.diagonal() ** 2, (S,)), ("diag_embed", lambda a: a.diag_embed() ** 2, (A,)),
    ("unbind", lambda a: [b**2 for b in a.unbind(1)], (A,)), ("split", lambda a: [b**2 for b in a.split(2, 1)], (A,)), ("chunk", lambda a: [b**2 for b in a.chunk(2, 1)], (A,)),
    ("select", lambda a: a.select(1, 0) ** 2, (A,)), ("narrow", lambda a: a.narrow(1, 1, 2) ** 2, (A,)),
    ("gather", lambda a: a.gather(0, I0) ** 2, (A,)), ("index_select", lambda a: a.index_select(0, AT) ** 2, (A,)),
    ("masked_select", lambda a: a.masked_select(HIT) ** 2, (A,)), ("scatter", lambda a, b: a.scatter(0, I0, b) ** 2, (A, [V])), ("scatter_add", lambda a, b: a.scatter_add(0, I0, b) ** 2, (A, [V])),
    ("scatter_reduce", lambda a, b: [a.scatter_reduce(0, I0, b, how) ** 2 for how in ("sum", "mean", "amax", "amin")], (A, U[:1])),
    ("scatter_reduce", lambda a, b: a.scatter_reduce(1, I1, b, "mean", include_self=False) ** 2, (A, P)),
    ("index_add", lambda a, b: a.index_add(0, AT, b) ** 2, (A, P)),
    ("inverse", torch.inverse, (S,)), ("slogdet", lambda a: torch.slogdet(a)[1], (S,)), ("linalg", lambda a: torch.linalg.qr(a)[1], (S,)),
    ("take_along_dim", lambda a: torch.take_along_dim(a, I0, 0) ** 2, (A,)), ("vdot", torch.vdot, (V, V)), ("var_mean", lambda a: torch.prod(torch.stack(torch.var_mean(a))), (A,)),
    ("std_mean", lambda a: torch.std_mean(a, 0), (A,)), ("atleast_1d", lambda a: torch.atleast_1d(a.sum()) ** 2, (A,)), ("atleast_2d", lambda a: torch.atleast_2d(a) ** 2, (V,)),
    ("atleast_3d", lambda a: torch.atleast_3d(a) ** 2, (A,)),
]  # fmt: skip
# names that have no derivative, or make new tensors, or are about complex numbers (which have tests of their own)
_WITHOUT = """
lt le gt ge eq ne less less_equal greater greater_equal not_equal isnan isinf isfinite isposinf isneginf signbit
isreal isclose allclose equal logical_not logical_and logical_or logical_xor sign floor ceil trunc round fix
floor_divide argmax argmin argsort all any count_nonzero unique bincount nonzero argwhere searchsorted finfo numel
is_complex is_floating_point real imag conj complex view_as_real manual_seed get_rng_state set_rng_state
multinomial Generator inf nan pi e newaxis strided rand randn randint randperm rand_like randn_like tensor
iinfo heaviside tril_indices triu_indices as_tensor asarray from_numpy zeros ones empty full eye arange linspace logspace zeros_like ones_like empty_like
full_like bernoulli bitwise_and bitwise_or bitwise_xor bitwise_not normal detach
"""
WITHOUT = frozenset(_WITHOUT.split()) | {
    "det",
    "logdet",
    "cholesky",
    "matrix_power",
    "matrix_exp",
    "pinverse",
}  # of linalg
ROWS = [pytest.param(function, points, id=f"{name}-{i}") for i, (name, function, points) in enumerate(OPERATIONS)]


def leaves(points: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple([torch.tensor(point, dtype=torch.float64, requires_grad=True) for point in points])


def test_every_function_has_a_row_or_a_reason() -> None:
    rows = {name for name, _, _ in OPERATIONS}
    names = {name for name in torch._FUNCTIONS if not name.endswith("_")}
    assert names - rows - WITHOUT == set()


@all_rows(("function", "points"), ROWS)
def test_gradcheck_and_gradgradcheck(function: Any, points: tuple[Any, ...]) -> None:
    xs = leaves(points)
    assert gradcheck(function, xs)
    assert gradgradcheck(function, xs)


def transposed_law(function: Any, points: tuple[Any, ...]) -> None:
    """<seed, J t> = <J^T seed, t>, for random seed and t."""
    generator = np.random.default_rng(len(points))
    xs = leaves(points)
    directions = [torch.tensor(generator.standard_normal(x.shape)) for x in xs]
    outputs = function(*xs)
    outputs = (outputs,) if isinstance(outputs, torch.Tensor) else tuple(outputs)
    seeds = [torch.tensor(generator.standard_normal(y.shape)) for y in outputs]
    pulled = grad(outputs, xs, seeds, allow_unused=True)
    backward = sum((g * t).sum().item() for g, t in zip(pulled, directions, strict=True) if g is not None)
    with forward_ad.dual_level():
        duals = [forward_ad.make_dual(x.detach(), t) for x, t in zip(xs, directions, strict=True)]
        found = function(*duals)
        found = (found,) if isinstance(found, torch.Tensor) else tuple(found)
        tangents = [forward_ad.unpack_dual(y).tangent for y in found]
        forward = sum((t * s).sum().item() for t, s in zip(tangents, seeds, strict=True) if t is not None)
    assert forward == pytest.approx(backward, rel=1e-9, abs=1e-12)


@all_rows(("function", "points"), ROWS)
def test_forward_mode_is_the_transpose_of_reverse_mode(function: Any, points: tuple[Any, ...]) -> None:
    transposed_law(function, points)


@all_rows(("function", "points"), ROWS)
def test_forward_over_reverse_is_reverse_over_reverse(function: Any, points: tuple[Any, ...]) -> None:
    """The Hessian of sum(f(x)**2) times a vector, both ways."""
    generator = np.random.default_rng(len(points))
    xs = leaves(points)
    directions = [torch.tensor(generator.standard_normal(x.shape)) for x in xs]

    def total(*point: Any) -> Any:
        outputs = function(*point)
        outputs = (outputs,) if isinstance(outputs, torch.Tensor) else outputs
        return sum((y * y).sum() for y in outputs if y.requires_grad)

    first = grad(total(*xs), xs, create_graph=True, allow_unused=True)
    product = sum((g * t).sum() for g, t in zip(first, directions, strict=True) if g is not None)
    expected = grad(product, xs, allow_unused=True) if product.requires_grad else [None] * len(xs)
    with forward_ad.dual_level():
        duals = [forward_ad.make_dual(x, t) for x, t in zip(xs, directions, strict=True)]
        found = [
            None if g is None else forward_ad.unpack_dual(g).tangent
            for g in grad(total(*duals), duals, create_graph=True, allow_unused=True)
        ]
        for one, other in zip(found, expected, strict=True):
            left = 0.0 if one is None else one.detach().numpy()
            right = 0.0 if other is None else other.numpy()
            np.testing.assert_allclose(left, right, rtol=1e-9, atol=1e-9)


# --- the same bits as the script engine ------------------------------------------------------------------------


def _pointwise() -> list[str]:
    found = []
    for name, primitive in catalogue().items():
        smooth = primitive.kind in ("elementwise", "composite") and primitive.pointwise and not primitive.internal
        if smooth and primitive.sample and primitive.call is None and not primitive.static:
            if all(interval is not None for interval in primitive.sample):
                found.append(name)
    return sorted(found)


@all_rows("name", _pointwise())
def test_one_operation_has_the_gradient_of_the_script_bit_for_bit(name: str) -> None:
    primitive = catalogue()[name]
    count = len(primitive.sample)
    generator = np.random.default_rng(3)
    points = {}
    for letter, interval in zip("xyzw", primitive.sample, strict=False):
        low, high = (float(max(min(bound, 5), -5)) for bound in (interval.low, interval.high))
        points[letter] = low + (high - low) * generator.uniform(0.05, 0.95, 7)
    letters = "xyzw"[:count]
    script = gradcli.grad(f"sum({name}({', '.join(letters)}))", at=points).gradient
    xs = [torch.tensor(points[letter], requires_grad=True) for letter in letters]
    primitive(*xs).sum().backward()
    for letter, x in zip(letters, xs, strict=True):
        if x.grad is not None:
            assert_same_gradient(name, x.grad.numpy(), script[letter])


def assert_same_gradient(name: str, ours: Any, scripts: Any) -> None:
    """The same bits; where tensors save the result as PyTorch does, their rule reads it: the last place of 1 differs.

    chi2_logpdf uses its degrees of freedom three times, and tensors add the three cotangents in another order.
    """
    if name in ("sigmoid", "silu", "softmax", "log_softmax", "cross_entropy", "chi2_logpdf"):
        np.testing.assert_allclose(ours, scripts, rtol=1e-15, atol=1e-15)
    else:
        assert np.array_equal(ours, scripts, equal_nan=True)


PROGRAMS = (
    "sum(sin(x) * exp(-x) / (1 + x**2))", "sum(log(1 + exp(x)) * tanh(x))", "sum(softmax(x) * x)", "logsumexp(x * x)",
    "norm(x - mean(x))", "sum(sigmoid(x)**3 - relu(x))", "prod(x + 3)", "var(x) / (1 + sum(abs(x)))", "sum(cumsum(x)**2)",
)  # fmt: skip


@pytest.mark.parametrize("text", PROGRAMS)
def test_programs_have_the_gradients_of_the_script(text: str) -> None:
    point = np.array([0.3, -0.7, 1.9, 0.4])
    script = gradcli.grad(text, at={"x": point}).gradient["x"]
    x = torch.tensor(point, requires_grad=True)
    known = {
        name: catalogue()[name].call or catalogue()[name]
        for name in ("sum", "mean", "var", "prod", "norm", "softmax", "logsumexp", "cumsum")
    }
    known |= {name: catalogue()[name] for name in ("sin", "exp", "log", "tanh", "sigmoid", "relu", "abs")}
    eval(text, {"__builtins__": {}}, {**known, "x": x}).backward()
    np.testing.assert_allclose(x.grad.numpy(), script, rtol=1e-12)
