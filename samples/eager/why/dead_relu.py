# The biases are far below zero: most units are off for every input.
import torch

x = torch.tensor([[1.0, 2.0], [0.5, 0.1], [2.0, 1.0], [1.5, 0.3]])
w = torch.ones(2, 8, requires_grad=True)
b = torch.tensor([0.0, -20.0, -30.0, -25.0, -22.0, -28.0, -21.0, -40.0], requires_grad=True)
h = torch.relu(x @ w + b)
h.sum().backward()
print(b.grad)
