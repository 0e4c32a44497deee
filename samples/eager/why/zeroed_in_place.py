# The gradient is set to zero by hand before it is read.
import torch

w = torch.tensor([1.0, 2.0], requires_grad=True)
(w * w).sum().backward()
w.grad.zero_()
print(w.grad)
