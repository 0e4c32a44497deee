# A hard decision: the comparison has no gradient.
import torch

x = torch.tensor([0.5, -0.5], requires_grad=True)
w = torch.tensor([1.0, 2.0], requires_grad=True)
decision = (x > 0).float()
(decision * w).sum().backward()
print(x.grad, w.grad)
