# The loss is computed, but backward() is never called.
import torch

w = torch.tensor([1.0, 2.0], requires_grad=True)
loss = (w * w).sum()
print(w.grad)
