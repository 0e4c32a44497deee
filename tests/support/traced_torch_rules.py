"""Hand-written rules of PyTorch as people write them, each with a right backward and one with a typical mistake."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F  # noqa: N812  # as everybody writes it
from torch import Tensor
from torch.autograd import Function


class Case(NamedTuple):
    """A forward, its right backward, a wrong one, and the arguments; `wrong` names the arguments it is wrong for."""

    name: str
    forward: Any
    right: Any
    mistake: Any
    at: tuple[Any, ...]
    wrong: str = ""


def made(case: Case, backward: Any) -> type[Function]:
    """The Function of a case with one of its backwards."""
    return type(case.name, (Function,), {"forward": staticmethod(case.forward), "backward": staticmethod(backward)})


def t(*values: Any) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


X = t([0.5, -1.25, 2.0], [1.5, 0.75, -0.5])
V = t(0.5, -1.25, 2.0)
P = t(0.5, 1.25, 2.0)
W = t(1.0, 2.0, 0.5)
S = t([2.0, 0.5, 0.25], [0.5, 1.5, -0.5], [0.25, -0.5, 3.0])
M = t([2.0, 0.5, 0.25], [-0.75, 1.5, -0.5], [0.125, 0.5, 3.0])
CASES: list[Case] = []


def rule(*at: Any, wrong: str = "") -> Any:
    """Takes a function that returns (forward, right, mistake) and makes a case of it."""

    def take(function: Any) -> Any:
        CASES.append(Case(function.__name__, *function(), at, wrong))
        return function

    return take


def saving(value: Any, *saved: Any) -> Any:
    """forward(ctx, *args) that saves what `saved` says and returns value(*args)."""

    def forward(ctx: Any, *args: Any) -> Any:
        out = value(*args)
        ctx.save_for_backward(*(one for one in args if isinstance(one, Tensor)), *([out] if "out" in saved else []))
        ctx.rest = [one for one in args if not isinstance(one, Tensor)]
        return out

    return forward


def back(formula: Any) -> Any:
    """backward(ctx, g) from formula(g, *saved)."""
    return lambda ctx, *g: formula(*g, *ctx.saved_tensors)


def unary(name: str, value: Any, right: Any, mistake: Any, at: Tensor = V) -> None:
    CASES.append(Case(name, saving(value), back(right), back(mistake), (at,)))


unary("square", lambda x: x**2, lambda g, x: 2 * g * x, lambda g, x: g * x)
unary("cube", lambda x: x.pow(3), lambda g, x: 3 * g * x**2, lambda g, x: 3 * g * x)
unary(
    "sigmoid",
    torch.sigmoid,
    lambda g, x: g * torch.sigmoid(x) * (1 - torch.sigmoid(x)),
    lambda g, x: g * torch.sigmoid(x),
)
unary("tanh", torch.tanh, lambda g, x: g * (1 - torch.tanh(x) ** 2), lambda g, x: g * (1 - torch.tanh(x)))
unary(
    "swish",
    lambda x: x * torch.sigmoid(x),
    lambda g, x: g * torch.sigmoid(x) * (1 + x * (1 - torch.sigmoid(x))),
    lambda g, x: g * torch.sigmoid(x) * (1 + x),
)
unary(
    "silu",
    F.silu,
    lambda g, x: g * torch.sigmoid(x) * (1 + x * (1 - torch.sigmoid(x))),
    lambda g, x: g * torch.sigmoid(x),
)
unary(
    "mish",
    F.mish,
    lambda g, x: g * (torch.tanh(F.softplus(x)) + x * (1 - torch.tanh(F.softplus(x)) ** 2) * torch.sigmoid(x)),
    lambda g, x: g * (torch.tanh(F.softplus(x)) + x * (1 - torch.tanh(F.softplus(x)) ** 2)),
)
unary(
    "gelu_erf",
    lambda x: 0.5 * x * (1 + torch.erf(x / math.sqrt(2))),
    lambda g, x: g * (0.5 * (1 + torch.erf(x / math.sqrt(2))) + x * torch.exp(-x * x / 2) / math.sqrt(2 * math.pi)),
    lambda g, x: g * (0.5 * (1 + torch.erf(x / math.sqrt(2))) + torch.exp(-x * x / 2) / math.sqrt(2 * math.pi)),
)


def _tanh_gelu(c: float) -> Any:
    def formula(g: Tensor, x: Tensor) -> Tensor:
        k = math.sqrt(2 / math.pi)
        th = torch.tanh(k * (x + 0.044715 * x**3))
        return g * (0.5 * (1 + th) + 0.5 * x * (1 - th * th) * k * (1 + c * x * x))

    return formula


unary(
    "gelu_tanh",
    lambda x: 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
    _tanh_gelu(0.134145),
    _tanh_gelu(0.134),
)
unary("gelu_library", lambda x: F.gelu(x, approximate="tanh"), _tanh_gelu(0.134145), _tanh_gelu(0.044715))
unary(
    "softplus",
    lambda x: x.clamp(min=0) + torch.log1p(torch.exp(-x.abs())),
    lambda g, x: g * torch.sigmoid(x),
    lambda g, x: g / (1 + torch.exp(x)),
)
unary("relu", F.relu, lambda g, x: g * (x > 0).to(g.dtype), lambda g, x: g * (x > -3).to(g.dtype))
unary(
    "leaky_relu",
    lambda x: F.leaky_relu(x, 0.01),
    lambda g, x: torch.where(x > 0, g, 0.01 * g),
    lambda g, x: torch.where(x > 0, g, 0.1 * g),
)
unary(
    "elu",
    lambda x: F.elu(x),
    lambda g, x: g * torch.where(x > 0, torch.ones_like(x), x.exp()),
    lambda g, x: g * torch.where(x > 0, torch.ones_like(x), x.exp() - 1),
)
unary("clamp", lambda x: x.clamp(-1, 1), lambda g, x: g * ((x >= -1) & (x <= 1)), lambda g, x: g)
unary(
    "safe_sqrt",
    lambda x: torch.sqrt(x + 1e-8),
    lambda g, x: g / (2 * torch.sqrt(x + 1e-8)),
    lambda g, x: g / torch.sqrt(x + 1e-8),
    P,
)
unary("reciprocal", lambda x: 1 / x, lambda g, x: -g / x**2, lambda g, x: g / x**2)
unary(
    "log_cosh", lambda x: torch.log(torch.cosh(x)), lambda g, x: g * torch.tanh(x), lambda g, x: g * torch.tanh(x) ** 2
)
unary("abs", torch.abs, lambda g, x: g * x.sign(), lambda g, x: g)
unary(
    "hard_sigmoid",
    lambda x: F.hardsigmoid(x),
    lambda g, x: g * ((x > -3) & (x < 3)) / 6,
    lambda g, x: g * ((x > -3) & (x < 3)) / 3,
)
unary("softsign", lambda x: x / (1 + x.abs()), lambda g, x: g / (1 + x.abs()) ** 2, lambda g, x: g / (1 + x.abs()))
unary(
    "gaussian",
    lambda x: torch.exp(-x * x),
    lambda g, x: -2 * g * x * torch.exp(-x * x),
    lambda g, x: -g * x * torch.exp(-x * x),
)
unary("cumsum", lambda x: x.cumsum(-1), lambda g, x: g.flip(-1).cumsum(-1).flip(-1), lambda g, x: g.cumsum(-1), X)
unary(
    "cumprod",
    lambda x: x.cumprod(-1),
    lambda g, x: (g * x.cumprod(-1)).flip(-1).cumsum(-1).flip(-1) / x,
    lambda g, x: (g * x.cumprod(-1)).cumsum(-1) / x,
    X,
)
unary(
    "logsumexp",
    lambda x: torch.logsumexp(x, -1),
    lambda g, x: g.unsqueeze(-1) * torch.softmax(x, -1),
    lambda g, x: g.unsqueeze(-1) * x.exp(),
    X,
)
unary(
    "softmax",
    lambda x: torch.softmax(x, -1),
    lambda g, x: (lambda s: s * (g - (g * s).sum(-1, keepdim=True)))(torch.softmax(x, -1)),
    lambda g, x: (lambda s: g * s * (1 - s))(torch.softmax(x, -1)),
    X,
)
unary(
    "softmax_by_hand",
    lambda x: (lambda e: e / e.sum(-1, keepdim=True))((x - x.amax(-1, keepdim=True)).exp()),
    lambda g, x: (lambda s: s * (g - (g * s).sum(-1, keepdim=True)))(torch.softmax(x, -1)),
    lambda g, x: (lambda s: s * (g - (g * s).sum()))(torch.softmax(x, -1)),
    X,
)
unary(
    "log_softmax",
    lambda x: torch.log_softmax(x, -1),
    lambda g, x: g - torch.softmax(x, -1) * g.sum(-1, keepdim=True),
    lambda g, x: g - torch.softmax(x, -1),
    X,
)
unary(
    "l2_normalise",
    lambda x: x / x.norm(),
    lambda g, x: (lambda n: g / n - x * (x @ g) / n**3)(x.norm()),
    lambda g, x: g / x.norm(),
)
unary("norm", lambda x: x.norm(), lambda g, x: g * x / x.norm(), lambda g, x: g * x / x.norm() ** 2)
unary(
    "safe_norm",
    lambda x: torch.sqrt((x * x).sum(-1) + 1e-12),
    lambda g, x: g.unsqueeze(-1) * x / torch.sqrt((x * x).sum(-1) + 1e-12).unsqueeze(-1),
    lambda g, x: 2 * g.unsqueeze(-1) * x / torch.sqrt((x * x).sum(-1) + 1e-12).unsqueeze(-1),
    X,
)
unary("gradient_scale", lambda x: x * 1.0, lambda g, x: g, lambda g, x: -g)  # a gradient reversal is no derivative
unary(
    "rms_norm",
    lambda x: x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6),
    lambda g, x: (lambda r: r * g - x * r**3 * (g * x).mean(-1, keepdim=True))(
        torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)
    ),
    lambda g, x: (lambda r: r * g - x * r**2 * (g * x).mean(-1, keepdim=True))(
        torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)
    ),
    X,
)
unary(
    "glu",
    lambda x: x[..., :1] * torch.sigmoid(x[..., 1:2]),
    lambda g, x: torch.cat(
        [
            g * x[..., 1:2].sigmoid(),
            g * x[..., :1] * x[..., 1:2].sigmoid() * (1 - x[..., 1:2].sigmoid()),
            torch.zeros_like(g),
        ],
        -1,
    ),
    lambda g, x: torch.cat(
        [g * x[..., 1:2].sigmoid(), g * x[..., :1] * x[..., 1:2].sigmoid(), torch.zeros_like(g)], -1
    ),
    X,
)
unary(
    "max_pool",
    lambda x: F.max_pool1d(x.unsqueeze(0), 2, stride=1).squeeze(0),
    lambda g, x: (lambda m: F.pad(g * m, (0, 1)) + F.pad(g * ~m, (1, 0)))(x[:, :-1] >= x[:, 1:]),
    lambda g, x: F.pad(g, (0, 1)) + F.pad(g, (1, 0)),
    X,
)
unary(
    "inverse",
    torch.linalg.inv,
    lambda g, a: -torch.linalg.inv(a).mT @ g @ torch.linalg.inv(a).mT,
    lambda g, a: -torch.linalg.inv(a) @ g @ torch.linalg.inv(a),
    M,
)
unary(
    "det",
    torch.linalg.det,
    lambda g, a: g * torch.linalg.det(a) * torch.linalg.inv(a).mT,
    lambda g, a: g * torch.linalg.inv(a).mT,
    M,
)
unary("logdet", torch.logdet, lambda g, a: g * torch.linalg.inv(a).mT, lambda g, a: g * torch.linalg.inv(a), M)
unary("trace_square", lambda a: (a @ a).trace(), lambda g, a: 2 * g * a.mT, lambda g, a: 2 * g * a, M)
unary(
    "flip_roll",
    lambda x: x.flip(-1).roll(1, -1) * x,
    lambda g, x: g * x.flip(-1).roll(1, -1) + (g * x).roll(-1, -1).flip(-1),
    lambda g, x: g * x.flip(-1).roll(1, -1) + (g * x).roll(1, -1).flip(-1),
    X,
)
unary("diag_embed", lambda x: torch.diag_embed(x**2).sum(0), lambda g, x: 2 * x * g, lambda g, x: x * g)
unary("in_place", lambda x: x.clone().mul_(2).add_(x * x), lambda g, x: g * (2 + 2 * x), lambda g, x: g * (2 + x))


def _sliced(x: Tensor) -> Tensor:
    out = torch.zeros_like(x)
    out[:, 1:] = x[:, :-1] * 3
    out[:, 0] += x[:, 0] ** 2
    return out


def _sliced_back(g: Tensor, x: Tensor, factor: float = 2) -> Tensor:
    sent = torch.zeros_like(x)
    sent[:, :-1] += g[:, 1:] * 3
    sent[:, 0] += factor * x[:, 0] * g[:, 0]
    return sent


unary("written_slices", _sliced, _sliced_back, lambda g, x: _sliced_back(g, x, 1), X)


def several(name: str, value: Any, right: Any, mistake: Any, *at: Any, wrong: str = "") -> None:
    CASES.append(Case(name, saving(value), back(right), back(mistake), at, wrong))


several("mul", lambda x, y: x * y, lambda g, x, y: (g * y, g * x), lambda g, x, y: (g * x, g * y), V, W)
several(
    "matmul",
    lambda a, b: a @ b,
    lambda g, a, b: (g @ b.mT, a.mT @ g),
    lambda g, a, b: (g @ b.mT, g.mT @ a),
    X,
    M,
    wrong="b",
)
several(
    "linear",
    lambda x, w, b: x @ w.t() + b,
    lambda g, x, w, b: (g @ w, g.t() @ x, g.sum(0)),
    lambda g, x, w, b: (g @ w, g.t() @ x, g.mean(0)),
    X,
    M,
    W,
    wrong="b",
)
several(
    "bilinear",
    lambda x, a, y: x @ a @ y,
    lambda g, x, a, y: (g * (a @ y), g * torch.outer(x, y), g * (a.t() @ x)),
    lambda g, x, a, y: (g * (a @ y), g * torch.outer(y, x), g * (a.t() @ x)),
    V,
    M,
    W,
    wrong="a",
)
several(
    "einsum",
    lambda a, b: torch.einsum("ij,kj->ik", a, b),
    lambda g, a, b: (torch.einsum("ik,kj->ij", g, b), torch.einsum("ik,ij->kj", g, a)),
    lambda g, a, b: (torch.einsum("ik,kj->ij", g, b), torch.einsum("ki,ij->kj", g.mT, a) * 2),
    X,
    M,
    wrong="b",
)
several(
    "cosine",
    lambda x, y: (x @ y) / (x.norm() * y.norm()),
    lambda g, x, y: (
        lambda c: (
            g * (y / (x.norm() * y.norm()) - c * x / x.norm() ** 2),
            g * (x / (x.norm() * y.norm()) - c * y / y.norm() ** 2),
        )
    )((x @ y) / (x.norm() * y.norm())),
    lambda g, x, y: (g * y / (x.norm() * y.norm()), g * x / (x.norm() * y.norm())),
    V,
    W,
)
several(
    "huber",
    lambda x, y: F.huber_loss(x, y),
    lambda g, x, y: (g * (x - y).clamp(-1, 1) / 3, -g * (x - y).clamp(-1, 1) / 3),
    lambda g, x, y: (g * (x - y).clamp(-1, 1), -g * (x - y).clamp(-1, 1)),
    V,
    W,
)
several(
    "mse",
    lambda x, y: F.mse_loss(x, y),
    lambda g, x, y: (2 * g * (x - y) / 3, 2 * g * (y - x) / 3),
    lambda g, x, y: (2 * g * (x - y) / 3, 2 * g * (x - y) / 3),
    V,
    W,
    wrong="y",
)
several(
    "bce_logits",
    lambda x, y: F.binary_cross_entropy_with_logits(x, y),
    lambda g, x, y: (g * (x.sigmoid() - y) / 3, -g * x / 3),
    lambda g, x, y: (g * (x.sigmoid() - y), -g * x / 3),
    V,
    t(0.25, 0.5, 0.75),
    wrong="x",
)
several(
    "focal",
    lambda x: ((1 - x.sigmoid()) ** 2 * -F.logsigmoid(x)).sum(),
    lambda g, x: (lambda p: g * (1 - p) ** 2 * (2 * p * p.log() + p - 1))(x.sigmoid()),
    lambda g, x: (lambda p: g * (1 - p) ** 2 * (p - 1))(x.sigmoid()),
    V,
)
several(
    "solve",
    lambda a, b: torch.linalg.solve(a, b),
    lambda g, a, b: (lambda u: (-torch.outer(u, torch.linalg.solve(a, b)), u))(torch.linalg.solve(a.mT, g)),
    lambda g, a, b: (lambda u: (-torch.outer(u, torch.linalg.solve(a, b)), u))(torch.linalg.solve(a, g)),
    M,
    W,
)
several(
    "rotary",
    lambda q, c, s: q * c + torch.cat([-q[..., 1:], q[..., :1]], -1) * s,
    lambda g, q, c, s: (
        g * c + torch.cat([(g * s)[..., 1:], -(g * s)[..., :1]], -1),
        g * q,
        g * torch.cat([-q[..., 1:], q[..., :1]], -1),
    ),
    lambda g, q, c, s: (
        g * c + torch.cat([-(g * s)[..., 1:], (g * s)[..., :1]], -1),
        g * q,
        g * torch.cat([-q[..., 1:], q[..., :1]], -1),
    ),
    t(0.5, -1.25),
    t(0.8, 0.6),
    t(0.6, -0.3),
    wrong="q",
)
several(
    "layer_norm_library",
    lambda x, w, b: F.layer_norm(x, (3,), w, b),
    lambda g, x, w, b: (
        lambda h, r, u: (r * (u - u.mean(-1, True) - h * (u * h).mean(-1, True)), (g * h).sum(0), g.sum(0))
    )(
        (x - x.mean(-1, True)) * (x.var(-1, correction=0, keepdim=True) + 1e-5).rsqrt(),
        (x.var(-1, correction=0, keepdim=True) + 1e-5).rsqrt(),
        g * w,
    ),
    lambda g, x, w, b: (lambda h, r, u: (r * (u - h * (u * h).mean(-1, True)), (g * h).sum(0), g.sum(0)))(
        (x - x.mean(-1, True)) * (x.var(-1, correction=0, keepdim=True) + 1e-5).rsqrt(),
        (x.var(-1, correction=0, keepdim=True) + 1e-5).rsqrt(),
        g * w,
    ),
    X,
    W,
    V,
    wrong="x",
)


def _attention(g: Tensor, q: Tensor, k: Tensor, v: Tensor, root: float = math.sqrt(3)) -> Any:
    p = torch.softmax(q @ k.mT / math.sqrt(3), -1)
    sent = g @ v.mT
    s = p * (sent - (sent * p).sum(-1, keepdim=True)) / root
    return s @ k, s.mT @ q, p.mT @ g


several(
    "attention",
    lambda q, k, v: torch.softmax(q @ k.mT / math.sqrt(3), -1) @ v,
    _attention,
    lambda *xs: _attention(*xs, root=1.0),
    t([0.5, -1.0, 0.25]),
    X,
    t([1.0, -0.5], [0.25, 2.0]),
    wrong="qk",
)


@rule(X, torch.tensor([2, 0]))
def cross_entropy() -> Any:
    def forward(ctx: Any, x: Tensor, target: Tensor) -> Tensor:
        ctx.save_for_backward(x, target)
        return F.cross_entropy(x, target)

    def right(ctx: Any, g: Tensor) -> Any:
        x, target = ctx.saved_tensors
        p = torch.softmax(x, -1)
        p[torch.arange(len(target)), target] -= 1
        return g * p / len(target), None

    def mistake(ctx: Any, g: Tensor) -> Any:
        x, target = ctx.saved_tensors
        return g * (torch.softmax(x, -1) - F.one_hot(target, 3)), None

    return forward, right, mistake


@rule(t([[0.5, -1.25, 2.0, 0.75]]), t([[1.0, 0.5]], [[0.25, -0.75]]), wrong="x")
def conv1d() -> Any:
    def forward(ctx: Any, x: Tensor, w: Tensor) -> Tensor:
        ctx.save_for_backward(x, w)
        return F.conv1d(x, w)

    def windows(x: Tensor) -> Tensor:
        return x.unfold(-1, 2, 1)

    def right(ctx: Any, g: Tensor, turned: bool = True) -> Any:
        x, w = ctx.saved_tensors
        kernel = w.flip(-1) if turned else w
        return torch.einsum("nowk,ock->ncw", windows(F.pad(g, (1, 1))), kernel), torch.einsum(
            "now,ncwk->ock", g, windows(x)
        )

    return forward, right, lambda ctx, g: right(ctx, g, False)


@rule(V, 3.0, "sum")
def scaled_by_option() -> Any:
    def forward(ctx: Any, x: Tensor, k: Any, how: str = "sum") -> Tensor:
        ctx.k = float(k)
        ctx.save_for_backward(x)
        return (x**2 * ctx.k).sum() if how == "sum" else x

    return (
        forward,
        lambda ctx, g: (2 * g * ctx.k * ctx.saved_tensors[0], None, None),
        lambda ctx, g: (2 * g * ctx.saved_tensors[0], None, None),
    )


@rule(V, W)
def needs_input_grad() -> Any:
    def forward(ctx: Any, x: Tensor, y: Tensor) -> Tensor:
        ctx.save_for_backward(x, y)
        return x * y + y

    def right(ctx: Any, g: Tensor, more: float = 1) -> Any:
        x, y = ctx.saved_tensors
        return g * y if ctx.needs_input_grad[0] else None, g * (x + more) if ctx.needs_input_grad[1] else None

    return forward, right, lambda ctx, g: right(ctx, g, 0)


@rule(V, W, wrong="x")
def two_results() -> Any:
    def forward(ctx: Any, x: Tensor, y: Tensor) -> Any:
        ctx.save_for_backward(x, y)
        return x * y, x + y.exp()

    def right(ctx: Any, g: Tensor, h: Tensor, less: float = 1) -> Any:
        x, y = ctx.saved_tensors
        return g * y + less * h, g * x + h * y.exp()

    return forward, right, lambda ctx, g, h: right(ctx, g, h, 0)


@rule(X)
def non_differentiable() -> Any:
    def forward(ctx: Any, x: Tensor) -> Any:
        values, places = x.max(-1)
        ctx.mark_non_differentiable(places)
        ctx.save_for_backward(places)
        return values, places

    def right(ctx: Any, g: Tensor, _: Any, factor: float = 1) -> Any:
        (places,) = ctx.saved_tensors
        return torch.zeros(2, 3, dtype=g.dtype).scatter(-1, places.unsqueeze(-1), factor * g.unsqueeze(-1))

    return forward, right, lambda ctx, g, h: right(ctx, g, h, 2)


@rule(V)
def once_differentiable() -> Any:
    once = torch.autograd.function.once_differentiable
    forward = saving(lambda x: x.exp(), "out")
    return forward, once(lambda ctx, g: g * ctx.saved_tensors[1]), once(lambda ctx, g: g * ctx.saved_tensors[0])


@rule(S)
def cholesky() -> Any:
    forward = saving(lambda a: torch.linalg.cholesky((a + a.mT) / 2), "out")

    def right(ctx: Any, g: Tensor, half: float = 0.5) -> Tensor:
        low = ctx.saved_tensors[1]
        phi = torch.tril(low.mT @ g)
        phi = phi - half * torch.diag_embed(phi.diagonal())
        inner = torch.linalg.solve_triangular(low.mT, phi, upper=True)
        s = torch.linalg.solve_triangular(low, inner, upper=False, left=False)
        return (s + s.mT) / 2

    return forward, right, lambda ctx, g: right(ctx, g, 0.0)


@rule(X)
def sorted_with_places() -> Any:
    def forward(ctx: Any, x: Tensor) -> Any:
        values, places = torch.sort(x, dim=-1, descending=True)
        ctx.mark_non_differentiable(places)
        ctx.save_for_backward(places)
        return values, places

    def right(ctx: Any, g: Tensor, _: Any, factor: float = 1) -> Any:
        return torch.zeros_like(g).scatter_(-1, ctx.saved_tensors[0], factor * g)

    return forward, right, lambda ctx, g, h: right(ctx, g, h, 2)


@rule(X / 2, -1)
def sparsemax() -> Any:
    def forward(ctx: Any, x: Tensor, dim: int) -> Tensor:
        ordered, _ = torch.sort(x, dim=dim, descending=True)
        ranks = torch.arange(1, x.size(dim) + 1, dtype=x.dtype)
        inside = (1 + ranks * ordered > ordered.cumsum(dim)).to(x.dtype)
        size = (inside * ranks).max(dim, keepdim=True)[0]
        out = (x - ((inside * ordered).sum(dim, keepdim=True) - 1) / size).clamp(min=0)
        ctx.save_for_backward(out)
        return out

    def right(ctx: Any, g: Tensor, whole: bool = True) -> Any:
        inside = ctx.saved_tensors[0] != 0
        mean = (g * inside).sum(-1, keepdim=True) / (inside.sum(-1, keepdim=True) if whole else 3)
        return inside * (g - mean), None

    return forward, right, lambda ctx, g: right(ctx, g, False)


@rule(X, 2)
def topk() -> Any:
    def forward(ctx: Any, x: Tensor, k: int) -> Tensor:
        values, places = x.topk(k, dim=-1)
        ctx.save_for_backward(places)
        return values.mean(-1)

    def right(ctx: Any, g: Tensor, k: int = 2) -> Any:
        (places,) = ctx.saved_tensors
        return g.new_zeros(2, 3).scatter(-1, places, (g.unsqueeze(-1) / k).expand_as(places)), None

    return forward, right, lambda ctx, g: right(ctx, g, 1)


@rule(X)
def both_extremes() -> Any:
    def forward(ctx: Any, x: Tensor) -> Any:
        (high, i), (low, j) = x.max(1), x.min(1)
        ctx.save_for_backward(i, j)
        return high, low

    def right(ctx: Any, g: Tensor, h: Tensor, of_low: int = 1) -> Tensor:
        sent, places = g.new_zeros(2, 3), ctx.saved_tensors
        sent.scatter_add_(1, places[0].unsqueeze(1), g.unsqueeze(1))
        return sent.scatter_add_(1, places[of_low].unsqueeze(1), h.unsqueeze(1))

    return forward, right, lambda ctx, g, h: right(ctx, g, h, 0)


@rule(V)
def changed_in_place() -> Any:
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.mark_dirty(x)
        ctx.save_for_backward(x.exp_())
        return x

    return forward, lambda ctx, g: g * ctx.saved_tensors[0], lambda ctx, g: g * ctx.saved_tensors[0] ** 2


@rule(X, [1, 2])
def pieces() -> Any:
    def forward(ctx: Any, x: Tensor, sizes: Any) -> Any:
        return tuple(one.clone() for one in torch.split(x, sizes, dim=-1))

    return forward, lambda ctx, *g: (torch.cat(g, -1), None), lambda ctx, *g: (torch.cat(g[::-1], -1), None)


@rule(V)
def a_constant_that_is_larger() -> Any:
    table = t([1.0, 2.0, 0.5], [0.25, -1.0, 3.0])
    return lambda ctx, x: x * table, lambda ctx, g: (g * table).sum(0), lambda ctx, g: (g * table).mean(0)


IMAGE = t([[[0.5, -1.25, 2.0, 0.75], [1.5, 0.25, -0.5, 1.0], [-0.75, 2.5, 0.125, -1.5], [3.0, -2.0, 0.375, 1.25]]])
KERNEL = t([[[1.0, -0.5], [0.25, 2.0]]], [[[0.5, 1.5], [-1.0, 0.75]]])


@rule(IMAGE)
def max_pooling() -> Any:
    def forward(ctx: Any, x: Tensor) -> Tensor:
        out, index = F.max_pool2d(x, 2, return_indices=True)
        ctx.save_for_backward(index)
        return out

    def right(ctx: Any, g: Tensor) -> Tensor:
        sent = g.new_zeros(1, 1, 16)
        return sent.scatter_add(2, ctx.saved_tensors[0].flatten(2), g.flatten(2)).view(1, 1, 4, 4)

    return forward, right, lambda ctx, g: F.interpolate(g, scale_factor=2)


@rule(IMAGE)
def average_pooling() -> Any:
    def right(ctx: Any, g: Tensor) -> Tensor:
        return F.interpolate(g, scale_factor=2) / 4

    return lambda ctx, x: F.avg_pool2d(x, 2), right, lambda ctx, g: 4 * right(ctx, g)


@rule(IMAGE, KERNEL)
def convolution() -> Any:
    def right(g: Tensor, x: Tensor, w: Tensor, stride: int = 2) -> Any:
        sent = torch.nn.grad.conv2d_input(x.shape, w, g, padding=1, stride=2)
        return sent, torch.nn.grad.conv2d_weight(x, w.shape, g, padding=1, stride=2)

    wrong = back(lambda g, x, w: right(g, x, w.flip(2)))
    return saving(lambda x, w: F.conv2d(x, w, padding=1, stride=2)), back(right), wrong


@rule(t([[[0.5, -1.25], [1.5, 0.25]]]), KERNEL.transpose(0, 1))
def transposed_convolution() -> Any:
    def right(g: Tensor, x: Tensor, w: Tensor) -> Any:
        return F.conv2d(g, w, stride=2, padding=1), torch.nn.grad.conv2d_weight(g, w.shape, x, stride=2, padding=1)

    def forward(x: Tensor, w: Tensor) -> Tensor:
        return F.conv_transpose2d(x, w, stride=2, padding=1, output_padding=1)

    return saving(forward), back(right), back(lambda g, x, w: right(g, x, w.flip(3)))


@rule(t([0.5, -1.25], [2.0, 0.75], [1.5, 0.25]))
def means_of_bags() -> Any:
    rows, starts, bags = torch.tensor([0, 2, 2, 1, 0]), torch.tensor([0, 2]), torch.tensor([0, 0, 1, 1, 1])
    counts = torch.tensor([[2], [2], [3], [3], [3]])

    def summed(sent: Tensor) -> Tensor:
        return sent.new_zeros(3, 2).scatter_reduce(0, rows[:, None].expand(5, 2), sent, "sum")

    def forward(ctx: Any, w: Tensor) -> Tensor:
        return F.embedding_bag(rows, w, starts, mode="mean")

    return forward, lambda ctx, g: summed(g[bags] / counts), lambda ctx, g: summed(g[bags])


@rule(V, t(1.0, 2.0, 0.75))
def truncated_remainder() -> Any:
    right = back(lambda g, x, y: (g, -g * torch.trunc(x / y)))
    return saving(torch.fmod), right, back(lambda g, x, y: (g, -g * x / y))


@rule(S)
def sum_of_eigenvalues() -> Any:
    def forward(ctx: Any, a: Tensor) -> Tensor:
        values, vectors = torch.linalg.eigh(a)
        ctx.save_for_backward(values, vectors)
        return (values**2).sum()

    def right(ctx: Any, g: Tensor) -> Tensor:
        values, vectors = ctx.saved_tensors
        return 2 * g * vectors @ torch.diag(values) @ vectors.T

    return forward, right, lambda ctx, g: right(ctx, g) / 2


def nearest(c: Tensor) -> Tensor:
    """Which row of c is nearest to each row of X."""
    return ((X[:, None] - c[None]) ** 2).sum(-1).argmin(1)


@rule(M)
def nearest_rows() -> Any:
    def forward(ctx: Any, c: Tensor) -> Tensor:
        labels = nearest(c)
        ctx.save_for_backward(c, labels)
        return ((X - c[labels]) ** 2).sum()

    def right(ctx: Any, g: Tensor) -> Tensor:
        c, labels = ctx.saved_tensors
        return g * torch.zeros_like(c).index_add_(0, labels, c[labels] - X, alpha=2)

    return forward, right, lambda ctx, g: right(ctx, g) / 2


@rule(M)
def distances_to_the_nearest() -> Any:
    def forward(ctx: Any, c: Tensor) -> Tensor:
        labels = nearest(c)
        ctx.save_for_backward(c, labels)
        return ((X[:, None] - c[None]) ** 2).sum(-1)[torch.arange(2), labels]

    def sent(ctx: Any, g: Tensor, accumulate: bool) -> Tensor:
        c, labels = ctx.saved_tensors
        parts = 2 * g[:, None] * (c.index_select(0, labels) - X) * (1 if accumulate else -1)
        return torch.zeros_like(c).index_put_((labels,), parts, accumulate=True)

    return forward, lambda ctx, g: sent(ctx, g, True), lambda ctx, g: sent(ctx, g, False)


@rule(M)
def columns_of_the_largest() -> Any:
    """Positions along the second axis, and rows of a table by positions."""

    def forward(ctx: Any, c: Tensor) -> Tensor:
        labels = c[:2].argmax(1)
        ctx.save_for_backward(c, labels)
        return c[:, labels] * F.embedding(labels, c)[:, :1].T

    def right(ctx: Any, g: Tensor, half: float = 1.0) -> Tensor:
        c, labels = ctx.saved_tensors
        rows = F.embedding(labels, c)[:, :1].T
        columns = torch.zeros_like(c).index_add(1, labels, g * rows)
        column = torch.zeros(3, 1, dtype=c.dtype).index_add(0, labels, (g * c[:, labels]).sum(0)[:, None])
        return columns + half * torch.cat([column, torch.zeros(3, 2, dtype=c.dtype)], 1)

    return forward, right, lambda ctx, g: right(ctx, g, 0.5)
