"""statsmodels 0.15.0, ZeroInflatedPoisson.hessian: the block that mixes both groups of parameters is 0."""

import numpy as np
from statsmodels.discrete.count_model import ZeroInflatedPoisson

rng = np.random.default_rng(0)
X = np.column_stack([np.ones(60), rng.normal(size=60)])
mu = np.exp(X @ [0.3, 0.4])
y = rng.negative_binomial(2, 2 / (2 + mu)) * (rng.random(60) > 0.3)
model = ZeroInflatedPoisson(y, X)


def f(params):
    return model.score(params)


def df(params):
    return model.hessian(params)


def corrected(params):
    found, k = model.hessian(params), model.k_inflate
    w, zero = model.model_infl.predict(params[:k]), y == 0
    of_count = np.exp(model.model_main.loglikeobs(params[k:]))
    part = -w * (1 - w) * of_count / np.exp(2 * model.loglikeobs(params)) * zero
    found[:k, k:] = model.exog_infl.T @ (part[:, None] * model.model_main.score_obs(params[k:]))
    found[k:, :k] = found[:k, k:].T
    return found
