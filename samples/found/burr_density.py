"""chaospy 4.3.21, Burr.pdf: the density is not the derivative of the distribution function."""

import chaospy
import numpy as np

ALPHA, KAPPA = 5.0, 2.0
distribution = chaospy.Burr(ALPHA, KAPPA)


def f(x):
    return float(distribution.cdf(x))


def df(x):
    return float(distribution.pdf(x))


def corrected(x):
    return ALPHA * KAPPA * x ** (ALPHA - 1) / np.power(1 + x**ALPHA, KAPPA + 1)
