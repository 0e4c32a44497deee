"""Derives formulas: gradients with their conditions, derivations step by step, and quizzes; begin in `deriving.py`."""
