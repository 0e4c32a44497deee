# Dual numbers carry a tangent: a Jacobian times a vector, without a backward pass.
import torch
import torch.autograd.forward_ad as forward_ad
from torch.autograd.functional import jvp


def f(x):
    return torch.stack([x[0] * x[1], x[1] ** 2])


x = torch.tensor([3.0, 2.0])
v = torch.tensor([1.0, 0.5])
with forward_ad.dual_level():
    dual = forward_ad.make_dual(x, v)
    value, tangent = forward_ad.unpack_dual(f(dual))
    print(value, tangent)
print(jvp(f, x, v)[1])
