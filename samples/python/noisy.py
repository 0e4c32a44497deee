# ruff: noqa: E501
"""Functions whose values carry noise: an iteration that stops early, single precision, random numbers.

The first one has stairs: between two of them its slope is another one, and no difference says which one is meant.
The slope of the last one is buried in its values, and is proved by its graph.

$ gradcli check --python samples/python/noisy.py:early_stop --grad samples/python/noisy.py:root_slope --at x=2.5
INCONCLUSIVE
$ gradcli check --python samples/python/noisy.py:single --grad samples/python/noisy.py:single_slope --at "x=[0.3,-1.2,0.8]"
AGREES
$ gradcli check --python samples/python/noisy.py:dice --grad samples/python/noisy.py:dice_slope --at "x=[0.3,-1.2]"
INCONCLUSIVE
$ gradcli check --python samples/python/noisy.py:buried --grad samples/python/noisy.py:buried_slope --at x=1.5
PROVED
"""

from __future__ import annotations

import numpy as np


def early_stop(x):
    """The square root by bisection, to eight digits."""
    low, high = 0.0, max(1.0, x)
    while high - low > 1e-8:
        middle = (low + high) / 2
        low, high = (middle, high) if middle * middle < x else (low, middle)
    return (low + high) / 2


def root_slope(x):
    """The slope of the square root."""
    return 0.5 / np.sqrt(x)


def single(x):
    """A sum of cubes in float32."""
    return np.sum(x.astype(np.float32) ** 3)


def single_slope(x):
    """Its gradient."""
    return 3 * x**2


def dice(x):
    """A sum of squares, drowned in noise."""
    return np.sum(x**2) + np.random.default_rng().normal()


def dice_slope(x):
    """The gradient of what is below the noise."""
    return 2 * x


def buried(x):
    """A small square beside a large constant: float64 has no digits left for it."""
    return 1e12 + 1e-6 * x**2


def buried_slope(x):
    """Right, though the values do not show it."""
    return 2e-6 * x
