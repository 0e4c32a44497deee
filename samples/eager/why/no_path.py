# The regulariser is computed, but not added to the loss.
import torch

w = torch.tensor([1.0, 2.0], requires_grad=True)
scale = torch.tensor(0.1, requires_grad=True)
x = torch.tensor([1.0, 1.0])
penalty = scale * (w * w).sum()
loss = (w * x).sum()
loss.backward()
print(w.grad, scale.grad)
