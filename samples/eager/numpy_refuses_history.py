# numpy() refuses a tensor with a history: call detach() first. The array then shares the memory.
import torch

x = torch.tensor([1.0, 2.0], requires_grad=True)
try:
    x.numpy()
except RuntimeError as problem:
    print(type(problem).__name__, "detach" in str(problem))
a = x.detach().numpy()
a[0] = 7.0
print(a, x.detach())
t = torch.from_numpy(a * 2)
print(t, t.requires_grad)
