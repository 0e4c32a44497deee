# The input is so large that sigmoid is flat.
import torch

w = torch.tensor(30.0, requires_grad=True)
loss = torch.sigmoid(-w * 2) * 5
loss.backward()
print(w.grad.item() < 1e-20)
