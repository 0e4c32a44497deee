"""Loops and comprehensions: `loops.py` decides whether a loop becomes a node; begin there.

`turns.py` traces one turn, `comprehensions.py` computes all turns at once, `ranges.py` counts the turns, and
`repeated.py` looks up calls that turns repeat.
"""
