"""The workloads of GradBench in torch: leaves in, value and gradients by torch.autograd out."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import torch


def prepared(work: str, point: Mapping[str, Any], wrt: tuple[str, ...]) -> Callable[[], Any]:
    """The work at one point."""
    given = {k: v if isinstance(v, int) else torch.from_numpy(v) for k, v in point.items()}
    leaves = [given[name].requires_grad_() for name in wrt]

    def f() -> Any:
        value = WORKS[work](**given)
        return value, dict(zip(wrt, torch.autograd.grad(value, leaves), strict=True))

    return f


def plain(found: Any) -> Any:
    value, gradient = found
    return value.item(), {name: slope.numpy() for name, slope in gradient.items()}


def gmm(X: Any, alpha: Any, mu: Any, q: Any, l: Any) -> Any:
    (n, d), k = X.shape, len(alpha)
    rows, columns = torch.tril_indices(d, d, -1)
    Q = torch.diag_embed(torch.exp(q)).index_put((slice_of(k), rows[None], columns[None]), l)
    z = (X @ Q.reshape(k * d, d).T).reshape(n, k, d) - (Q @ mu[:, :, None])[:, :, 0]
    joint = alpha + q.sum(1) - (z**2).sum(2) / 2
    likelihood = torch.logsumexp(joint, 1).sum() - n * torch.logsumexp(alpha, 0) - n * d * math.log(2 * math.pi) / 2
    return likelihood - (torch.exp(2 * q).sum() + (l**2).sum()) / 2


def slice_of(k: int) -> Any:
    return torch.arange(k)[:, None]


def kmeans(X: Any, C: Any) -> Any:
    distance = (X**2).sum(1)[:, None] - 2 * X @ C.T + (C**2).sum(1)
    return distance.min(1).values.sum()


def lse(x: Any) -> Any:
    return torch.logsumexp(x, 0)


def llsq(n: int, x: Any) -> Any:
    t = torch.linspace(-1, 1, n, dtype=torch.float64)
    r = torch.sign(t) - (t[:, None] ** torch.arange(len(x))) @ x
    return (r**2).sum() / 2


def ode(steps: int, x: Any) -> Any:
    def field(y: Any) -> Any:
        return torch.cat((x[:1], x[1:] * y[:-1]))

    h, y = 1 / steps, torch.zeros_like(x)
    for _ in range(steps):
        one = field(y)
        two = field(y + h / 2 * one)
        three = field(y + h / 2 * two)
        y = y + h / 6 * (one + 2 * two + 2 * three + field(y + h * three))
    return y[-1]


def lstm(sequence: Any, state: Any, main: Any, extra: Any) -> Any:
    b, last = sequence.shape[1], len(sequence) - 1
    w = main.reshape(2, 2, 4, b)
    hidden, cell = [state[0], state[2]], [state[1], state[3]]
    total = torch.zeros((), dtype=torch.float64)
    for t in range(last):
        x = sequence[t] * extra[0]
        for layer in range(2):
            weight, bias = w[layer]
            forget = torch.sigmoid(x * weight[0] + bias[0])
            enter = torch.sigmoid(hidden[layer] * weight[1] + bias[1])
            out = torch.sigmoid(x * weight[2] + bias[2])
            change = torch.tanh(hidden[layer] * weight[3] + bias[3])
            cell[layer] = forget * cell[layer] + enter * change
            hidden[layer] = x = out * torch.tanh(cell[layer])
        y = x * extra[1] + extra[2]
        total = total - (sequence[t + 1] * (y - torch.log(2 + torch.exp(y).sum()))).sum()
    return total / (last * b)


def det(A: Any) -> Any:
    return torch.linalg.det(A)


WORKS: dict[str, Callable[..., Any]] = {
    "gmm": gmm, "kmeans": kmeans, "lse": lse, "llsq": llsq, "ode": ode, "lstm": lstm, "det": det,
}  # fmt: skip
