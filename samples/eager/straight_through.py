# Rounding has slope zero; the straight-through estimator passes the gradient as if it were the identity.
import torch

x = torch.tensor([0.2, 1.7, -2.4], requires_grad=True)
torch.round(x).sum().backward()
print(x.grad)
x.grad = None
y = x + (torch.round(x) - x).detach()
(y * y).sum().backward()
print(y.detach(), x.grad)
