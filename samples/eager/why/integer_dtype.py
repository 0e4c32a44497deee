# Integer tensors cannot have a gradient.
import torch

w = torch.tensor([1, 2, 3])
x = torch.tensor([1.0, 1.0, 1.0], requires_grad=True)
(w * x).sum().backward()
print(w.grad)
