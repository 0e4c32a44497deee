"""Sparsity of Jacobians: patterns, colourings, and the few sweeps, or differences, that compute all entries.

Patterns are read from `entries` rules, movements and definitions, never from derivative rules. A pattern may be too
large, never too small: an unknown operation mixes everything, and two random directions confirm a pattern before use.
"""
