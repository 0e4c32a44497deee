"""greeks-package 1.2.2, color: a factor of one term is missing."""

import numpy as np
import pandas
from greeks_package import core
from scipy.stats import norm

STRIKE, DAYS, RATE, VOLATILITY, SPOT = 1.0, 146, 0.05, 0.3, 0.95  # 0.4 years


def values(spot=SPOT, years=DAYS / 365, sigma=VOLATILITY):
    """d1, d2 and the other terms of the formulas."""
    d1, d2 = core.compute_d1_d2(spot, STRIKE, years, RATE, sigma)
    return d1, d2, sigma * np.sqrt(years)


def f(years):
    """Minus gamma: color is its change as time passes, when the time that is left gets shorter."""
    d1, _, spread = values(years=years)
    return -float(norm.pdf(d1) / (SPOT * spread))


def df(years):
    """What the package gives; the price of the share comes from the internet, and so from here instead."""
    spot, years, sigma = SPOT, years, VOLATILITY
    core._get_spot = lambda ticker: spot
    row = pandas.Series({"strike": STRIKE, "Days to Expiry": 365 * years, "impliedVolatility": sigma})
    return float(core.color(row, "", r=RATE))


def corrected(years):
    d1, d2, spread = values(years=years)
    inner = 1 + d1 * (2 * RATE * years - d2 * spread) / spread
    return float(norm.pdf(d1) / (2 * SPOT * years * spread) * inner)
