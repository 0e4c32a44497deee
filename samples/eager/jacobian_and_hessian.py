# Whole matrices of derivatives.
import torch
from torch.autograd.functional import hessian, jacobian


def f(x):
    return torch.stack([x[0] * x[1], x[0] + x[1], x[1] ** 3])


x = torch.tensor([2.0, 1.0])
print(jacobian(f, x))
print(hessian(lambda t: (t[0] ** 2) * t[1], x))
