# ruff: noqa: E501
"""What SciPy's optimisers take: a function with its `jac`, and a function that returns both at once.

Source: Rosenbrock, An automatic method for finding the greatest or least value of a function (1960).

    $ gradcli check --python samples/python/optimiser.py:rosenbrock --grad samples/python/optimiser.py:slope --at "x=[1.3,0.7,0.8]"
    PROVED
    $ gradcli check --python samples/python/optimiser.py:both --at "x=[1.3,0.7,0.8]"
    PROVED
    $ gradcli check --python samples/python/optimiser.py:residuals --grad samples/python/optimiser.py:jacobian --at "x=[1.3,0.7]"
    PROVED
    $ gradcli check --python samples/python/optimiser.py:both_wrong --at "x=[1.3,0.7,0.8]"
    DISAGREES exactly
"""

from __future__ import annotations

import numpy as np


def rosenbrock(x):
    """The valley."""
    return np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def slope(x):
    """Its gradient, as `minimize(rosenbrock, x0, jac=slope)` takes it."""
    found = np.zeros_like(x)
    found[:-1] = -400 * x[:-1] * (x[1:] - x[:-1] ** 2) - 2 * (1 - x[:-1])
    found[1:] += 200 * (x[1:] - x[:-1] ** 2)
    return found


def both(x):
    """Value and gradient, as `minimize(both, x0, jac=True)` takes them."""
    return rosenbrock(x), slope(x)


def both_wrong(x):
    """Wrong: `=` where `+=` was meant, so inner entries lose their first part."""
    found = np.zeros_like(x)
    found[:-1] = -400 * x[:-1] * (x[1:] - x[:-1] ** 2) - 2 * (1 - x[:-1])
    found[1:] = 200 * (x[1:] - x[:-1] ** 2)
    return rosenbrock(x), found


def residuals(x):
    """What `least_squares(residuals, x0, jac=jacobian)` squares."""
    return np.array([10 * (x[1] - x[0] ** 2), 1 - x[0]])


def jacobian(x):
    """A row for each residual."""
    return np.array([[-20 * x[0], 10.0], [-1.0, 0.0]])
