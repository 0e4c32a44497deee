"""Functions of a step as expansions with enclosed coefficients: power series, and log-Puiseux ones on one side.

A complex number is two of these. `series_fields` lets primitives' own rules run on them. No derivative rule is read.
"""
