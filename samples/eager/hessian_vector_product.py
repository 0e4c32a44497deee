# H v without H: differentiate the product of the gradient and v.
import torch

x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
v = torch.tensor([1.0, 0.0, -1.0])
y = x[0] * x[1] + x[1] * x[2] ** 2
(g,) = torch.autograd.grad(y, x, create_graph=True)
(hv,) = torch.autograd.grad((g * v).sum(), x)
print(g.detach())
print(hv)
