# gradcheck detects a backward that is too large by a factor of two.
import torch
from torch.autograd import Function, gradcheck


class Wrong(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 4 * x * g


x = torch.tensor([1.0, 2.0], dtype=torch.float64, requires_grad=True)
print(gradcheck(Wrong.apply, (x,), raise_exception=False))
try:
    gradcheck(Wrong.apply, (x,))
except RuntimeError as problem:
    print("raised", "acobian" in str(problem))
