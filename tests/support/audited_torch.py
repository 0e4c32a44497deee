"""A program with Functions of PyTorch, one of them wrong: tests/audit/test_audit.py audits it."""

import torch


class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, n):
        ctx.save_for_backward(x)
        ctx.n = n
        return x**n

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * x ** (ctx.n - 1), None


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**2

    @staticmethod
    def backward(ctx, g):
        return 2 * g * ctx.saved_tensors[0]


class Quiet(Square):
    pass


class Away(Square):
    pass


class Step(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return (x > 0).to(x.dtype)

    @staticmethod
    def backward(ctx, g):
        return g


class Reversed(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, g):
        return -0.7 * g


torch.manual_seed(0)
x = torch.randn(4, requires_grad=True)
(Cube.apply(x, 3) + Square.apply(x) + Step.apply(x) + Reversed.apply(x)).sum().backward()
Away.apply(torch.empty(4, device="meta", requires_grad=True))
with torch.no_grad():
    Quiet.apply(x)
