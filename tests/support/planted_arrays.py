"""Functions of one number go in, scripts about arrays and hand-written rules with one planted mistake come out.

Each row writes a loss, its right gradient and a wrong one by hand, for twenty functions and their textbook derivatives.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

# f(u) and f'(u)
FUNCTIONS = [
    ("sin(u)", "cos(u)"),
    ("cos(u)", "(-sin(u))"),
    ("exp(u)", "exp(u)"),
    ("tanh(u)", "(1 - tanh(u)**2)"),
    ("sigmoid(u)", "(sigmoid(u)*(1 - sigmoid(u)))"),
    ("softplus(u)", "sigmoid(u)"),
    ("(u)**2", "(2*(u))"),
    ("(u)**3", "(3*(u)**2)"),
    ("sinh(u)", "cosh(u)"),
    ("atan(u)", "(1/(1 + (u)**2))"),
    ("log(1 + (u)**2)", "(2*(u)/(1 + (u)**2))"),
    ("exp(-(u)**2)", "(-2*(u)*exp(-(u)**2))"),
    ("sqrt(1 + (u)**2)", "((u)/sqrt(1 + (u)**2))"),
    ("(u)*sin(u)", "(sin(u) + (u)*cos(u))"),
    ("erf(u)", "(2/sqrt(pi)*exp(-(u)**2))"),
    ("1/(2 + (u)**2)", "(-2*(u)/(2 + (u)**2)**2)"),
    ("(u)*exp(u)", "((1 + (u))*exp(u))"),
    ("cosh(u)", "sinh(u)"),
    ("sin(u)**2", "(2*sin(u)*cos(u))"),
    ("(u)**4/4 + (u)", "((u)**3 + 1)"),
]


class Case(NamedTuple):
    """A script with wrong claims: its last line is a claim about the leaf x."""

    kind: str
    script: str


def at(function: str, u: str) -> str:
    """A function at an argument."""
    return f"({function.replace('(u)', f'({u})')})"


VECTOR = "x = [0.3, -0.8, 1.1, 0.6]\n"
THREE = "x = [0.3, -0.8, 1.1]\n"
MATRIX = "const A = [[0.4, -0.7, 1.2], [0.9, 0.3, -0.5], [-1.1, 0.8, 0.6]]\n"
WEIGHTS = "const c = [0.7, -0.4, 1.3]\n"


def arrays() -> Iterator[Case]:
    """Mistakes that only arrays allow."""
    for f, d in FUNCTIONS:
        fx, dx = at(f, "x"), at(d, "x")
        yield Case("mean forgotten", f"{VECTOR}L = mean({fx}) + sum(x**3)\nassert grad(L, x) == {dx} + 3*x**2")
        yield Case("mean for a whole", f"{VECTOR}L = mean({fx})\nassert grad(L, x) == {dx}")
        inner = at(d, "A + x")
        yield Case("missing sum", f"{THREE}{MATRIX}L = sum({at(f, 'A + x')})\nassert grad(L, x) == {inner}[0]")
        inner = at(d, "A @ x")
        yield Case("transposed operand", f"{THREE}{MATRIX}L = sum({at(f, 'A @ x')})\nassert grad(L, x) == A @ {inner}")
        q = f"c*{at(d, 'softmax(x)')}"
        loss = f"{THREE}{WEIGHTS}p = softmax(x)\nL = sum(c*{at(f, 'softmax(x)')})\n"
        yield Case("softmax", f"{loss}assert grad(L, x) == {q}")
        yield Case("softmax", f"{loss}assert grad(L, x) == p*(1 - p)*{q}")
        yield Case("one entry", f"{THREE}L = sum({fx})\nassert grad(L, x) == {dx}*[1, 3, 1]")
        yield Case("order", f"{THREE}{WEIGHTS}L = sum(c*{fx})\nassert grad(L, x) == (c*{dx})[::-1]")
        yield Case("held constant", f"{VECTOR}s = sum(x**2)\nL = sum({fx}/s)\nassert grad(L, x) == {dx}/s")
        branch = f"{THREE}L = sum(where(x > 0, {fx}, x**5 - 3*x))\n"
        yield Case("branch", f"{branch}assert grad(L, x) == {dx}")
        yield Case("term of both", f"{VECTOR}L = x @ {fx}\nassert grad(L, x) == x*{dx}")
        yield Case("chain of a matrix", f"{THREE}{MATRIX}L = sum({at(f, 'A @ x')})\nassert grad(L, x) == {inner}")


def rules() -> Iterator[Case]:
    """Hand-written backward rules with a mistake: f(u, v) = F(u)*exp(v) + u*v."""
    for f, d in FUNCTIONS:
        value, slope = at(f, "a"), at(d, "a")
        head = f"a = 0.7\nb = -0.4\ndef f(a, b): return {value}*exp(b) + a*b\n"
        one, other = f"({slope}*exp(b) + b)", f"({value}*exp(b) + a)"
        tail = "\nf(a, b) + sin(a)"
        yield Case("swapped cotangents", f"{head}def f.vjp(a, b, ct): return (ct*{other}, ct*{one}){tail}")
        yield Case("cotangent forgotten", f"{head}def f.vjp(a, b, ct): return ({one}, ct*{other}){tail}")
        term = f"({slope}*exp(b))"
        yield Case("term dropped", f"{head}def f.vjp(a, b, ct): return (ct*{term}, ct*{other}){tail}")
        yield Case("wrong sign", f"{head}def f.vjp(a, b, ct): return (-ct*{one}, ct*{other}){tail}")
