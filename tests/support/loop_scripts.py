"""A seed goes in, a script with loops as people write them comes out, and values for its leaves.

Nests of loops, triangles of indices, sliding windows, arrays that grow, functions, branches on the number of the iteration,
derivatives inside loops, products of matrices, rows against matrices.
"""

from __future__ import annotations

from random import Random
from typing import Any, NamedTuple

import numpy as np

N = 3  # entries of a vector, rows and columns of a matrix
MOST = 24  # iterations
ODD = (np.nan, np.inf, -np.inf, -0.0, 0.0, 1e200, -1e-310)
EARLY = "c = (0.5*u + 0.3*w - 0.6*u + 0.9*w*x[0] + 0.2 + 0.1*W + 0.4*z[0] + 1*X[0, 0] + 2*u + 3*w)*0.7"

ATOMS = (
    "h", "g", "w", "x[t]", "x[t + 1]", "x[n - t]", "x[2*t]", "u", "k[mod(t, 4)]*h", "X[:, t]", "ys[t]", "ys[n - t]", "h*g", "(e*w)",
)  # fmt: skip
FORMS = (
    "tanh({} + {})", "0.5*({} - {})", "sin({}*{})", "{}/(2 + ({})**2)", "0.3*{} + 0.2*{}", "maximum({}, {})", "minimum({}, 0.4*({}))",
    "where({} > {}, 0.5*h, -0.3*g)", "abs({}) - {}", "W @ ({} + {})", "cell({}, {}, t)", "gate({}, {})", "softmax({})*{}",
    "cumsum({})*0.2 - {}", "({} + {})[::-1]", "outer({}, {})[1]*0.4", "where({} > 0, {}, 0)", "relu({}) - 0.1*{}",
)  # fmt: skip
SUMS = (
    "sum({}*{})", "tanh(sum({} - {}))", "max({} + {})", "({}) @ ({})*0.3", "mean(({})*({}))*z[t]", "norm({} + 2)*z[n - t]*mean({})",
    "sum(x[t:t + 3])*z[t] + sum({}*{})", "logsumexp({} + {})", "sum(where({} > 0, {}, 0))", "0.2*sum((P @ ({}))*({}))",
)  # fmt: skip

PIECES = {  # what stands in one place of a script
    "branch": ("t > 3", "mod(t, 2) == 0", "t == 5", "t >= n - 2", "t < 2"),
    "else": ("sin(a + b)", "tanh(b*a)", "a"),
    "out": ("s + sum(h*g)", "sum(h) + e + s", "sum(g**2) + s*e", "sum(P) + s + sum(h)", "sum(ys**2)*0.1 + s + sum(g)"),
    "number": ("0.5*e", "tanh(e)", "e*z[t]"),
    "matrix": (
        "0.3*(P @ W)", "P*x[t]*0.9", "0.5*P.T + 0.1*outer(h, g)", "tanh(P + x[t][:, None])", "where(P > 0.1, P, 0.2*W)",
    ),
    "iterations": ("range(n)", "range(n - 1, -1, -1)", "range(0, n)"),
    "inner iterations": ("range(8)", "range(t)", "range(n - t)", "range(9)", "range(3)"),
    "inner": ("h = tanh(h*x[j] + w)", "g = 0.5*g + x[j]*h", "s = s + sum(x[j]*h)*z[t]", "e = 0.5*e + z[j]*z[t]"),
    "pair": (
        "s = s + sum(x[t]*x[j])*z[t - j]", "e = tanh(e + z[t]*z[j])", "g = g + 0.1*x[t]*x[j]",
        "s = s + sum(tanh(ys[t] - ys[j]))",
    ),
    "pairs": ("t", "t + 1", "n"),
    "matrices": (
        "0.5*P + 0.1*x[t]", "P @ (0.4*W + 0.1*eye(3)) - 0.1*outer(x[t], h)", "0.4*tanh(P + P.T) + 0.2*W", "P/(1 + sum(P**2))",
    ),
    "of matrices": ("h = P @ h", "h = tanh(h @ P)", "s = s + sum(P*outer(x[t], g))", "s = s + trace(P)", "h = P[1] + P[:, 2]"),
    "loss": ("sum((tanh(W @ {p}) - w)**2)", "sum(x[0]*{p}**2) + sum(sin({p}))", "sum(exp({p}*u))*0.2"),
    "row": ("tanh(g*x[t] + w)", "g*0.9 - 0.1*x[t]", "sin(x[n - t])", "W @ g", "where(g > 0, x[t], 0.5*g)"),
}  # fmt: skip


class Program(NamedTuple):
    """A script and the values of its leaves."""

    text: str
    values: dict[str, Any]


class Script:
    """The lines of one script while they are written."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.iterations = self.random.choice((8, 9, 9, 10, 10, 12, 12, 15))
        self.lines = [f"const n = {self.iterations}", "const k = [0.5, -1, 2, 0.25]"]
        self.copies = 0

    def text(self) -> str:
        random = self.random
        if random.random() < 0.7:
            self.lines.append(EARLY)
        self.lines += [
            "def cell(a, b, t):", f"    if {self._one('branch')}:", "        return tanh(a*b)", "    else:", f"        return {self._one('else')}",
            "def gate(a, b):", "    r = sigmoid(a - b)", "    return r*a + (1 - r)*b",
            "h, g, e, s, P = u, tanh(w), 0.3*z[0], 0, 0.5*W", "ys = reshape(u, (1, 3))",
        ]  # fmt: skip
        self._grown()
        for _ in range(random.choice((1, 1, 2))):
            kinds = (self._nested, self._triangle, self._matrices, self._descent, self._grown, self._iterations)
            random.choice((self._plain, self._plain, *kinds))()
        rest = "0.01*(sum(x) + sum(z) + sum(W) + sum(X) + sum(u*w) + sum(P) + sum(h) + e)"
        return "\n".join([*self.lines, f"{self._one('out')} + {rest}"])

    def _one(self, name: str) -> str:
        return self.random.choice(PIECES[name])

    def _value(self, forms: tuple[str, ...] = FORMS, atoms: tuple[str, ...] = ATOMS) -> str:
        return self.random.choice(forms).format(self.random.choice(atoms), self.random.choice(atoms))

    def _statement(self, before: str = "    ") -> list[str]:
        random = self.random
        kind = random.randint(0, 7)
        if kind < 3:
            return [f"{before}{random.choice('hg')} = {self._value()}"]
        if kind == 3:
            return [f"{before}h, g = {self._value()}, {self._value()}"]
        if kind == 4:
            return [f"{before}s = s + {self._value(SUMS)}"]
        if kind == 5:
            return [f"{before}e = {self._one('number')} + 0.1*{self._value(SUMS)}"]
        if kind == 6:
            head = f"{before}if mod(t, {random.randint(2, 6)}) == {random.randint(0, 1)}:"
            return [head, f"{before}    h = {self._value()}"]
        return [f"{before}P = {self._one('matrix')}"]

    def _plain(self) -> None:
        self.lines.append(f"for t in {self._one('iterations')}:")
        for _ in range(self.random.randint(1, 4)):
            self.lines += self._statement()

    def _nested(self) -> None:
        inner = self._one("inner iterations")
        self.lines += ["for t in range(n):", *self._statement(), f"    for j in {inner}:"]
        self.lines.append(f"        {self._one('inner')}")
        self.lines += self._statement()

    def _triangle(self) -> None:
        body = self._one("pair")
        head = [f"for t in range({min(self.iterations, 10)}):", f"    for j in range({self._one('pairs')}):"]
        self.lines += [*head, f"        {body}"]

    def _matrices(self) -> None:
        self.lines += ["for t in range(n):", f"    P = {self._one('matrices')}", f"    {self._one('of matrices')}"]

    def _descent(self) -> None:
        """Steps of a minimisation, with derivatives of the language: each point has a name of its own."""
        self.copies += 1
        name = f"p{self.copies}_"
        loss = self._one("loss")
        self.lines.append(f"{name}0 = 0.5*h")
        for t in range(self.random.choice((9, 10, 12))):
            self.lines.append(f"{name}{t + 1} = {name}{t} - 0.1*grad({loss.format(p=f'{name}{t}')}, {name}{t})")
        self.lines.append(f"h = {name}{t + 1}")

    def _grown(self) -> None:
        """An array with a row more in each iteration."""
        self.lines += ["ys = reshape(g, (1, 3))", "for t in range(n + 1):", f"    g = {self._one('row')}"]
        self.lines.append("    ys = concatenate((ys, reshape(g, (1, 3))))")

    def _iterations(self) -> None:
        """What was some iterations before, handed on by names."""
        value = self._value((FORMS[0], FORMS[1], FORMS[3], FORMS[7]), ("h", "r", "q", "x[t]", "w"))
        self.lines += ["q, r = w, u*w", "for t in range(n):", f"    q, r, h = h, q, {value}"]


def values_of(seed: int) -> dict[str, Any]:
    random = np.random.default_rng([3, seed])
    return {
        "x": random.uniform(-1, 1, (2 * MOST + 4, N)), "X": random.uniform(-1, 1, (N, MOST + 4)),
        "z": random.uniform(-1, 1, MOST + 1), "u": random.uniform(-1, 1, N), "w": random.uniform(-1, 1, N),
        "W": random.uniform(-0.5, 0.5, (N, N)),
    }  # fmt: skip


def odd(seed: int, values: dict[str, Any]) -> dict[str, Any]:
    """The point with an odd number in some places."""
    random = np.random.default_rng([4, seed])
    found = {name: np.array(value) for name, value in values.items()}
    for name in random.choice(sorted(found), 2):
        found[name].flat[random.integers(found[name].size)] = random.choice(ODD)
    return found


def make(seed: int) -> Program:
    """The script of a seed."""
    return Program(Script(seed).text(), values_of(seed))
