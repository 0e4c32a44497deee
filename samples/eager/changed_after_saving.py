# exp() saves its result for backward; changing the result in place is detected by its version.
import torch

x = torch.tensor([0.0, 1.0], requires_grad=True)
y = torch.exp(x)
print(y._version)
y.add_(1)
print(y._version)
try:
    y.sum().backward()
except RuntimeError as problem:
    print(type(problem).__name__, "version" in str(problem))
z = torch.exp(x) + 1
z.sum().backward()
print(x.grad)
