# Which tensors are leaves, and which of them get a gradient.
import torch

a = torch.ones(2, requires_grad=True)
b = torch.ones(2)
c = a + b
d = b * 2
e = c.detach()
f = torch.zeros(2, requires_grad=True) * 3
with torch.no_grad():
    g = a * 2
for name, t in dict(a=a, b=b, c=c, d=d, e=e, f=f, g=g).items():
    print(name, t.is_leaf, t.requires_grad, t.grad_fn is None)
