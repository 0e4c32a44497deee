"""Results as documents: what is shown of each kind of result, whatever the format.

Begin with `calculus.py` for values and derivatives, and with `verdicts.py` for the reports of `check`.
"""
