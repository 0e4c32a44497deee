# Inside a block that switches recording off, it can be switched on again.
import torch

x = torch.tensor(2.0, requires_grad=True)
with torch.no_grad():
    a = x * 2
    with torch.enable_grad():
        b = x * 2
        print(torch.is_grad_enabled())
    print(torch.is_grad_enabled())
print(a.requires_grad, b.requires_grad, torch.is_grad_enabled())
b.backward()
print(x.grad)
