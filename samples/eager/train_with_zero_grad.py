# Fitting a line; the gradients are set to zero in each step.
import torch

x = torch.tensor([[0.0], [1.0], [2.0], [3.0]])
y = 2 * x - 1
w = torch.zeros(1, 1, requires_grad=True)
b = torch.zeros(1, requires_grad=True)
optimizer = torch.optim.SGD([w, b], lr=0.125)
for step in range(4):
    optimizer.zero_grad()
    loss = ((x @ w + b - y) ** 2).mean()
    loss.backward()
    optimizer.step()
    print(step, f"{loss.item():.4f}")
print(w.grad is None, tuple(w.shape))
