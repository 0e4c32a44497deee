# At a jump, finite differences are huge, while the rule gives the slope on one side.
import torch
from torch.autograd import gradcheck

for at in (0.5, 1.0):
    x = torch.tensor([at], dtype=torch.float64, requires_grad=True)
    print(at, gradcheck(lambda t: torch.floor(t) + t, (x,), raise_exception=False))
