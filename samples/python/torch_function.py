"""PyTorch: custom functions with hand-written backward passes. Needs PyTorch.

$ gradcli check --python samples/python/torch_function.py:Swish --at "x=[-1.5,0.2,2]"
PROVED
$ gradcli check --python samples/python/torch_function.py:WrongSwish --at "x=[-1.5,0.2,2]"
DISAGREES exactly: consistent with a mistake at `x*sigmoid(x)`
$ gradcli check --python samples/python/torch_function.py:energy --at "x=[-1.5,0.2,2]"
PROVED
"""

from __future__ import annotations

import torch


class Swish(torch.autograd.Function):
    """x * sigmoid(x)."""

    @staticmethod
    def forward(ctx, x):
        """The value."""
        ctx.save_for_backward(x)
        return x * torch.sigmoid(x)

    @staticmethod
    def backward(ctx, ct):
        """The cotangent times the slope."""
        (x,) = ctx.saved_tensors
        s = torch.sigmoid(x)
        return ct * (s + x * s * (1 - s))


class WrongSwish(Swish):
    """Wrong: the second term of the product rule is missing."""

    @staticmethod
    def backward(ctx, ct):
        """Only one half of it."""
        (x,) = ctx.saved_tensors
        return ct * torch.sigmoid(x)


def energy(x):
    """A function of tensors: its gradient is PyTorch's own."""
    return torch.sum(torch.cos(x) * x**2)
