"""Programs that the device's plans are tested and measured with: a script and a point, small enough for an emulation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np


class Program(NamedTuple):
    """A script, and a function of a random generator that gives its point."""

    name: str
    script: str
    point: Callable[[np.random.Generator], dict[str, Any]]


def _normal(**shapes: Any) -> Callable[[np.random.Generator], dict[str, Any]]:
    return lambda random: {name: random.normal(size=shape) for name, shape in shapes.items()}


def _positive(**shapes: Any) -> Callable[[np.random.Generator], dict[str, Any]]:
    return lambda random: {name: random.uniform(0.5, 2.0, size=shape) for name, shape in shapes.items()}


GMM = """
Q = exp(q)
d = (x - m)*Q
sum(logsumexp(log(w) - sum(d**2, axis=-1)/2, axis=-1)) - sum(Q**2)/2
"""
PROGRAMS = [
    Program("rosenbrock", "sum(100*(x[1:]-x[:-1]**2)**2+(1-x[:-1])**2)", _normal(x=1003)),
    Program("rosenbrock in pieces", "sum(100*(x[1:]-x[:-1]**2)**2+(1-x[:-1])**2)", _normal(x=9001)),
    Program("logsumexp of rows", "sum(logsumexp(A, axis=-1))", _normal(A=(50, 40))),
    Program("logsumexp of columns", "sum(logsumexp(A, axis=0)**2)", _normal(A=(70, 45))),
    Program("logsumexp of all", "logsumexp(x)", _normal(x=9000)),
    Program("softmax", "sum(softmax(A@w)*B)", _normal(A=(50, 40), w=(40, 10), B=(50, 10))),
    Program("sine beside cosine", "sum(concatenate([x, sin(x[::-1]) + y*cos(x[::-1])])**2)", _normal(x=200, y=())),
    Program("positions", "sum(x[[0, 3, 3, 1]]**2*A[[1, 1], :][0, :4])", _normal(x=90, A=(3, 7))),
    Program("extremes", "sum(max(A, axis=0)*min(A, axis=0)*exp(sum(A, axis=0)/100))", _normal(A=(200, 70))),
    Program("extremes of all", "max(A)*min(A) + sum(abs(A))", _normal(A=(200, 70))),
    Program("axes around", "sum(sum(A, axis=(0, 2))**2)", _normal(A=(13, 7, 50))),
    Program("axes inside", "sum(sum(A, axis=1)**2 * B)", _normal(A=(6, 90, 5), B=(6, 5))),
    Program("long rows", "sum(sum(A**2, axis=1)**3)", _normal(A=(3, 9000))),
    Program("many columns", "sum(sum(A**2, axis=0)**3)", _normal(A=(90, 33))),
    Program("transposed", "sum(sum(A.T*B, axis=0)**2) + det(C)", _normal(A=(30, 20), B=(20, 30), C=(3, 3))),
    Program(
        "network", "sum(tanh(tanh(X@W1 + b1)@W2 + b2)**2)", _normal(X=(60, 20), W1=(20, 12), b1=12, W2=(12, 5), b2=5)
    ),
    Program(
        "mean and variance",
        "sum((A - mean(A, axis=-1, keepdims=True))**2 / (1 + var(A, axis=-1, keepdims=True)))",
        _normal(A=(30, 50)),
    ),
    Program("stencil of two axes", "sum((A[1:, 1:] + A[:-1, :-1] - A[1:, :-1]*A[:-1, 1:])**2)", _normal(A=(31, 33))),
    Program("steps of two", "sum(x[::2]**2*x[1::2]) + sum(x[::-3])", _normal(x=200)),
    Program(
        "mixture",
        GMM,
        lambda random: {
            "x": random.normal(size=(40, 1, 3)),
            "m": random.normal(size=(5, 3)),
            "q": random.normal(size=(5, 3)) / 9,
            "w": random.uniform(0.5, 2, size=5),
        },
    ),
    Program("reshaped", "sum(reshape(A, [6, 10])[1:, 2:]**3) + sum(reshape(A.T, [60])[:50]**2)", _normal(A=(4, 15))),
    Program("choices", "sum(where(A > 0, sin(A), exp(A)) * relu(A) + sign(A)*floor(A))", _normal(A=(17, 19))),
    Program("points as one array", "sum(sin(x*y)*exp(-x) + log(1 + y**2)*x)", _positive(x=5000, y=5000)),
    Program("one number", "x**3*y + sum(z)", lambda random: {"x": 1.5, "y": -2.0, "z": random.normal(size=3)}),
    Program("chain", "y = u\nfor i in range(60):\n    y = y + 0.1*sin(y)\nsum(y**2)", _normal(u=300)),
    Program("heavy, repeated", "sum(exp(sin(x)*cos(x)*tanh(x)) * A)", _normal(x=40, A=(30, 40))),
]
