# ruff: noqa: E501
"""Softmax: a Jacobian, a cross entropy over rows, and sums over the wrong axis.

Source: Bridle, Probabilistic interpretation of feedforward classification network outputs (1990).

    $ gradcli check --python samples/python/softmax.py:softmax --grad samples/python/softmax.py:jacobian --at "z=[0.1,-0.4,1.2]"
    PROVED
    $ gradcli check --python samples/python/softmax.py:softmax --grad samples/python/softmax.py:diagonal_only --at "z=[0.1,-0.4,1.2]"
    DISAGREES exactly
    $ gradcli check --python samples/python/softmax.py:cross_entropy --grad samples/python/softmax.py:slope --at "logits=[[0.1,-0.4,1.2],[2,0.3,-1]]"
    PROVED
    $ gradcli check --python samples/python/softmax.py:cross_entropy --grad samples/python/softmax.py:wrong_axis --at "logits=[[0.1,-0.4,1.2],[2,0.3,-1]]"
    DISAGREES exactly
"""

from __future__ import annotations

import numpy as np

LABELS = np.array([2, 0])


def softmax(z):
    """Probabilities."""
    e = np.exp(z - z.max())
    return e / e.sum()


def jacobian(z):
    """The derivative of entry i by entry j, in row i."""
    p = softmax(z)
    return np.diag(p) - np.outer(p, p)


def diagonal_only(z):
    """Wrong: every probability depends on every logit."""
    p = softmax(z)
    return np.diag(p * (1 - p))


def cross_entropy(logits):
    """Minus the log probability of the labels, summed over the rows."""
    shifted = logits - logits.max(axis=1, keepdims=True)
    return np.sum(np.log(np.exp(shifted).sum(axis=1)) - shifted[np.arange(len(logits)), LABELS])


def slope(logits):
    """Probabilities minus one at the label."""
    e = np.exp(logits - logits.max(axis=1, keepdims=True))
    p = e / e.sum(axis=1, keepdims=True)
    p[np.arange(len(logits)), LABELS] -= 1
    return p


def wrong_axis(logits):
    """Wrong: normalised down the columns."""
    e = np.exp(logits - logits.max(axis=1, keepdims=True))
    p = e / e.sum(axis=0, keepdims=True)
    p[np.arange(len(logits)), LABELS] -= 1
    return p
