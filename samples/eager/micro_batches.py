# The gradients of four quarters of a batch add up to that of the whole batch.
import torch

x = torch.arange(8.0).reshape(8, 1) / 4
y = 3 * x + 1
w = torch.zeros(1, 1, requires_grad=True)
loss = ((x @ w - y) ** 2).mean()
loss.backward()
whole = w.grad.clone()
w.grad = None
for part in range(4):
    xs, ys = x[2 * part : 2 * part + 2], y[2 * part : 2 * part + 2]
    (((xs @ w - ys) ** 2).mean() / 4).backward()
print(whole, w.grad, torch.allclose(whole, w.grad))
