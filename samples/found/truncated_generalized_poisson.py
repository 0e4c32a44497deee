"""statsmodels 0.15.0, TruncatedLFGeneralizedPoisson.score: the truncated part is that of p=1, whatever p is."""

import numpy as np
from statsmodels.discrete.discrete_model import GeneralizedPoisson
from statsmodels.discrete.truncated_model import TruncatedLFGeneralizedPoisson

rng = np.random.default_rng(0)
X = np.column_stack([np.ones(60), rng.normal(size=60)])
mu = np.exp(X @ [0.3, 0.4])
y = rng.negative_binomial(2, 2 / (2 + mu))
X, y = X[y > 0], y[y > 0]
model = TruncatedLFGeneralizedPoisson(y, X)  # p=2 is the default


def f(params):
    return float(model.loglike(params))


def df(params):
    return model.score(params)


def corrected(params):
    zero = GeneralizedPoisson(np.zeros_like(y), X, p=2)
    odds = np.exp(zero.loglikeobs(params))
    truncated = zero.score_obs(params) * (odds / (1 - odds))[:, None]
    return (model.model_main.score_obs(params) + truncated).sum(0)
