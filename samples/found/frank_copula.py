"""statsmodels 0.15.0, TransfFrank.deriv and deriv2: the derivatives of the generator have the wrong sign."""

from statsmodels.distributions.copula.transforms import TransfFrank

generator = TransfFrank()
THETA = 2.3


def f(t):
    return float(generator.evaluate(t, THETA))


def df(t):
    return float(generator.deriv(t, THETA))


def corrected(t):
    return -df(t)
