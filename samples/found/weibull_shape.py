"""GPy 1.15.0, Weibull.d3logpdf_dlink3_dr: the derivative of a formula that is there no more."""

import numpy as np
from GPy.likelihoods import Weibull

LINK, Y = 1.3, 0.8
LIKELIHOOD = Weibull()


def f(r):
    LIKELIHOOD.r = r
    return LIKELIHOOD.d3logpdf_dlink3(np.array([[LINK]]), np.array([[Y]])).item()


def df(r):
    LIKELIHOOD.r = r
    return LIKELIHOOD.d3logpdf_dlink3_dr(np.array([[LINK]]), np.array([[Y]])).item()


def corrected(r):
    return 6 * Y**r * np.log(Y) / LINK**4
