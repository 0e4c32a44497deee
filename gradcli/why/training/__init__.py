"""Reasons why training goes wrong although each gradient is right: optimizers, sums, losses, memory."""
