"""Loops and comprehensions: `loops.py` decides whether a loop becomes a node; begin there.

`traced_iterations.py` traces one iteration, `comprehensions.py` computes all iterations at once, and `ranges.py` counts
the iterations.
"""
