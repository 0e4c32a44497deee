# A Jacobian row by row: one backward for each unit vector.
import torch

x = torch.tensor([1.0, 2.0], requires_grad=True)
y = torch.stack([x[0] * x[1], x[0] ** 2, x[1]])
rows = [torch.autograd.grad(y, x, unit, retain_graph=True)[0] for unit in torch.eye(3)]
print(torch.stack(rows))
