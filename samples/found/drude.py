"""astropy 8.0.2, Drude1D.fit_deriv by x_0: an exponent and a factor."""

import numpy as np
from astropy.modeling.models import Drude1D

X = 1.5


def f(p):
    return float(Drude1D.evaluate(np.array([X]), *p)[0])


def df(p):
    return np.array(Drude1D.fit_deriv(np.array([X]), *p)).reshape(3)


def corrected(p):
    a, x_0, w = p
    u = X / x_0 - x_0 / X
    below = u**2 + (w / x_0) ** 2
    by_x0 = -2 * w**2 / x_0**3 / below - (w / x_0) ** 2 * (2 * u * (-X / x_0**2 - 1 / X) - 2 * w**2 / x_0**3) / below**2
    by_w = 2 * w / x_0**2 / below - (w / x_0) ** 2 * 2 * w / x_0**2 / below**2
    return np.array([(w / x_0) ** 2 / below, a * by_x0, a * by_w])
