"""A program with primitives of autograd and marked gradients, some of them wrong: tests/audit/test_audit.py audits it."""

import sys

import numpy as np

import gradcli

SCALE = np.array([1.0, 2.0, 3.0])


def energy(x, k=1.0):
    return 0.5 * k * np.sum(SCALE * x**2)


@gradcli.gradient_of(energy)
def force(x, k=1.0):
    return -k * SCALE * x  # a force, not a gradient


@gradcli.gradient_of(energy)
def slope(x, k=1.0):
    return k * SCALE * x


force(np.array([0.5, 1.5, -1.0]), k=2.0)
for k in range(10):
    slope(np.array([0.5, 1.5, -1.0]) + k)

if "autograd" in sys.argv:
    import autograd.numpy as anp
    from autograd import grad
    from autograd.extend import defvjp, primitive

    @primitive
    def logsumexp(x):
        return anp.log(anp.sum(anp.exp(x)))

    defvjp(logsumexp, lambda ans, x: lambda g: g * anp.exp(x - ans))

    @primitive
    def product(x, y):
        return anp.sum(x * y**2)

    defvjp(product, lambda ans, x, y: lambda g: g * y**2, lambda ans, x, y: lambda g: g * x * y)
    at = np.array([0.3, 0.4, 1.2])
    grad(logsumexp)(at)
    grad(lambda x: product(x, 2 * x + 1))(at)
