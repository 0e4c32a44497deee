"""Reasons why a backward, or the file itself, stopped."""
