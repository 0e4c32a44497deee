# The hidden value is computed, so it does not keep its gradient.
import torch
import warnings

warnings.simplefilter("ignore")
x = torch.tensor([1.0, 2.0], requires_grad=True)
hidden = x * 3
hidden.sum().backward()
print(hidden.grad)
