# The last layer starts at zero, so the first one gets no gradient in the first step.
import torch

first = torch.tensor([[0.5, -0.5], [1.0, 2.0]], requires_grad=True)
last = torch.zeros(2, 1, requires_grad=True)
x = torch.tensor([[1.0, 3.0]])
loss = (torch.tanh(x @ first) @ last - 1).square().sum()
loss.backward()
print(first.grad, last.grad)
