# The straight-through estimator as a Function: sign forward, a clipped identity backward.
import torch


class Binarize(torch.autograd.Function):
    @staticmethod
    def forward(ctx, w):
        ctx.save_for_backward(w)
        return torch.sign(w)

    @staticmethod
    def backward(ctx, g):
        (w,) = ctx.saved_tensors
        return g * (w.abs() <= 1)


w = torch.tensor([0.5, -0.25, 2.0], requires_grad=True)
x = torch.tensor([1.0, 2.0, 3.0])
(Binarize.apply(w) * x).sum().backward()
print(w.grad)
