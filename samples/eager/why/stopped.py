# The file stops at an error that is not about gradients.
import torch

a = torch.ones(3, requires_grad=True)
b = torch.ones(4)
(a * b).sum().backward()
