"""Calls functions of NumPy, PyTorch and JAX, and the derivatives that belong to them; begin in `box.py`."""
