"""Reasons why a gradient is None, zero, NaN, too small or too large."""
