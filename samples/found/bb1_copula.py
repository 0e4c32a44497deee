"""pycop 0.0.13, the density of the BB1 copula: its parameters have another order, and a bracket is misplaced."""

import numpy as np
from pycop import archimedean

copula = archimedean(family="BB1")
PARAMETERS = [1.7, 1.8]
V = 0.6


def f(u):
    """The conditional distribution dC/dv, by a complex step in the distribution function of the library."""
    return float(np.imag(copula.get_cdf(u, V + 1e-30j, PARAMETERS)) / 1e-30)


def df(u):
    return float(copula.get_pdf(u, V, PARAMETERS))


def corrected_f(u):
    """The same of the distribution function with its bracket: that of the library is not u at v = 1."""
    delta, theta = PARAMETERS
    x, y = ((w**-theta - 1) ** delta for w in (u, V + 1e-30j))
    return float(np.imag((1 + (x + y) ** (1 / delta)) ** (-1 / theta)) / 1e-30)


def corrected(u):
    return float(copula.get_pdf(u, V, PARAMETERS[::-1]))
