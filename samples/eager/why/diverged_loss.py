# The learning rate is a hundred times too large: the loss grows until it is infinite.
import torch

w = torch.tensor(1.0, requires_grad=True)
for step in range(60):
    loss = (w * 3 - 1) ** 2
    loss.backward()
    with torch.no_grad():
        w -= 100 * w.grad
    w.grad = None
print(loss)
