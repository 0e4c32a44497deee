"""pycop 0.0.13, the density of the BB2 copula: its parameters have another order, and a bracket is misplaced."""

import numpy as np
from pycop import archimedean

copula = archimedean(family="BB2")
PARAMETERS = [0.6, 1.8]
V = 0.6


def f(u):
    """The conditional distribution dC/dv, by a complex step in the distribution function of the library."""
    return float(np.imag(copula.get_cdf(u, V + 1e-30j, PARAMETERS)) / 1e-30)


def df(u):
    return float(copula.get_pdf(u, V, PARAMETERS))


def corrected(u):
    delta, theta = PARAMETERS
    x, y = (np.exp(delta * (w**-theta - 1)) for w in (u, V))
    log = np.log(x + y - 1)
    outer = (1 + log / delta) ** (-2 - 1 / theta) * (x + y - 1) ** -2 * x * y * (u * V) ** (-theta - 1)
    return outer * (1 + theta + theta * delta + theta * log)
