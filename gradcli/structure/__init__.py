"""Which entries of a result depend on which entries of an input, and what that saves: patterns, colours, few sweeps.

Patterns are read from `entries` rules, movements and definitions, never from derivative rules. A pattern may be too
large, never too small: an unknown operation mixes everything, and two random directions confirm a pattern before use.
"""
