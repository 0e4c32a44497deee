# Integer tensors have no gradient.
import torch

try:
    torch.tensor([1, 2, 3], requires_grad=True)
except RuntimeError as problem:
    print(type(problem).__name__)
i = torch.tensor([1, 2, 3])
x = torch.tensor([0.5, 1.0, 1.5], requires_grad=True)
(x * i).sum().backward()
print(x.grad, i.dtype, (x * i).dtype)
