# A large negative bias: the unit is off for every input, so its gradient is always zero.
import torch

x = torch.tensor([[1.0], [2.0], [3.0]])
w = torch.tensor([[0.5, 0.5]], requires_grad=True)
b = torch.tensor([0.0, -10.0], requires_grad=True)
h = torch.relu(x @ w + b)
h.sum().backward()
print((h > 0).any(dim=0))
print(w.grad, b.grad)
h = torch.where(x @ w + b > 0, x @ w + b, 0.125 * (x @ w + b))
w.grad = b.grad = None
h.sum().backward()
print(w.grad, b.grad)
