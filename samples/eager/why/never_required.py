# The weight is a plain tensor: requires_grad was never set.
import torch

w = torch.tensor([1.0, 2.0])
x = torch.tensor([3.0, 4.0], requires_grad=True)
loss = (w * x).sum()
loss.backward()
print(w.grad)
