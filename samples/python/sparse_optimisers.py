# ruff: noqa: E501
"""Sparse derivatives of scripts in SciPy's optimisers: a Hessian for `minimize`, a Jacobian for `least_squares`.

They find the minimum of the chain of Rosenbrock in three ways, none of which makes a dense matrix:
`by_trust_region(np.full(1000, 1.2))`.

$ gradcli check --python samples/python/sparse_optimisers.py:value --grad samples/python/sparse_optimisers.py:slope --at "x=[1.2,0.8,1.1]"
AGREES
"""

from __future__ import annotations

from scipy.optimize import least_squares, minimize

import gradcli

chain = gradcli.compile("sum(100*(x[1:] - x[:-1]**2)**2 + (1 - x[:-1])**2)")
residuals = gradcli.compile("concat([10*(x[1:] - x[:-1]**2), 1 - x[:-1]])")


def value(x):
    return chain(x=x)


def slope(x):
    return chain.value_and_grad(x=x)[1]["x"]


def curvature(x):
    return chain.hessian(sparse=True, x=x).hessian["x"]["x"]


def slopes(x):
    return residuals.jacobian(sparse=True, x=x).jacobian["x"]


def by_trust_region(start):
    """Its Hessian is a sparse array at every step."""
    return minimize(value, start, jac=slope, hess=curvature, method="trust-constr").x


def by_least_squares(start):
    """Its Jacobian is a sparse array at every step."""
    return least_squares(lambda x: residuals(x=x), start, jac=slopes).x


def by_differences(start):
    """SciPy's own finite differences, which take few steps because they know the pattern."""
    return least_squares(lambda x: residuals(x=x), start, jac_sparsity=slopes(start)).x
