# Gradients go back to the entries that were read; an entry that is read twice gets both.
import torch

x = torch.arange(6.0).reshape(2, 3).requires_grad_()
(x[0, 1] + x[:, 2].sum() + x[[0, 0, 1], [0, 0, 0]].sum()).backward()
print(x.grad)
