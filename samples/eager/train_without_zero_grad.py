# The same without zero_grad(): each step uses the sum of all gradients before it, and overshoots.
import torch

x = torch.tensor([[0.0], [1.0], [2.0], [3.0]])
y = 2 * x - 1
w = torch.zeros(1, 1, requires_grad=True)
optimizer = torch.optim.SGD([w], lr=0.125)
for step in range(4):
    loss = ((x @ w - y) ** 2).mean()
    loss.backward()
    optimizer.step()
    print(step, f"{loss.item():.3f}", f"{w.grad.item():.3f}")
