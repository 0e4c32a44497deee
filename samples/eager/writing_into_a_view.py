# y[0] = ... changes the history of y: no gradient flows to the value that was overwritten.
import torch

x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
y = x * 2
y[0] = x[1] * 5
print(y.grad_fn.name(), y.detach())
y.sum().backward()
print(x.grad)

x.grad = None
y = x.clone()
y[1:].mul_(10)
y.sum().backward()
print(x.grad)
