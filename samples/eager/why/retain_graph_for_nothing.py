# retain_graph=True silences an error that is not there.
import torch

w = torch.tensor(0.5, requires_grad=True)
for step in range(4):
    loss = (w * step - 1) ** 2
    loss.backward(retain_graph=True)
    w.grad = None
print(loss.item())
