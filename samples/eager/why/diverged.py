# The learning rate is too large: the weight overshoots the minimum, farther each time, until it is infinite.
import torch

w = torch.tensor(1.0, requires_grad=True)
for step in range(60):
    loss = w**4
    loss.backward()
    with torch.no_grad():
        w -= 10.0 * w.grad
    w.grad.zero_()
print(w)
