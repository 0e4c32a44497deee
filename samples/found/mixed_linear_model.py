"""statsmodels 0.15.0, MixedLM.score: at a negative root of the variance the score has the wrong sign."""

import numpy as np
from statsmodels.regression.mixed_linear_model import MixedLM

rng = np.random.default_rng(0)
groups = np.repeat(np.arange(12), 5)
X = np.column_stack([np.ones(60), rng.normal(size=60)])
y = X @ [1.0, 2.0] + rng.normal(size=60) + 0.3 * rng.normal(size=12)[groups]
model = MixedLM(y, X, groups)
model.reml = False
model.cov_pen = None
model.fe_pen = None
model._freepat = None


def f(root):
    return float(model.loglike(np.atleast_1d(root), profile_fe=True))


def df(root):
    return model.score(np.atleast_1d(root), profile_fe=True)[0]


def corrected(root):
    return np.sign(root) * df(abs(root))  # the log-likelihood reads the square of the root
