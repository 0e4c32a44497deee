"""statsmodels 0.15.0, NegativeBinomial.hessian before a fit: by alpha, while the score is by the logarithm of alpha."""

import numpy as np
from statsmodels.discrete.discrete_model import NegativeBinomial

rng = np.random.default_rng(0)
X = np.column_stack([np.ones(60), rng.normal(size=60)])
mu = np.exp(X @ [0.3, 0.4])
y = rng.negative_binomial(2, 2 / (2 + mu))
model = NegativeBinomial(y, X)


def f(params):
    return model.score(params)


def df(params):
    return model.hessian(params)


def corrected(params):
    found, alpha = model.hessian(params), np.exp(params[-1])
    found[-1, :] *= alpha
    found[:, -1] *= alpha
    found[-1, -1] += model.score(params)[-1]  # d2/d(log a)2 = a**2 d2/da2 + a d/da
    return found
