# A hook that should only inspect a gradient returns something else.
import torch

w = torch.tensor([1.0, 2.0], requires_grad=True)
h = w * 2
h.register_hook(lambda gradient: gradient * 0)
h.sum().backward()
print(w.grad)
