"""statsmodels 0.15.0, NegativeBinomialP.hessian: the mixed row is wrong where p is neither 1 nor 2."""

import numpy as np
from scipy.special import digamma, polygamma
from statsmodels.discrete.discrete_model import NegativeBinomialP

rng = np.random.default_rng(0)
X = np.column_stack([np.ones(60), rng.normal(size=60)])
mu = np.exp(X @ [0.3, 0.4])
y = rng.negative_binomial(2, 2 / (2 + mu))
P = 1.5
model = NegativeBinomialP(y, X, p=P)


def f(params):
    return model.score(params)


def df(params):
    return model.hessian(params)


def corrected(params):
    found = model.hessian(params)
    alpha, mean, p = params[-1], model.predict(params[:-1]), 2 - model.parameterization
    a1 = mean**p / alpha
    a2, a3, a4 = mean + a1, y + a1, p * a1 / mean
    part = (1 + a4) * (1 - a3 / a2) / a2 - p * (np.log(a1 / a2) + digamma(a3) - digamma(a1) + 2) / mean
    part += p / mean * (a3 + a1) / a2  # the library has a3 + p*a1
    part -= a4 * (polygamma(1, a3) - polygamma(1, a1))
    row = (X.T * mean * a1 * part / alpha).sum(1)
    found[-1, :-1] = found[:-1, -1] = row
    return found
