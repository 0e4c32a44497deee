"""statsmodels 0.15.0, marginal effects of TruncatedLFPoisson: the derivative of another mean than the predicted one."""

import numpy as np
from statsmodels.discrete.truncated_model import TruncatedLFPoisson

PARAMS = np.array([0.2, 0.5])
model = TruncatedLFPoisson(np.array([1, 2, 1, 3]), np.array([[1, 0.1], [1, 0.4], [1, -0.3], [1, 0.9]]))


def f(x):
    return float(model.predict(PARAMS, exog=np.array([[1.0, x]]))[0])


def df(x):
    return float(model._derivative_exog(PARAMS, exog=np.array([[1.0, x]]))[0, 1])


def corrected(x):
    mu = np.exp(PARAMS @ [1, x])
    seen = -np.expm1(-mu)  # the probability of a count above 0
    return float(PARAMS[1] * mu / seen * (1 - mu * np.exp(-mu) / seen))
