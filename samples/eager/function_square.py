# A custom operation: forward, and the rule for backward.
import torch


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 2 * x * g


x = torch.tensor([1.0, -3.0], requires_grad=True)
y = Square.apply(x)
print(y, type(y.grad_fn).__name__)
y.sum().backward()
print(x.grad)
