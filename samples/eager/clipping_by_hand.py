# The same as clip_grad_norm_, written out.
import torch

params = [torch.tensor([3.0, 0.0], requires_grad=True), torch.tensor(4.0, requires_grad=True)]
sum((p * p / 2).sum() for p in params).backward()
norm = torch.stack([p.grad.norm() for p in params]).norm()
scale = min(1.0, 1.0 / norm.item())
for p in params:
    p.grad.mul_(scale)
print(norm, [p.grad for p in params])
