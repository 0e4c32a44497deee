# inputs= names only one leaf.
import torch

a = torch.tensor(2.0, requires_grad=True)
b = torch.tensor(3.0, requires_grad=True)
(a * b).backward(inputs=[a])
print(a.grad, b.grad)
