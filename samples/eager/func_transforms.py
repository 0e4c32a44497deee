# Derivatives of functions rather than of tensors.
import torch
from torch.func import grad, hessian, jacrev


def f(x):
    return (x**3).sum()


x = torch.tensor([1.0, 2.0])
print(grad(f)(x))
print(jacrev(lambda t: t * t)(x))
print(hessian(f)(x))
