"""Finds which entries of a Jacobian may differ from 0, and computes them in few sweeps.

`patterns.py` finds the entries, `compressed.py` the sweeps.
"""
