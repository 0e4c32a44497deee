# The gradient is zeroed by hand before anyone looks at it.
import torch

w = torch.tensor([1.0, 2.0], requires_grad=True)
(w * w).sum().backward()
w.grad.zero_()
print(w.grad)
