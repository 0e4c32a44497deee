"""A custom Function inside a larger function: the whole is judged, and the backward for itself, with its line.

$ gradcli check --python samples/python/function_inside.py:loss --at "w=[0.3,0.7]"
PROVED
$ gradcli check --python samples/python/function_inside.py:wrong_loss --at "w=[0.3,0.7]"
DISAGREES exactly
"""

from __future__ import annotations

import gradcli.eager as torch

DATA = torch.tensor([[1.0, 2.0], [0.5, -1.0]], dtype=torch.float64)


class LogCosh(torch.autograd.Function):
    """log(cosh(x)), a smooth absolute value."""

    @staticmethod
    def forward(ctx, x):
        """The value."""
        ctx.save_for_backward(x)
        return torch.log(torch.cosh(x))

    @staticmethod
    def backward(ctx, ct):
        """The slope is tanh(x)."""
        (x,) = ctx.saved_tensors
        return ct * torch.tanh(x)


class WrongLogCosh(LogCosh):
    """Wrong: differentiated once too often."""

    @staticmethod
    def backward(ctx, ct):
        """The slope of tanh stands beside it."""
        (x,) = ctx.saved_tensors
        return ct * torch.tanh(x) * (1 - torch.tanh(x) ** 2)


def loss(w):
    """A regression with a penalty."""
    return LogCosh.apply(DATA @ w - 1).mean() + 0.1 * (w**2).sum()


def wrong_loss(w):
    """The same with the wrong rule: the report names it, and line 39."""
    return WrongLogCosh.apply(DATA @ w - 1).mean() + 0.1 * (w**2).sum()
