# A training loop without zero_grad().
import torch

w = torch.tensor([1.0], requires_grad=True)
x = torch.tensor([2.0])
optimizer = torch.optim.SGD([w], lr=0.01)
for step in range(5):
    loss = ((w * x - 3) ** 2).sum()
    loss.backward()
    optimizer.step()
print(f"{w.grad.item():.3f}")
