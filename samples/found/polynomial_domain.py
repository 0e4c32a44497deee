"""astropy 8.0.2, non-linear fits of Polynomial1D with a domain: the Jacobian is that of another variable."""

import numpy as np
from astropy.modeling.fitting import TRFLSQFitter
from astropy.modeling.models import Polynomial1D

DOMAIN = [1.0, 6.0]
X, Y = np.array([2.0]), np.array([0.5])
fitter, model = TRFLSQFitter(), Polynomial1D(2, domain=DOMAIN)


def f(c):
    """The residual that the fitter makes small."""
    return float(fitter.objective_function(np.array(c), model, None, X, Y)[0])


def df(c):
    return np.ravel(fitter._wrap_deriv(np.array(c), model, None, X, Y))


def corrected(c):
    u = 2 * (X[0] - DOMAIN[0]) / (DOMAIN[1] - DOMAIN[0]) - 1
    return np.array([1.0, u, u**2])
