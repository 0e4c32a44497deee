"""The workloads of GradBench in jax, compiled: leaves in, value and gradients by jax.value_and_grad out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.nn import sigmoid
from jax.scipy.special import logsumexp

jax.config.update("jax_enable_x64", True)


def prepared(work: str, point: Mapping[str, Any], wrt: tuple[str, ...]) -> Callable[[], Any]:
    """The work at one point; sizes are static, arrays are arguments."""
    sizes = {k: v for k, v in point.items() if isinstance(v, int)}
    rest = {k: jnp.asarray(v) for k, v in point.items() if k not in sizes and k not in wrt}
    leaves = {k: jnp.asarray(point[k]) for k in wrt}
    both = jax.jit(jax.value_and_grad(lambda leaves, rest: WORKS[work](**leaves, **rest, **sizes)))
    return lambda: jax.block_until_ready(both(leaves, rest))


def plain(found: Any) -> Any:
    value, gradient = found
    return float(value), {name: np.asarray(slope) for name, slope in gradient.items()}


def gmm(X: Any, alpha: Any, mu: Any, q: Any, l: Any) -> Any:
    (n, d), k = X.shape, len(alpha)
    rows, columns = np.tril_indices(d, -1)
    Q = (jnp.eye(d) * jnp.exp(q)[:, None, :]).at[:, rows, columns].set(l)
    z = (X @ Q.reshape(k * d, d).T).reshape(n, k, d) - (Q @ mu[:, :, None])[:, :, 0]
    joint = alpha + q.sum(1) - (z**2).sum(2) / 2
    likelihood = logsumexp(joint, axis=1).sum() - n * logsumexp(alpha) - n * d * np.log(2 * np.pi) / 2
    return likelihood - (jnp.exp(2 * q).sum() + (l**2).sum()) / 2


def kmeans(X: Any, C: Any) -> Any:
    distance = (X**2).sum(1)[:, None] - 2 * X @ C.T + (C**2).sum(1)
    return distance.min(1).sum()


def lse(x: Any) -> Any:
    return logsumexp(x)


def llsq(n: int, x: Any) -> Any:
    t = jnp.linspace(-1, 1, n)
    r = jnp.sign(t) - (t[:, None] ** jnp.arange(len(x))) @ x
    return (r**2).sum() / 2


def ode(steps: int, x: Any) -> Any:
    h = 1 / steps

    def field(y: Any) -> Any:
        return jnp.concatenate((x[:1], x[1:] * y[:-1]))

    def step(y: Any, _: Any) -> Any:
        one = field(y)
        two = field(y + h / 2 * one)
        three = field(y + h / 2 * two)
        return y + h / 6 * (one + 2 * two + 2 * three + field(y + h * three)), None

    return lax.scan(step, jnp.zeros_like(x), None, length=steps)[0][-1]


def lstm(sequence: Any, state: Any, main: Any, extra: Any) -> Any:
    b, last = sequence.shape[1], len(sequence) - 1
    w = main.reshape(2, 2, 4, b)

    def step(carried: Any, pair: Any) -> Any:
        x, target = pair[0] * extra[0], pair[1]
        rows = []
        for layer in range(2):
            (weight, bias), h, c = w[layer], carried[2 * layer], carried[2 * layer + 1]
            forget, out = sigmoid(x * weight[0] + bias[0]), sigmoid(x * weight[2] + bias[2])
            enter, change = sigmoid(h * weight[1] + bias[1]), jnp.tanh(h * weight[3] + bias[3])
            c = forget * c + enter * change
            x = out * jnp.tanh(c)
            rows += [x, c]
        y = x * extra[1] + extra[2]
        return jnp.stack(rows), -(target * (y - jnp.log(2 + jnp.exp(y).sum()))).sum()

    return lax.scan(step, state, (sequence[:-1], sequence[1:]))[1].sum() / (last * b)


def det(A: Any) -> Any:
    return jnp.linalg.det(A)


WORKS: dict[str, Callable[..., Any]] = {
    "gmm": gmm, "kmeans": kmeans, "lse": lse, "llsq": llsq, "ode": ode, "lstm": lstm, "det": det,
}  # fmt: skip
