# The slope is zero because this is the minimum.
import torch

x = torch.tensor(1.0, requires_grad=True)
((x - 1) ** 2).backward()
print(x.grad)
