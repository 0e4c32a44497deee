# ruff: noqa: E501
"""Gradients in a test suite: `assert_gradient` fails with the report as its message. Run it with pytest.

$ gradcli check --python samples/python/testing_example.py:spring --grad samples/python/testing_example.py:force --at "x=[0.5,2],k=3"
PROVED
"""

from __future__ import annotations

import numpy as np

from gradcli.testing import assert_gradient


def spring(x, k):
    """The energy of springs of stiffness k."""
    return 0.5 * k * np.sum(x**2)


def force(x, k):
    """Its gradient, by name."""
    return {"x": k * x, "k": 0.5 * np.sum(x**2)}


def test_force_is_the_gradient_of_the_energy():
    """What a test looks like."""
    assert_gradient(spring, force, at={"x": np.array([0.5, 2.0]), "k": 3.0})
