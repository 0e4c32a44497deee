# The losses are stored for a plot, and all their graphs with them.
import torch

w = torch.tensor([1.0, 2.0], requires_grad=True)
history = []
for step in range(5):
    loss = (w * w).sum()
    loss.backward()
    with torch.no_grad():
        w -= 0.1 * w.grad
    w.grad = None
    history.append(loss)
print(len(history))
