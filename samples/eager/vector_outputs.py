# A vector has no single gradient: pass the weights of its entries.
import torch

x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
y = x * x
try:
    y.backward()
except RuntimeError as problem:
    print(type(problem).__name__)
y.backward(gradient=torch.tensor([1.0, 0.0, -1.0]))
print(x.grad)
