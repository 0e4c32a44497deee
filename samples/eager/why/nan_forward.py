# The logarithm of a negative number.
import torch

x = torch.tensor([0.5, 2.0], requires_grad=True)
shifted = x - 1
loss = torch.log(shifted).sum()
loss.backward()
print(loss)
