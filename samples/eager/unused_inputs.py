# grad() requires that each input was used, unless you pass allow_unused=True.
import torch

x = torch.tensor(2.0, requires_grad=True)
z = torch.tensor(1.0, requires_grad=True)
y = x * x
try:
    torch.autograd.grad(y, (x, z), retain_graph=True)
except RuntimeError as problem:
    print(type(problem).__name__, "allow_unused" in str(problem))
print(torch.autograd.grad(y, (x, z), allow_unused=True))
