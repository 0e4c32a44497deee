# Views and detach() share a version counter; clone() and .data have their own.
import torch

x = torch.zeros(4)
v, d, c, p = x[:2], x.detach(), x.clone(), x.data
x.add_(1)
print(x._version, v._version, d._version, c._version, p._version)
v.mul_(3)
print(x, [t._version for t in (x, v, d, c, p)])
