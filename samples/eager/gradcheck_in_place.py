# gradcheck fails for a function that changes its input in place: differences see another function.
import torch
from torch.autograd import gradcheck


def leaky(t):
    out = t * t
    with torch.no_grad():
        t.add_(0.125)
    return out


def clean(t):
    t = t.clone()
    t.mul_(3)
    return t * t


for f in (leaky, clean):
    x = torch.tensor([0.5, 1.5], dtype=torch.float64, requires_grad=True)
    try:
        print(f.__name__, gradcheck(f, (x,), raise_exception=False))
    except RuntimeError as problem:
        print(f.__name__, type(problem).__name__)
