# The update creates a new tensor: after the first step the name is no longer that of a leaf.
import torch
import warnings

warnings.simplefilter("ignore")
w = torch.tensor(5.0, requires_grad=True)
for step in range(2):
    loss = (w - 1) ** 2
    loss.backward()
    if w.grad is None:
        break
    w = w - 0.1 * w.grad
print(w.grad)
