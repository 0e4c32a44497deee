# Thirty layers of tanh with small weights.
import torch

x = torch.tensor(0.5, requires_grad=True)
h = x * 1
for layer in range(30):
    h = torch.tanh(h * 0.25)
h.backward()
print(x.grad.item() < 1e-15)
