# backward() adds to .grad; it never replaces it.
import torch

x = torch.tensor(1.0, requires_grad=True)
for k in range(1, 4):
    (k * x).backward()
    print(k, x.grad)
x.grad = None
(x * x).backward()
print("after a reset", x.grad)
