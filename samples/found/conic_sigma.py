"""prysm 0.21.1, off_axis_conic_sigma_der: a sign at the conic constant."""

import numpy as np
from prysm.experimental.raytracing import surfaces

C, KAPPA, THETA, SHIFT = 0.3, -1.0, 0.7, 0.8


def f(r):
    return 1 / float(surfaces.off_axis_conic_sigma(C, KAPPA, r, THETA, SHIFT))


def df(r):
    return float(surfaces.off_axis_conic_sigma_der(C, KAPPA, r, THETA, SHIFT)[0])


def corrected(r):
    rho = r * r + 2 * SHIFT * r * np.cos(THETA) + SHIFT**2
    by_r = 2 * r + 2 * SHIFT * np.cos(THETA)
    above, below = np.sqrt(1 - KAPPA * C**2 * rho), np.sqrt(1 - (1 + KAPPA) * C**2 * rho)
    return by_r * C**2 / 2 * ((1 + KAPPA) * above / below**3 - KAPPA / (above * below))
