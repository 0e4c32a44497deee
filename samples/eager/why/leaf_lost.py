# Scaled at once: the name belongs to a result now, and nobody holds the leaf.
import torch

torch.manual_seed(0)
w = torch.randn(3, requires_grad=True) * 0.1
loss = (w**2).sum()
loss.backward()
print(w.grad)
