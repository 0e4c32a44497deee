# One leaf reaches the loss along two paths: its gradient is the sum over both.
import torch

x = torch.tensor(4.0, requires_grad=True)
y = 2 * x + 5
loss = y + x
loss.backward()
print(loss, x.grad)

a = torch.tensor(3.0, requires_grad=True)
b = a * a + a * a * a
b.backward()
print(b.item(), a.grad.item())
