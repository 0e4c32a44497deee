"""What all tests share: SymPy's plain integers, as in the oracle's own process, and reasons for skipped backends."""

from __future__ import annotations

import os

import pytest

os.environ.setdefault("SYMPY_GROUND_TYPES", "python")  # python-flint would change them


@pytest.fixture(autouse=True)
def flint_precision() -> object:
    """The precision of balls is global to the process: each test leaves it as it was."""
    from flint import ctx

    before = ctx.prec
    yield
    ctx.prec = before
