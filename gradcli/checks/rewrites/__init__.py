"""Rewrites of programs whose floats are poor, proved equal and measured to be better."""

from gradcli.checks.rewrites.proved import Spelling, better

__all__ = ["Spelling", "better"]
