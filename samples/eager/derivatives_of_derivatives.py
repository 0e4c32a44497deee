# create_graph=True: a gradient is a tensor with a graph of its own.
import torch

x = torch.tensor(2.0, requires_grad=True)
y = x**4
for order in range(1, 5):
    (y,) = torch.autograd.grad(y, x, create_graph=True)
    print(order, y.item(), y.grad_fn is not None if order < 4 else "")
