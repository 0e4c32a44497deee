# A loss, but no backward.
import torch

w = torch.tensor([1.0, 2.0], requires_grad=True)
loss = (w * w).sum()
print(w.grad)
