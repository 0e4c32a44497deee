# What the forward pass repeats, the backward pass sums.
import torch

row = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
column = torch.tensor([[10.0], [20.0]], requires_grad=True)
number = torch.tensor(2.0, requires_grad=True)
table = row * column + number
print(table.shape)
table.sum().backward()
print(row.grad, column.grad, number.grad)
