"""pycop 0.0.13, the density of the galambos copula: a bracket is missing."""

import numpy as np
from pycop import archimedean

copula = archimedean(family="galambos")
PARAMETERS = [1.7]
V = 0.6


def f(u):
    """The conditional distribution dC/dv, by a complex step in the distribution function of the library."""
    return float(np.imag(copula.get_cdf(u, V + 1e-30j, PARAMETERS)) / 1e-30)


def df(u):
    return float(copula.get_pdf(u, V, PARAMETERS))


def corrected(u):
    theta, x, y = PARAMETERS[0], -np.log(u), -np.log(V)
    total = x**-theta + y**-theta
    first = 1 - total ** (-1 - 1 / theta) * (x ** (-theta - 1) + y ** (-theta - 1))
    second = total ** (-2 - 1 / theta) * (x * y) ** (-theta - 1) * (1 + theta + total ** (-1 / theta))
    return copula.get_cdf(u, V, PARAMETERS) / (u * V) * (first + second)
