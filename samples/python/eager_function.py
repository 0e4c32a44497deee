"""gradcli's own tensors: the same classes as PyTorch's, on gradcli's rules; their graphs can be recorded and proved.

$ gradcli check --python samples/python/eager_function.py:Cube --at "x=[-1.5,0.2,2]"
PROVED
$ gradcli check --python samples/python/eager_function.py:WrongCube --at "x=[-1.5,0.2,2]"
DISAGREES exactly: a mistake in the claim
$ gradcli check --python samples/python/eager_function.py:energy --at "x=[-1.5,0.2,2],scale=0.7"
PROVED
"""

from __future__ import annotations

import gradcli.eager as torch


class Cube(torch.autograd.Function):
    """x ** 3."""

    @staticmethod
    def forward(ctx, x):
        """The value."""
        ctx.save_for_backward(x)
        return x * x * x

    @staticmethod
    def backward(ctx, ct):
        """The cotangent times the slope."""
        (x,) = ctx.saved_tensors
        return ct * 3 * x * x


class WrongCube(Cube):
    """Wrong: the exponent was not lowered."""

    @staticmethod
    def backward(ctx, ct):
        """Too steep."""
        (x,) = ctx.saved_tensors
        return ct * 3 * x * x * x


def energy(x, scale):
    """A function of tensors and a number; both are differentiated."""
    return torch.sum(torch.cos(x) * x**2) * scale
