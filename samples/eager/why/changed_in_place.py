# The result that exp() saved is changed before backward.
import torch

x = torch.tensor([0.0, 1.0], requires_grad=True)
y = torch.exp(x)
y += 1
y.sum().backward()
