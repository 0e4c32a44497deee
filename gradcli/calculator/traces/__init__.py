"""Traces and drawings: `tracing.py` records the forward and the backward pass; begin there.

`folding.py` joins nodes that nobody wrote with those beside them, `shown_iterations.py` shows iterations of long
loops, and `drawing.py` makes the nodes of a drawing.
"""
