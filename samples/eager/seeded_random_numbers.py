# The same seed, the same numbers.
import torch

torch.manual_seed(42)
print(torch.rand(3))
print(torch.randint(0, 10, (5,)))
torch.manual_seed(42)
print(torch.rand(3))
