# A computed tensor does not keep its gradient unless you call retain_grad().
import torch
import warnings

warnings.simplefilter("ignore")
x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
h = x * x
k = h + 1
h.retain_grad()
k.sum().backward()
print(x.grad, h.grad, k.grad)
print(h.retains_grad, k.retains_grad, h.is_leaf)
