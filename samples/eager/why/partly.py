# Half of the loss is computed under no_grad: the gradient exists, and is too small. Run with --tensor x.
import torch

x = torch.tensor(3.0, requires_grad=True)
with torch.no_grad():
    square = x * x
loss = square + x
loss.backward()
print(x.grad)
