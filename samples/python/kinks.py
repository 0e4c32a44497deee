# ruff: noqa: E501
"""Kinks and jumps: the hinge loss at the margin, a norm at zero, a step.

$ gradcli check --python samples/python/kinks.py:hinge --grad samples/python/kinks.py:hinge_slope --at "w=[0.2,-0.5]"
PROVED
$ gradcli check --python samples/python/kinks.py:hinge --grad samples/python/kinks.py:hinge_slope --at "w=[0.5,0.25]"
KINK
$ gradcli check --python samples/python/kinks.py:hinge --grad samples/python/kinks.py:hinge_slope --at "w=[0.5,0.25]" --allow kink
KINK (passes: the claim lies between the slopes)
$ gradcli check --python samples/python/kinks.py:root --grad samples/python/kinks.py:root_slope --at x=0
BOUNDARY
$ gradcli check --python samples/python/kinks.py:step --grad samples/python/kinks.py:step_slope --at x=1
DISCONTINUOUS
$ gradcli check --python samples/python/kinks.py:root --grad samples/python/kinks.py:root_slope --at x=-1
UNDEFINED
"""

from __future__ import annotations

import numpy as np

X = np.array([[1.0, 2.0], [-0.5, 1.0]])
Y = np.array([1.0, -1.0])


def hinge(w):
    """The hinge loss; its margin is reached where y*(X @ w) is 1."""
    return np.sum(np.maximum(0.0, 1.0 - Y * (X @ w)))


def hinge_slope(w):
    """Its gradient off the margin, and one of the possible slopes on it."""
    active = (1.0 - Y * (X @ w)) > 0
    return -(Y * active) @ X


def root(x):
    """A square root."""
    return np.sqrt(x)


def root_slope(x):
    """Its slope."""
    return 0.5 / np.sqrt(x)


def step(x):
    """A line with a jump at every whole number."""
    return x + np.floor(x)


def step_slope(x):
    """The slope of the line."""
    return 1.0
