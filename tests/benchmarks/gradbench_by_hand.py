"""The workloads of GradBench with gradients by hand, in NumPy: leaves in, (value, {leaf: gradient}) out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

Result = tuple[Any, dict[str, Any]]


def prepared(work: str, point: Mapping[str, Any], wrt: tuple[str, ...]) -> Callable[[], Result]:
    """The work at one point; every function gives the leaves of `wrt` in that order."""
    return lambda: WORKS[work](**point)


def plain(found: Result) -> Result:
    return found


def gmm(X: Any, alpha: Any, mu: Any, q: Any, l: Any) -> Result:
    (n, d), k = X.shape, len(alpha)
    rows, columns = np.tril_indices(d, -1)
    places = np.arange(d)
    Q = np.zeros((k, d, d))
    Q[:, rows, columns] = l
    scale = np.exp(q)
    Q[:, places, places] = scale
    z = (X @ Q.reshape(k * d, d).T).reshape(n, k, d)
    z -= (Q @ mu[:, :, None])[:, :, 0]
    joint = alpha + q.sum(1) - np.einsum("nki,nki->nk", z, z) / 2
    top = joint.max(1, keepdims=True)
    r = np.exp(joint - top)
    total = r.sum(1, keepdims=True)
    r /= total
    shift = alpha.max()
    weights = np.exp(alpha - shift)
    likelihood = np.sum(top + np.log(total)) - n * (shift + np.log(weights.sum())) - n * d * np.log(2 * np.pi) / 2
    value = likelihood - (np.sum(scale**2) + np.sum(l**2)) / 2
    z *= -r[:, :, None]
    pulled = z.sum(0)
    slope = (z.reshape(n, k * d).T @ X).reshape(k, d, d) - pulled[:, :, None] * mu[:, None, :]
    share = r.sum(0)
    return value, {
        "alpha": share - n * weights / weights.sum(),
        "mu": -(pulled[:, None, :] @ Q)[:, 0, :],
        "q": share[:, None] + slope[:, places, places] * scale - scale**2,
        "l": slope[:, rows, columns] - l,
    }


def kmeans(X: Any, C: Any) -> Result:
    n = len(X)
    distance = -2 * X @ C.T
    distance += np.sum(C**2, axis=1)
    nearest = distance.argmin(1)
    cost = distance[np.arange(n), nearest].sum() + np.sum(X**2)
    member = np.zeros((n, len(C)))
    member[np.arange(n), nearest] = 1
    return cost, {"C": 2 * (member.sum(0)[:, None] * C - member.T @ X)}


def lse(x: Any) -> Result:
    shift = x.max()
    p = np.exp(x - shift)
    total = p.sum()
    return shift + np.log(total), {"x": p / total}


def llsq(n: int, x: Any) -> Result:
    t = np.linspace(-1, 1, n)
    powers = np.empty((len(x), n))
    powers[0], have, factor = 1, 1, t
    while have < len(x):
        more = min(have, len(x) - have)
        np.multiply(powers[:more], factor, out=powers[have : have + more])
        have, factor = have + more, factor * factor
    r = np.sign(t) - x @ powers
    return r @ r / 2, {"x": -(powers @ r)}


def field(x: Any, y: Any) -> Any:
    found = np.empty_like(x)
    found[0] = x[0]
    np.multiply(x[1:], y[:-1], out=found[1:])
    return found


def field_back(x: Any, y: Any, ct: Any, slope: Any) -> Any:
    """The cotangent of y; that of x is added to `slope`."""
    slope[0] += ct[0]
    slope[1:] += ct[1:] * y[:-1]
    back = np.zeros_like(y)
    back[:-1] = ct[1:] * x[1:]
    return back


def ode(steps: int, x: Any) -> Result:
    h, y, kept = 1 / steps, np.zeros_like(x), []
    for _ in range(steps):
        one = field(x, y)
        second = y + h / 2 * one
        two = field(x, second)
        third = y + h / 2 * two
        three = field(x, third)
        fourth = y + h * three
        four = field(x, fourth)
        kept.append((y, second, third, fourth))
        y = y + h / 6 * (one + 2 * two + 2 * three + four)
    slope, ct = np.zeros_like(x), np.zeros_like(x)
    ct[-1] = 1
    for first, second, third, fourth in reversed(kept):
        at_four = field_back(x, fourth, h / 6 * ct, slope)
        at_three = field_back(x, third, h / 3 * ct + h * at_four, slope)
        at_two = field_back(x, second, h / 3 * ct + h / 2 * at_three, slope)
        ct = ct + field_back(x, first, h / 6 * ct + h / 2 * at_two, slope) + at_two + at_three + at_four
    return y[-1], {"x": slope}


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def lstm(sequence: Any, state: Any, main: Any, extra: Any) -> Result:
    b, last = sequence.shape[1], len(sequence) - 1
    w = main.reshape(2, 2, 4, b)
    hidden, cell = [state[0], state[2]], [state[1], state[3]]
    total, kept = 0.0, []
    for t in range(last):
        x, step = sequence[t] * extra[0], []
        for layer in range(2):
            weight, bias = w[layer]
            h, c = hidden[layer], cell[layer]
            forget, enter, out = sigmoid(np.stack((x, h, x)) * weight[:3] + bias[:3])
            change = np.tanh(h * weight[3] + bias[3])
            cell[layer] = forget * c + enter * change
            bent = np.tanh(cell[layer])
            step.append((x, h, c, forget, enter, out, change, bent))
            hidden[layer] = x = out * bent
        y = x * extra[1] + extra[2]
        grown = np.exp(y)
        whole = 2 + grown.sum()
        total -= sequence[t + 1] @ (y - np.log(whole))
        kept.append((step, x, sequence[t + 1].sum() * grown / whole - sequence[t + 1]))
    count = last * b
    slopes, tails = np.zeros_like(w), np.zeros_like(extra)
    ct_h, ct_c = [np.zeros(b), np.zeros(b)], [np.zeros(b), np.zeros(b)]
    for t in reversed(range(last)):
        step, x, ct = kept[t]
        tails[1] += ct * x
        tails[2] += ct
        down = ct * extra[1]
        for layer in (1, 0):
            x, h, c, forget, enter, out, change, bent = step[layer]
            weight = w[layer, 0]
            to_h = ct_h[layer] + down
            to_c = ct_c[layer] + to_h * out * (1 - bent * bent)
            gates = np.stack((to_c * c * forget * (1 - forget), to_c * change * enter * (1 - enter),
                              to_h * bent * out * (1 - out), to_c * enter * (1 - change * change)))  # fmt: skip
            slopes[layer, 0] += gates * np.stack((x, h, x, h))
            slopes[layer, 1] += gates
            down = gates[0] * weight[0] + gates[2] * weight[2]
            ct_h[layer] = gates[1] * weight[1] + gates[3] * weight[3]
            ct_c[layer] = to_c * forget
        tails[0] += down * sequence[t]
    return total / count, {"main": slopes.reshape(main.shape) / count, "extra": tails / count}


def det(A: Any) -> Result:
    value = np.linalg.det(A)
    return value, {"A": value * np.linalg.inv(A).T}


WORKS: dict[str, Callable[..., Result]] = {
    "gmm": gmm, "kmeans": kmeans, "lse": lse, "llsq": llsq, "ode": ode, "lstm": lstm, "det": det,
}  # fmt: skip
