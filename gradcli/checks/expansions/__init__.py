"""Functions of a step as expansions with enclosed coefficients: power series, real and complex, and log-Puiseux ones.

`series_fields` lets primitives' own rules run on them. No derivative rule is read.
"""
