"""lenstronomy 1.14.2, Dipole.hessian: the deflection field has no potential, and its Jacobian is not symmetric."""

import numpy as np
from lenstronomy.LensModel.Profiles.dipole import Dipole

lens = Dipole()
OPTIONS = {"com_x": 0.1, "com_y": 0.2, "phi_dipole": 0.4, "coupling": 0.3}


def f(p):
    return np.array(lens.derivatives(p[0], p[1], **OPTIONS))


def df(p):
    return np.array(lens.hessian(p[0], p[1], **OPTIONS)).reshape(2, 2)


def corrected(p):
    c, s = np.cos(OPTIONS["phi_dipole"]), np.sin(OPTIONS["phi_dipole"])
    turn = np.array([[c, s], [-s, c]])
    x, y = turn @ (np.asarray(p) - [OPTIONS["com_x"], OPTIONS["com_y"]])
    r = np.hypot(x, y)
    return turn.T @ (OPTIONS["coupling"] / r**3 * np.array([[y**2, -x * y], [0, 0]])) @ turn
