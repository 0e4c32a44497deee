"""What all tests share: SymPy's plain integers, as in the oracle's own process."""

from __future__ import annotations

import os

os.environ.setdefault("SYMPY_GROUND_TYPES", "python")  # python-flint would change them
