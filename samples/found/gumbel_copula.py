"""statsmodels 0.15.0, TransfGumbel.deriv2: a negative number to a fractional power."""

import numpy as np
from statsmodels.distributions.copula.transforms import TransfGumbel

generator = TransfGumbel()
THETA = 1.6


def f(t):
    return float(generator.deriv(t, THETA))


def df(t):
    return float(np.real(generator.deriv2(t, THETA)))


def corrected(t):
    log = -np.log(t)
    return THETA * log ** (THETA - 2) * (THETA - 1 + log) / t**2
