"""Reads what a function of another library computed as a program: one table of operations, one reader a library.

`operations.py` is the table. `aten_graph.py`, `jaxpr_graph.py` and `numpy_graph.py` read with it; `traced_rule.py` puts
forward and backward together.
"""
