# The backward of a Function forgets its second argument.
import torch


class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, factor):
        ctx.save_for_backward(x, factor)
        return x * factor

    @staticmethod
    def backward(ctx, g):
        x, factor = ctx.saved_tensors
        return g * factor, None


x = torch.tensor([1.0, 2.0], requires_grad=True)
factor = torch.tensor(3.0, requires_grad=True)
Scale.apply(x, factor).sum().backward()
print(x.grad, factor.grad)
