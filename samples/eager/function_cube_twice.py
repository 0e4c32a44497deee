# A rule written in tensor operations can be differentiated again.
import torch
from torch.autograd import Function


class Cube(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * 3 * x**2


x = torch.tensor(2.0, requires_grad=True)
(first,) = torch.autograd.grad(Cube.apply(x), x, create_graph=True)
(second,) = torch.autograd.grad(first, x)
print(first.item(), second.item())
