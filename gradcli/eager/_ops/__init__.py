"""The operations of `torch` and the methods of its tensors, one file for each kind.

Begin with `table.py`, which defines the rows of the table of operations, and `elementwise.py`, whose rows are the
simplest. `install.py` makes functions, methods, operators and `_` forms from the rows.
"""
