# The new parameter is scaled at once: the name now belongs to a result, and the leaf has no name.
import torch

torch.manual_seed(0)
w = torch.randn(3, requires_grad=True) * 0.1
loss = (w**2).sum()
loss.backward()
print(w.grad)
