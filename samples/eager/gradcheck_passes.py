# Finite differences against rules, in double precision.
import torch
from torch.autograd import gradcheck, gradgradcheck

x = torch.tensor([0.3, -1.2, 2.0], dtype=torch.float64, requires_grad=True)
print(gradcheck(lambda t: (torch.sin(t) * t).sum(), (x,)))
print(gradgradcheck(lambda t: (torch.sin(t) * t).sum(), (x,)))
