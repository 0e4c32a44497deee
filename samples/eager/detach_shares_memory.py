# detach() shares the memory but not the history; clone() copies the memory and keeps the history.
import torch

x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
d = x.detach()
c = x.clone()
d[0] = 10.0
print(x.detach(), d, c.detach())
print(d.requires_grad, c.requires_grad, d.data_ptr() == x.data_ptr(), c.data_ptr() == x.data_ptr())
print(x._version, d._version)
