# A hook receives a gradient during backward, and may replace it.
import torch

x = torch.tensor([1.0, 2.0], requires_grad=True)
h = x * 3
seen = []
h.register_hook(lambda g: seen.append(g.clone()))
handle = h.register_hook(lambda g: g * 10)
h.sum().backward()
print(seen, x.grad)
handle.remove()
x.grad = None
(x * 3).sum().backward()
print(x.grad)
