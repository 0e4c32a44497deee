"""Derivatives as formulas: `deriving.py` finds and checks them; begin there.

`derivation_steps.py` has the lines that lead to one, `self_contained.py` the function that `derive --emit` writes, and
`quiz.py` the questions. `gradient_text.py` and `local_partials.py` give formulas at a point.
"""
