"""greeks-package 1.2.2, vanna: the sign, and a discount factor too many."""

import numpy as np
import pandas
from greeks_package import core
from scipy.stats import norm

STRIKE, DAYS, RATE, VOLATILITY, SPOT = 1.0, 146, 0.05, 0.3, 0.95  # 0.4 years


def values(spot=SPOT, years=DAYS / 365, sigma=VOLATILITY):
    """d1, d2 and the other terms of the formulas."""
    d1, d2 = core.compute_d1_d2(spot, STRIKE, years, RATE, sigma)
    return d1, d2, sigma * np.sqrt(years)


def f(sigma):
    return float(norm.cdf(values(sigma=sigma)[0]))


def df(sigma):
    """What the package gives; the price of the share comes from the internet, and so from here instead."""
    spot, years, sigma = SPOT, DAYS / 365, sigma
    core._get_spot = lambda ticker: spot
    row = pandas.Series({"strike": STRIKE, "Days to Expiry": 365 * years, "impliedVolatility": sigma})
    return float(core.vanna(row, "", r=RATE))


def corrected(sigma):
    d1, d2, _ = values(sigma=sigma)
    return float(-norm.pdf(d1) * d2 / sigma)
