"""astropy 8.0.2, Hermite2D.evaluate: the function is wrong for degree 2 and above in y, its derivative is right."""

import numpy as np
from astropy.modeling.models import Hermite2D

model = Hermite2D(1, 2)
X, Y = np.array([0.3]), np.array([0.4])
ENTRY = model.param_names.index("c0_2")


def f(c):
    """The value by the coefficient of H_2(y)."""
    return float(model.evaluate(X, Y, *(c * np.eye(6)[ENTRY])[:, None])[0])


def df(c):
    return float(np.ravel(model.fit_deriv(X, Y, *np.zeros(6)))[ENTRY])


def corrected_f(c):
    return float(c * (4 * Y[0] ** 2 - 2))


def corrected(c):
    return float(4 * Y[0] ** 2 - 2)
