# Clipping by norm scales all gradients together; clipping by value limits each entry.
import torch
from torch.nn.utils import clip_grad_norm_, clip_grad_value_

a = torch.tensor([3.0, 0.0], requires_grad=True)
b = torch.tensor([0.0, 4.0], requires_grad=True)
(a * a / 2 + b * b / 2).sum().backward()
total = clip_grad_norm_([a, b], max_norm=2.5)
print(total, a.grad, b.grad)
clip_grad_value_([a, b], 1.75)
print(a.grad, b.grad)
