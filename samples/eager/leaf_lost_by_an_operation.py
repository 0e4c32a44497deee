# Scaling a new parameter makes it the result of an operation: it is no longer a leaf.
import torch

w = torch.ones(3, requires_grad=True) * 0.5
print(w.is_leaf, w.requires_grad)
v = (torch.ones(3) * 0.5).requires_grad_()
print(v.is_leaf, v.requires_grad)
(v * 2).sum().backward()
print(v.grad)
