"""pyglmnet 1.1, the second derivative of the softplus loss by one coefficient: a square is missing."""

import numpy as np

np.float = float  # the package reads it, and NumPy has it no more
from pyglmnet.pyglmnet import _gradhess_logloss_1d  # noqa: E402

rng = np.random.default_rng(0)
X = rng.normal(size=40)
Y = rng.poisson(2.0, 40).astype(float)
REST = 0.3 + 0.2 * rng.normal(size=40)  # what the other coefficients contribute


def f(b):
    return float(_gradhess_logloss_1d("softplus", X, Y, REST + b * X, 2.0)[0])


def df(b):
    return float(_gradhess_logloss_1d("softplus", X, Y, REST + b * X, 2.0)[1])


def corrected(b):
    z = REST + b * X
    s, mu = 1 / (1 + np.exp(-z)), np.log1p(np.exp(z))
    return float(np.mean((s * (1 - s) - Y * (s * (1 - s) / mu - (s / mu) ** 2)) * X**2))
