# retain_graph=True hides an error that does not occur.
import torch

w = torch.tensor(0.5, requires_grad=True)
for step in range(4):
    loss = (w * step - 1) ** 2
    loss.backward(retain_graph=True)
    w.grad = None
print(loss.item())
