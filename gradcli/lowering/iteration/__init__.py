"""Loops and comprehensions: `loops.py` decides whether a loop becomes a node; begin there.

`iterations.py` traces one iteration, `comprehensions.py` computes all iterations at once, `ranges.py` counts the
iterations, and `repeated.py` looks up calls that iterations repeat.
"""
