# ruff: noqa: E501
"""RMS normalisation over the last axis, with a right backward and one that took a sum for a mean.

Source: Zhang and Sennrich, Root mean square layer normalization (2019).

    $ gradcli check --python samples/python/rms_norm.py:rms_norm --grad samples/python/rms_norm.py:backward --at "x=randn(4,5)"
    PROVED
    $ gradcli check --python samples/python/rms_norm.py:rms_norm --grad samples/python/rms_norm.py:summed_backward --at "x=randn(4,5)"
    DISAGREES exactly: the factor 1/5 is missing
"""

from __future__ import annotations

import numpy as np


def rms_norm(x):
    """Every row divided by the root of its mean square."""
    return x / np.sqrt((x * x).mean(axis=-1, keepdims=True) + 1e-5)


def backward(x, dy):
    """The cotangent of x, from that of the result."""
    r = 1 / np.sqrt((x * x).mean(axis=-1, keepdims=True) + 1e-5)
    return r * dy - r**3 * x * (x * dy).mean(axis=-1, keepdims=True)


def summed_backward(x, dy):
    """Wrong: a sum in place of a mean."""
    r = 1 / np.sqrt((x * x).mean(axis=-1, keepdims=True) + 1e-5)
    return r * dy - r**3 * x * (x * dy).sum(axis=-1, keepdims=True)
