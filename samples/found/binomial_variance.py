"""statsmodels 0.14.6, Binomial(n).deriv: the derivative of the variance function forgets n. Fixed in 0.15.0."""

from statsmodels.genmod.families.varfuncs import Binomial

variance = Binomial(n=5)


def f(mu):
    return float(variance(mu))


def df(mu):
    return float(variance.deriv(mu))


def corrected(mu):
    return 1 - 2 * mu / 5
