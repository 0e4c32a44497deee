# The running mean of the loss keeps the graph of every step.
import torch

w = torch.tensor([1.0, 2.0], requires_grad=True)
total = 0.0
for step in range(5):
    loss = (w * w).sum()
    loss.backward()
    w.grad = None
    total = total + loss
print(total.item())
