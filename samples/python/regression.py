# ruff: noqa: E501
"""Ridge regression with a gradient worked out by hand, and the three ways in which it usually goes wrong.

Source: Hoerl and Kennard, Ridge regression (1970); the gradient is the normal equations.

    $ gradcli check --python samples/python/regression.py:loss --grad samples/python/regression.py:slope --at "w=[0.5,-1,2]"
    PROVED
    $ gradcli check --python samples/python/regression.py:loss --grad samples/python/regression.py:without_mean --at "w=[0.5,-1,2]"
    DISAGREES exactly: the factor 1/4 is missing
    $ gradcli check --python samples/python/regression.py:loss --grad samples/python/regression.py:turned --at "w=[0.5,-1,2]"
    DISAGREES exactly: the right gradient is minus the claim
    $ gradcli check --python samples/python/regression.py:loss --grad samples/python/regression.py:one_slip --at "w=[0.5,-1,2]"
    DISAGREES exactly: the claim is right except in [0]
"""

from __future__ import annotations

import numpy as np

X = np.array([[1.0, 0.2, -0.5], [1.0, 1.4, 0.3], [1.0, -0.7, 1.1], [1.0, 0.9, 2.0]])
Y = np.array([0.4, 1.9, -0.3, 2.5])


def loss(w):
    """Mean squared error."""
    return np.mean((X @ w - Y) ** 2)


def slope(w):
    """Its gradient."""
    return 2 * X.T @ (X @ w - Y) / len(Y)


def without_mean(w):
    """Wrong: the loss is a mean, this is the gradient of the sum."""
    return 2 * X.T @ (X @ w - Y)


def turned(w):
    """Wrong sign: target minus prediction."""
    return 2 * X.T @ (Y - X @ w) / len(Y)


def one_slip(w):
    """Wrong in one entry: the intercept is treated apart, and forgotten."""
    found = slope(w)
    found[0] = 0.0
    return found
