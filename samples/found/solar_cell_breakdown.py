"""pvlib 0.16.1, bishop88(gradients=True) with a breakdown term: the inner derivative is missing."""

import numpy as np
from pvlib.singlediode import bishop88

CELL = (7.0, 1e-9, 0.3, 400.0, 1.5)  # photocurrent, saturation current, resistances, thermal voltage
FACTOR, VOLTAGE, EXPONENT = 1e-3, -5.5, 3.28


def at(v, gradients):
    options = {"breakdown_factor": FACTOR, "breakdown_voltage": VOLTAGE, "breakdown_exp": EXPONENT}
    return bishop88(np.array([v]), *CELL, **options, gradients=gradients)


def f(v):
    """The current by the voltage of the diode."""
    return float(at(v, False)[0][0])


def df(v):
    return float(at(v, True)[3][0])


def corrected(v):
    _, saturation, _, shunt, thermal = CELL
    base = 1 - v / VOLTAGE
    breakdown = FACTOR / shunt * (base**-EXPONENT - v * EXPONENT * base ** (-EXPONENT - 1) * -1 / VOLTAGE)
    return float(-saturation * np.exp(v / thermal) / thermal - 1 / shunt - breakdown)
