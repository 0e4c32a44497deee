"""Functions and runs of other libraries, read as if they ran on our tensors: NumPy, PyTorch and JAX.

`calls/` calls functions and their derivatives. `graphs/` reads what they computed as programs, which `checks/` judges
and `gradcli.record` returns. `runs/` records the run of a Python file, with adaptors in `libraries/`.
Nothing here judges or imports a framework: its caller has.
"""

from __future__ import annotations
