# The norm of a zero vector by hand: the slope of sqrt at 0 is infinite.
import torch

x = torch.tensor([0.0, 0.0], requires_grad=True)
length = torch.sqrt((x * x).sum())
length.backward()
print(x.grad)
