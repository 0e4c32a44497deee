"""Numbers that move with a step: power series, log-Puiseux expansions on one side of a point, and complex ones of both.

`power_series` begins with what they have in common. Their coefficients are enclosures, and no derivative rule is read.
"""
