# item() returns a plain number, which is not part of the graph.
import torch

w = torch.tensor(2.0, requires_grad=True)
b = torch.tensor(1.0, requires_grad=True)
scale = (w * w).item()
loss = b * scale
loss.backward()
print(w.grad, b.grad)
