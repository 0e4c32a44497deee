"""Results as documents: the content that is shown for each kind of result, independent of the format.

Begin with `calculus.py` for values and derivatives, and with `verdicts.py` for the reports of `check`.
"""
