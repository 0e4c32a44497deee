# At a jump the differences see a cliff, the rule sees a plain.
import torch
from torch.autograd import gradcheck

for at in (0.5, 1.0):
    x = torch.tensor([at], dtype=torch.float64, requires_grad=True)
    print(at, gradcheck(lambda t: torch.floor(t) + t, (x,), raise_exception=False))
