"""pycop 0.0.13, the density of the joe copula: a sign in its last factor."""

import numpy as np
from pycop import archimedean

copula = archimedean(family="joe")
PARAMETERS = [1.7]
V = 0.6


def f(u):
    """The conditional distribution dC/dv, by a complex step in the distribution function of the library."""
    return float(np.imag(copula.get_cdf(u, V + 1e-30j, PARAMETERS)) / 1e-30)


def df(u):
    return float(copula.get_pdf(u, V, PARAMETERS))


def corrected(u):
    theta = PARAMETERS[0]
    a, b = (1 - u) ** theta, (1 - V) ** theta
    outer = (a + b - a * b) ** (1 / theta - 2) * ((1 - u) * (1 - V)) ** (theta - 1)
    return outer * (theta - 1 + a + b - a * b)
