"""Shapes and sizes that a script leaves open: assumed, guessed and fitted; ranks of free names, for formulas."""
