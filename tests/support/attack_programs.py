"""A seed goes in, a script comes out, with values for its leaves and with others that a plan of it meets later.

Two kinds: algorithms that everybody knows; steps on matrices with short rows, whose leaves lie in memory in odd ways.
"""

from __future__ import annotations

import re
from random import Random
from typing import Any, NamedTuple

import numpy as np

Values = dict[str, Any]


class Case(NamedTuple):
    """A script, the values of its leaves, and those of later runs."""

    text: str
    values: Values
    others: list[Values]


# --- algorithms --------------------------------------------------------------------------------------------

# what a loop begins with, its iterations, the result, and the shapes of leaves: T iterations of d entries
ALGORITHMS: dict[str, tuple[str, str, str, dict[str, str]]] = {
    "gated recurrent unit": ("h = 0*b", "p = sigmoid(Wz @ x[t] + Uz @ h + b)\ng = tanh(Wh @ x[t] + Uh @ (p*h))\nh = (1 - p)*h + p*g\ns = s + sum((h - y[t])**2)", "s", {"x": "Td", "y": "Td", "b": "d", "Wz": "dd", "Uz": "dd", "Wh": "dd", "Uh": "dd"}),
    "leapfrog": ("p, q = p0, q0", "p = p - 0.05*k*sin(q)\nq = q + 0.1*p\np = p - 0.05*k*q\ns = s + sum(p*p)", "s + sum(q)", {"p0": "d", "q0": "d", "k": "d"}),
    "Kalman filter": ("m, P = m0, 1 + m0*m0", "m = a*m\nP = a*a*P + b*b\nS = P + 0.3\nK = P/S\nv = y[t] - m\ns = s + sum(log(S) + v*v/S)\nm = m + K*v\nP = (1 - K)*P", "s", {"m0": "d", "a": "d", "b": "d", "y": "Td"}),
    "Kalman filter of matrices": ("m, P = m0, eye(d)", "m = A @ m\nP = 0.5*(A @ P @ A.T) + eye(d)\nS = C @ P @ C + 1\nK = P @ C/S\nv = z[t] - C @ m\ns = s + log(S) + v*v/S\nm = m + K*v\nP = P - outer(K, K)*S", "s", {"m0": "d", "A": "dd", "C": "d", "z": "T"}),
    "Horner": ("h, g = 0*u + z[0], 0*u", "g = g*u + h\nh = h*u + z[t]", "sum(h) + sum(g*g)", {"u": "d", "z": "T"}),
    "Holt's smoothing": ("l, b = y[0], 0*y[0]", "v = y[t] - l - b\ns = s + sum(v*v)\nk = p*y[t] + (1 - p)*(l + b)\nb = q*(k - l) + (1 - q)*b\nl = k", "s + sum(l)", {"y": "Td", "p": "", "q": ""}),
    "ARMA(2, 2)": ("g, h = 0*c, 0*c", "v = y[t] - c - a*y[t - 1] - b*g - 0.2*h\ns = s + sum(v*v)\nh = g\ng = v", "s", {"y": "Td", "a": "d", "b": "d", "c": "d"}),
    "GARCH": ("v = 1 + c*c", "v = 0.1 + c*c + a*a*y[t - 1]**2 + 0.5*b*b*v\ns = s + sum(log(v) + y[t]**2/v)", "s", {"y": "Td", "a": "d", "b": "d", "c": "d"}),
    "forward algorithm": ("A = log_softmax(W)\nl = log_softmax(b) + y[0]", "l = logsumexp(l[:, None] + A, axis=0) + y[t]", "logsumexp(l)", {"W": "dd", "b": "d", "y": "Td"}),
    "scaled forward algorithm": ("A = softmax(W)\np = softmax(b)", "p = (p @ A)*exp(y[t])\ns = s + log(sum(p))\np = p/sum(p)", "s", {"W": "dd", "b": "d", "y": "Td"}),
    "filter of second order": ("g, h = 0*b, 0*b", "y = b*x[t] + c*x[t - 1] - 0.5*a*g - 0.3*h\ns = s + sum((y - x[t])**2)\nh = g\ng = y", "s", {"x": "Td", "a": "d", "b": "d", "c": "d"}),
    "Adam": ("w, m, v = w0, 0*w0, 0*w0", "g = (1 + k*k)*(w - c) + 0.1*x[t]\nm = 0.9*m + 0.1*g\nv = 0.99*v + 0.01*g*g\nw = w - 0.05*(m/(1 - 0.9**t))/(sqrt(v/(1 - 0.99**t)) + 1e-8)", "sum((w - c)**2)", {"w0": "d", "k": "d", "c": "d", "x": "Td"}),
    "momentum": ("w, v = w0, 0*w0", "v = p*v - 0.05*((1 + k*k)*w - c*x[t])\nw = w + v", "sum((w - c)**2)", {"w0": "d", "k": "d", "c": "d", "x": "Td", "p": ""}),
    "three averages": ("a, b, c = y[0], y[0], y[0]", "a = a + k*(y[t] - a)\nb = b + k*(a - b)\nc = c + k*(b - c)\ns = s + sum(abs(3*a - 3*b + c - y[t]))", "s", {"y": "Td", "k": "d"}),
    "advantages": ("g = 0*v[0]", "k = x[T - t] + 0.99*v[T - t] - v[T - t - 1]\ng = k + 0.94*(x[T - t] > 0)*g\ns = s + sum(g*y[t])", "s", {"v": "Td", "x": "Td", "y": "Td"}),
    "softmax in one pass": ("m, p, q = x[0], 0*x[0], 0*x[0]", "k = maximum(m, x[t])\np = p*exp(m - k) + exp(x[t] - k)*y[t]\nq = q*exp(m - k) + exp(x[t] - k)\nm = k", "sum(p/q)", {"x": "Td", "y": "Td"}),
    "state space": ("h = 0*b", "k = log(1 + exp(z[t]))\nh = exp(-k*a*a)*h + k*b*x[t]\ns = s + sum(c*h)*z[t]", "s", {"a": "d", "b": "d", "c": "d", "x": "Td", "z": "T"}),
    "linear attention": ("S = 0*outer(k[0], v[0])", "S = z[t]*S + outer(k[t], v[t])\ns = s + sum((y[t] @ S)*x[t])", "s", {"k": "Td", "v": "Td", "x": "Td", "y": "Td", "z": "T"}),
    "loops inside loops": ("h = u", "g = h\nfor j in range(3):\n    g = 0.7*g + w*x[t]\nh = 0.5*h + 0.2*g\ns = s + sum(h*g)", "s", {"u": "d", "w": "d", "x": "Td"}),
}  # fmt: skip


def algorithm(name: str, seed: int, iterations: int) -> Case:
    """One of `ALGORITHMS`, for some iterations."""
    random, draw = Random(seed), np.random.default_rng(seed)
    d = random.choice((2, 3, 4))
    begin, body, result, leaves = ALGORITHMS[name]
    body = body.replace("\n", "\n    ")
    text = f"const T = {iterations - 1}\nconst d = {d}\ns = 0\n{begin}\nfor t in range(1, T):\n    {body}\n{result}"
    shapes = {leaf: [{"T": iterations, "d": d}[axis] for axis in axes] for leaf, axes in leaves.items()}
    values = {leaf: draw.uniform(-1, 1, shape) for leaf, shape in shapes.items()}
    odd = {leaf: np.array(one) for leaf, one in values.items()}
    some = odd[random.choice(list(odd))]
    some.flat[draw.integers(some.size)] = draw.choice([np.nan, np.inf, 0.0, 1e300, 1e-310])
    others = [{leaf: -one for leaf, one in values.items()}, {leaf: 0 * one for leaf, one in values.items()}, odd]
    return Case(text, values, others)


# --- matrices ----------------------------------------------------------------------------------------------

FIRST = ("P @ W", "outer(c, r)", "c[:, None]*r", "P @ W + r", "(P @ W)*c[:, None]", "c[:, None]**2 - r")
THEN = (
    "X - max(X, axis=1, keepdims=True)", "X - min(X, axis=1, keepdims=True)", "X*c[:, None]", "X + r", "exp(-X**2)", "softmax(X)",
    "where(X > c[:, None], X, Y)", "maximum(X, Y)", "minimum(X, c[:, None])", "abs(X)", "-X", "clamp(X, -0.5, 0.5)", "X*Y",
    "X == max(X, axis=1, keepdims=True)", "X*sum(Y, axis=1, keepdims=True)", "where(X > 0, X, 0)", "where(X > 0, 0, Y)", "X @ V",
    "X*X[:, :1]", "X[:, ::-1]", "X[::-1]", "sign(X)", "(X > 0)*Y", "X**3", "X - logsumexp(X, axis=1)[:, None]", "cumsum(X, axis=1)",
)  # fmt: skip
LAST = (
    "sum(X*Y)", "sum(max(X, axis=1)*c)", "sum(min(X, axis=1))", "sum(logsumexp(X, axis=1))", "sum(sum(X, axis=0)**2)",
    "sum((X @ V)**2)", "sum((X.T @ Y)**2)", "sum(max(X, axis=0)*r)", "sum(X[1:]*Y[:-1])", "sum(sort(X, axis=1)*Y)", "logsumexp(X)",
)  # fmt: skip


def matrices(seed: int) -> Case:
    """Steps on matrices that are made in the script."""
    random = Random(seed)
    rows, inner, columns = (
        random.choice((130, 257, 500, 1000)),
        random.choice((1, 2, 3)),
        random.choice((1, 2, 3, 5, 8, 16)),
    )
    names: list[str] = []
    lines = []

    def named(form: str) -> str:
        return re.sub(r"\b[XY]\b", lambda _: random.choice(names[-4:]), form)

    for at in range(random.randint(2, 7)):
        lines.append(f"g{at} = {named(random.choice(THEN if at > 1 else FIRST))}")
        names.append(f"g{at}")
    terms = [named(random.choice(LAST)) for _ in range(random.randint(1, 3))]
    lines.append(" + ".join([*terms, "0.1*(sum(P) + sum(W) + sum(c) + sum(r) + sum(V))"]))
    shapes = {"P": (rows, inner), "W": (inner, columns), "V": (columns, columns), "c": (rows,), "r": (columns,)}
    draw = np.random.default_rng(seed)
    values, *others = [{name: _laid_out(draw, shape) for name, shape in shapes.items()} for _ in range(3)]
    return Case("\n".join(lines), values, others)


def _laid_out(draw: Any, shape: tuple[int, ...]) -> Any:
    """Numbers, some of them odd or equal, somewhere in memory."""
    made = draw.uniform(-1, 1, shape)
    how = draw.choice(["plain", "plain", "ties", "zeros", "equal", "odd", "large"])
    if how == "ties":
        made = np.round(2 * made) / 2
    elif how == "zeros":
        made[draw.random(shape) < 0.3] = -0.0
    elif how == "equal":
        made[...] = 0.25
    elif how == "odd":
        made.flat[draw.integers(made.size)] = draw.choice([np.nan, np.inf, -np.inf])
    elif how == "large":
        made *= 300
    where = draw.choice(["here", "columns", "backwards", "gaps", "held"])
    if where == "columns":
        return np.asfortranarray(made)
    if where == "backwards":
        return np.ascontiguousarray(made[::-1])[::-1]
    if where == "gaps":
        room = np.full([2 * size + 1 for size in shape], np.nan)
        part = tuple([slice(0, 2 * size, 2) for size in shape])
        room[part] = made
        return room[part]
    made.flags.writeable = where != "held"
    return made
