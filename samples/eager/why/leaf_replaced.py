# The update makes a new tensor: the leaf is gone after the first step.
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
