"""Explains gradients of recorded runs (`recording/runs/`): why they are None, zero, NaN or huge."""
