# zero_grad() is called after backward(), so step() sees only zeros.
import torch

w = torch.tensor([1.0, 2.0], requires_grad=True)
optimizer = torch.optim.SGD([w], lr=0.1)
loss = (w * w).sum()
loss.backward()
optimizer.zero_grad()
optimizer.step()
print(w.grad, w.detach())
