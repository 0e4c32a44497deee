# The file ends in an error that has nothing to do with gradients.
import torch

a = torch.ones(3, requires_grad=True)
b = torch.ones(4)
(a * b).sum().backward()
