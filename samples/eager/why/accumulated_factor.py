# The same backward three times: the gradient is three times too large.
import torch

x = torch.tensor(2.0, requires_grad=True)
for _ in range(3):
    (x * x).backward()
print(x.grad)
