"""The operations of `torch` and the methods of its tensors, one file for each kind.

Begin with `table.py`, which says what a row of the table of operations holds, and `elementwise.py`, whose rows are the
simplest. `install.py` makes functions, methods, operators and `_` forms from the rows.
"""
