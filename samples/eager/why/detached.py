# The hidden layer is detached for a plot, and then used in the loss.
import torch

w = torch.tensor([0.5, -1.0], requires_grad=True)
v = torch.tensor([2.0, 1.0], requires_grad=True)
x = torch.tensor([1.0, 3.0])
hidden = torch.tanh(w * x).detach()
loss = (v * hidden).sum()
loss.backward()
print(w.grad, v.grad)
