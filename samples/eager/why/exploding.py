# Thirty layers that each multiply by three.
import torch

x = torch.tensor(0.5, requires_grad=True)
h = x * 1
for layer in range(30):
    h = h * 3
h.backward()
print(x.grad.item() > 1e12)
