# Rounding is flat almost everywhere.
import torch

x = torch.tensor([0.4, 1.6], requires_grad=True)
torch.round(x * 3).sum().backward()
print(x.grad)
