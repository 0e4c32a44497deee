# A loss that contains a gradient.
import torch

w = torch.tensor([2.0, -1.0], requires_grad=True)
x = torch.tensor([1.0, 3.0], requires_grad=True)
score = (w * x * x).sum()
(slope,) = torch.autograd.grad(score, x, create_graph=True)
penalty = ((slope**2).sum() - 1) ** 2
penalty.backward()
print(slope.detach(), penalty.item())
print(w.grad)
