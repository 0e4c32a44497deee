"""Programs whose floats are poor, written another way, proved equal and measured to be better."""

from gradcli.checks.rewrites.proved import Spelling, better

__all__ = ["Spelling", "better"]
