# Steps a hundred times too long: each overshoots farther than the last, until the loss is infinite.
import torch

w = torch.tensor(1.0, requires_grad=True)
for step in range(60):
    loss = (w * 3 - 1) ** 2
    loss.backward()
    with torch.no_grad():
        w -= 100 * w.grad
    w.grad = None
print(loss)
